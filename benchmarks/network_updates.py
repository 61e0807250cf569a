"""Updates of networks that read pictures, volumes and graphs, beside stock Stable-Baselines3.

    python benchmarks/network_updates.py [--rounds 7] [CASE ...]

The peer is Stable-Baselines3's PPO with its own rollout buffer, the same network and dense
observations (`memory=baseline`). It and each of our settings train in one process on one thread,
in turns, one epoch over what each collected before; the ratio is the median of those turns by
processor time, with the quartiles beside it. `exact` changes no bit (of a 3D network it sums the
static part once per mine, and rounds apart), channels last changes the order of sums, bf16 the
precision: switches of their own, off unless asked for.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from contextlib import nullcontext
from statistics import median, quantiles
from typing import Any

import torch
from stable_baselines3 import PPO

from frugal_rl.learn.policy import FrugalPolicy
from frugal_rl.run.compose import compose_run
from frugal_rl.sb3.adapter import Sb3VecEnv

LAST, BF16 = "agent.channels_last=true", "memory.precision=bf16"
CASES: dict[str, tuple[list[str], list[str], dict[str, list[str]]]] = {
    "nature_cnn": (
        ["env=fighting", "env.obs=gray", "agent=nature_cnn", "algo.batch_size=256"],
        [],
        {"exact": [], "channels last": [LAST], "bf16": [BF16], "both": [LAST, BF16]},
    ),
    "cnn3d_small": (
        ["env=mine_daily_small", "agent=cnn3d_small", "env.obs=volume", "algo.batch_size=64"],
        ["agent.factored=false"],
        {"exact": [], "channels last": [LAST], "bf16": [BF16], "both": [LAST, BF16]},
    ),
    "attention": (
        ["env=nclone", "agent=attention", "algo.batch_size=256"],
        [],
        {"exact": [], "bf16": [BF16]},
    ),
}
"""Words of both, words of the peer's alone, and our settings."""
COMMON = ["algo.num_envs=8", "algo.n_steps=64", "algo.n_epochs=1", "tracking=disabled"]
COMMON += ["algo.total_steps=1000000", "hardware.threads=1", "hardware.device=cpu"]


def stock(words: list[str]) -> Callable[[], Any]:
    """One update of Stable-Baselines3's, over a rollout that it has collected."""
    run = compose_run([*COMMON, *words, "memory=baseline"])
    batch = run.env.make_vec(run.algo.num_envs, run.encoding(), run.memory, run.vec, "train")
    env = Sb3VecEnv(batch, run.env.episode_steps)
    given = {"agent": run.agent, "encoding": run.encoding(), "tables": batch.tables}
    sizes = {name: getattr(run.algo, name) for name in ("n_steps", "batch_size", "n_epochs")}
    model = PPO(FrugalPolicy, env, policy_kwargs=given, device="cpu", seed=0, **sizes)
    _, callback = model._setup_learn(run.algo.total_steps, callback=None)
    model.collect_rollouts(env, callback, model.rollout_buffer, run.algo.n_steps)
    return model.train


def ours(words: list[str]) -> Callable[[], Any]:
    """One update of ours, over a rollout that it has collected."""
    run = compose_run([*COMMON, *words])
    env = run.env.make_vec(run.algo.num_envs, run.encoding(), run.memory, run.vec, "train")
    learner: Any = run.algo.build(run, env)
    learner.iterate(lambda phase: nullcontext())
    return lambda: learner.learn(learner.rollout)


def seconds(call: Callable[[], Any]) -> float:
    """Of processor time."""
    began = time.process_time()
    call()
    return time.process_time() - began


def measure(name: str, rounds: int) -> None:
    """Print the rows of one case."""
    words, peers, settings = CASES[name]
    calls = [stock([*words, *peers]), *(ours([*words, *more]) for more in settings.values())]
    torch.set_num_threads(1)
    for call in calls:
        call()
    turns = [[seconds(call) for call in calls] for _ in range(rounds)]
    samples = 8 * 64
    for place, setting in enumerate(("stock SB3", *settings)):
        rate = samples / median(turn[place] for turn in turns)
        ratios = [turn[0] / turn[place] for turn in turns]
        low, middle, high = quantiles(ratios, n=4)
        print(f"| {name} | {setting} | {rate:,.0f} | {middle:.2f} |", end=" ")
        print(f"{low:.2f} to {high:.2f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", default=list(CASES))
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    print("| network | setting | samples per processor second | : SB3 | quartiles |")
    print("|---|---|---|---|---|", flush=True)
    for name in args.cases:
        measure(name, args.rounds)


if __name__ == "__main__":
    main()
