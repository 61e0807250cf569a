"""3D CNNs at 49 x 71 x 58: one minibatch of PPO each, and acting with whole or partial passes.

    python benchmarks/mine_networks.py [--batch 8] [--agents cnn3d cnn3d_tiny] [--threads 2]

Per agent and switch: seconds per minibatch (decoding, forward, backward), samples per second and
the most memory that the process has held so far; then milliseconds per environment step of acting
with four environments, by whole passes and by `agent.incremental=true` (both with agent.norm=none).
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch

from frugal_rl.memory.usage import peak_resident_bytes
from frugal_rl.observation.decoder import to_tensors
from frugal_rl.observation.history import History
from frugal_rl.run.compose import compose_run

CPU = torch.device("cpu")
SWITCHES = {
    "plain": ["agent.factored=false"],
    "factored": [],
    "factored, channels last": ["agent.channels_last=true"],
    "factored, bf16": ["memory.precision=bf16"],
    "factored, channels last, bf16": ["agent.channels_last=true", "memory.precision=bf16"],
}


class Play:
    """Random play of N environments, the rows as the policy receives them."""

    def __init__(self, run, num_envs: int) -> None:
        self.vec_env = run.env.make_vec(num_envs, run.encoding(), run.memory, run.vec, "train")
        self.history = History(self.vec_env.encoding, num_envs, run.env.episode_steps)
        self.rows = self.history.reset(self.vec_env.reset(0))
        self.rng = np.random.default_rng(0)

    def step(self) -> None:
        """One random allowed action each."""
        masks = self.vec_env.game.masks()
        step = self.vec_env.step(np.array([self.rng.choice(np.flatnonzero(m)) for m in masks]))
        self.rows, _ = self.history.push(step.rows, step.done)


def minibatch(agent: str, switch: str, batch: int) -> None:
    run = compose_run(["env=mine", f"agent={agent}", *SWITCHES[switch]])
    play = Play(run, batch)
    for _ in range(20):
        play.step()
    policy = run.algo.build_policy(run, play.vec_env)
    rows = to_tensors(play.rows, CPU)
    started = time.perf_counter()
    out = policy.outputs(rows)
    forward = time.perf_counter() - started
    finite = out.logits.masked_fill(out.logits < -1e8, 0.0)
    (finite.mean() + out.value.square().mean()).backward()
    both = time.perf_counter() - started
    print(
        f"{agent:12s} {switch:30s} batch {batch}: forward {forward:6.3f} s, with backward "
        f"{both:6.3f} s, {batch / both:7.2f} samples/s, peak "
        f"{peak_resident_bytes() / 2**20:.0f} MiB",
        flush=True,
    )


def acting(agent: str, incremental: bool, steps: int) -> None:
    words = ["agent.norm=none", f"agent.incremental={str(incremental).lower()}"]
    run = compose_run(["env=mine", f"agent={agent}", *words])
    play = Play(run, 4)
    policy = run.algo.build_policy(run, play.vec_env)
    policy.set_training_mode(False)
    spent = 0.0
    with torch.no_grad():
        for i in range(steps + 1):
            play.step()
            started = time.perf_counter()
            policy(to_tensors(play.rows, CPU))
            spent += time.perf_counter() - started if i > 0 else 0.0
    word = "by crops" if incremental else "whole"
    print(
        f"{agent:12s} acting {word:9s} {1000 * spent / steps / 4:8.2f} ms per environment step",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--agents", nargs="+", default=["cnn3d", "cnn3d_tiny"])
    parser.add_argument("--switches", nargs="+", default=list(SWITCHES))
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    for agent in args.agents:
        for switch in args.switches:
            minibatch(agent, switch, args.batch)
        acting(agent, False, 3)
        acting(agent, True, 30)


if __name__ == "__main__":
    main()
