"""PPO at the guide's failing size: 2,048 steps x 4 environments, 17 channels, 49 x 71 x 58.

    python benchmarks/mine_full_grid.py [--iterations 20] [--width 16] [--layers 1] [--epochs 1]
    python benchmarks/mine_full_grid.py --minibatches   # one minibatch each through the 3D CNNs

Prints what the rollout was planned and allocated to hold, the process's peak, and steps per second.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch

from frugal_rl.config import compose_run
from frugal_rl.memory.usage import peak_resident_bytes
from frugal_rl.observation.history import History
from frugal_rl.train.decoder import Decoder
from frugal_rl.train.trainer import no_meter

MIB = 2.0**20


def iterations(args: argparse.Namespace) -> None:
    overrides = [
        "env=mine", f"agent.width={args.width}", f"agent.layers={args.layers}",
        f"algo.n_epochs={args.epochs}", "algo.batch_size=256", "algo.gamma=1.0",
    ]  # fmt: skip
    run = compose_run(overrides)
    vec_env = run.env.make_vec(run.algo.num_envs, run.encoding(), run.memory, run.vec, "train")
    learner = run.algo.build(run, vec_env)
    held = learner.parts() | vec_env.parts()
    print({name: f"{size / MIB:.3f} MiB" for name, size in held.items()}, flush=True)
    for i in range(args.iterations):
        started = time.perf_counter()
        metrics = learner.iterate(no_meter)
        rate = run.algo.num_envs * run.algo.n_steps / (time.perf_counter() - started)
        reward = metrics.get("rollout/return_mean", metrics.get("episode/return", float("nan")))
        print(
            f"iteration {i + 1:2d}  {rate:7.1f} steps/s  return {reward:.5f}  "
            f"peak {peak_resident_bytes() / MIB:.0f} MiB", flush=True,
        )  # fmt: skip
    print(sorted(metrics))


def minibatches(args: argparse.Namespace) -> None:
    for agent in ("cnn3d", "cnn3d_small", "cnn3d_tiny"):
        run = compose_run(["env=mine", f"agent={agent}", "agent.channels_last=true"])
        encoding = run.encoding()
        vec_env = run.env.make_vec(args.batch, encoding, run.memory, run.vec, "train")
        history = History(encoding, args.batch, run.env.episode_steps)
        rows = history.reset(vec_env.reset(0))
        rng = np.random.default_rng(0)
        for _ in range(50):
            mask = vec_env.game.masks()
            step = vec_env.step(np.array([rng.choice(np.flatnonzero(m)) for m in mask]))
            rows, _ = history.push(step.rows, step.done)
        network = run.agent.build(encoding, vec_env.tables, vec_env.action_space)
        started = time.perf_counter()
        decoder = Decoder(encoding, vec_env.tables)
        out = network(decoder({k: torch.from_numpy(v) for k, v in rows.items()}))
        forward = time.perf_counter() - started
        (out.logits.mean() + out.value.mean()).backward()
        both = time.perf_counter() - started
        print(
            f"{agent:12s} batch {args.batch}: forward {forward:.2f} s, with backward {both:.2f} s, "
            f"{args.batch / both:.2f} samples/s, peak {peak_resident_bytes() / MIB:.0f} MiB",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--layers", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--minibatches", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(2)
    minibatches(args) if args.minibatches else iterations(args)


if __name__ == "__main__":
    main()
