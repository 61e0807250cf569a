"""PPO at the guide's failing size: 2,048 steps x 4 environments, 17 channels, 49 x 71 x 58.

    python benchmarks/mine_full_grid.py [--iterations 20] [--width 8] [--layers 1] [--epochs 1]
        [--keep FILE]   # saves itself after every iteration, and continues from there
    python benchmarks/mine_full_grid.py --exact [--steps 40]   # lossless against dense, bit for bit

Prints what the rollout was planned and allocated to hold, the process's peak, and steps per second.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import torch

from frugal_rl.memory.plan import draw_up
from frugal_rl.memory.profile import MemoryProfile
from frugal_rl.memory.usage import peak_resident_bytes
from frugal_rl.observation.choices import Storage
from frugal_rl.observation.encoder import decode
from frugal_rl.observation.encoding import Encoding
from frugal_rl.observation.history import History
from frugal_rl.run.checkpoints import load_checkpoint, save_checkpoint
from frugal_rl.run.compose import compose_run
from frugal_rl.run.trainer import no_meter

MIB = 2.0**20


def iterations(args: argparse.Namespace) -> None:
    overrides = [
        "env=mine",
        f"agent.width={args.width}",
        f"agent.layers={args.layers}",
        f"algo.n_epochs={args.epochs}",
        "algo.batch_size=256",
        "memory.micro_batch=64",
        f"hardware.threads={args.threads}",
    ]
    run = compose_run(overrides)
    vec_env = run.env.make_vec(run.algo.num_envs, run.encoding(), run.memory, run.vec, "train")
    learner = run.algo.build(run, vec_env)
    plan = draw_up(run)
    held = learner.parts()
    rollout = sum(size for name, size in held.items() if name.startswith("rollout/"))
    dense = draw_up(compose_run(["env=mine", "memory=baseline"])).rollout_bytes
    print(
        f"rollout: dense would take {dense / 2**30:.2f} GiB; planned {plan.rollout_bytes:,} B, "
        f"allocated {rollout:,} B; static tables {vec_env.parts()['static tables'] / MIB:.1f} MiB",
        flush=True,
    )
    done = 0
    if args.keep and args.keep.exists():
        kept = load_checkpoint(args.keep)
        learner.load(kept["learner"])
        done = kept["iterations"]
    first = time.perf_counter()
    for i in range(done, args.iterations):
        started = time.perf_counter()
        metrics = learner.iterate(no_meter)
        rate = run.algo.num_envs * run.algo.n_steps / (time.perf_counter() - started)
        print(
            f"iteration {i + 1:2d}  {rate:7.1f} steps/s  {metrics['episode/count']:.0f} episodes, "
            f"return {metrics['episode/return']:.6f}  explained variance "
            f"{metrics['train/explained_variance']:.3f}  peak "
            f"{peak_resident_bytes() / MIB:.0f} MiB  {time.perf_counter() - first:.0f} s",
            flush=True,
        )
        if args.keep:
            save_checkpoint(args.keep, {"iterations": i + 1, "learner": learner.state()})


def exact(args: argparse.Namespace) -> None:
    """Plays the same actions in lossless and dense form, and compares what is rebuilt."""
    config = compose_run(["env=mine"]).env
    forms = [Encoding.choose(config.spec(), s) for s in (Storage.lossless, Storage.dense)]
    envs = [config.make_vec(2, form, MemoryProfile(), None, "train") for form in forms]
    histories = [History(form, 2, config.episode_steps) for form in forms]
    shown = [h.reset(env.reset(0)) for h, env in zip(histories, envs, strict=True)]
    rng = np.random.default_rng(0)
    values = 0
    for _ in range(args.steps):
        rebuilt, dense = (
            decode(form, rows, env.tables)
            for form, rows, env in zip(forms, shown, envs, strict=True)
        )
        for name, wanted in dense.items():
            if not np.array_equal(rebuilt[name], wanted):
                raise SystemExit(f"{name} differs")
            values += wanted.size
        actions = np.array([rng.choice(np.flatnonzero(m)) for m in dense["action_mask"]])
        steps = [env.step(actions) for env in envs]
        shown = [h.push(s.rows, s.done)[0] for h, s in zip(histories, steps, strict=True)]
    print(f"{args.steps} steps x 2 environments: {values:,} values rebuilt, all equal")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--width", type=int, default=8)
    parser.add_argument("--layers", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--keep", type=Path, help="state of the run, to go on from")
    parser.add_argument("--exact", action="store_true")
    parser.add_argument("--steps", type=int, default=40)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    exact(args) if args.exact else iterations(args)


if __name__ == "__main__":
    main()
