"""Updates of the compiled engine beside the exact one, Stable-Baselines3's, SBX's and sgemm.

python benchmarks/engine.py [--threads 1] [--sbx PYTHON] [--rounds 7] [NUMBER OF A CASE ...]

Samples per second of one update (4 epochs, minibatches of 2,048, 64 numbers observed, 4 actions).
All take turns, round by round; shares are medians of paired rounds. One thread counts processor
time, several the clock. `sgemm` is the best of OpenBLAS and MKL on 1,024 x 1,024 matrices in the
same round; a share of it is the update's matrix products alone over all of its time. SBX needs
jax, in an environment of its own whose interpreter `--sbx` names.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from train_workload import Trivial, TrivialBatch, iterate, iterate_sb3, ours, sb3

from frugal_rl.learn.on_policy_config import Engine
from frugal_rl.learn.ppo import PpoLearner
from frugal_rl.memory import MemoryProfile
from frugal_rl.run.config import Hardware, RunConfig

CASES = ((64, 64), (256, 64), (64, 256), (256, 256))
"""Environments, width of two hidden layers."""
STEPS, EPOCHS, BATCH, OBSERVED, ACTIONS = 128, 4, 2048, 64, 4
SIDE = 1024


def learner(num_envs: int, hidden: int, threads: int, engine: Engine) -> PpoLearner:
    """Ours on the workload, under one of the engines."""
    plain = ours(num_envs, hidden, BATCH, threads, fused=False)
    algo = replace(plain.config, engine=engine)
    hardware = Hardware(device="cpu", threads=threads)
    run = RunConfig(Trivial(), plain.policy.agent, algo, MemoryProfile(), None, hardware=hardware)
    return algo.build(run, TrivialBatch(num_envs, run.encoding()))


def flops(hidden: int) -> int:
    """Operations of one sample's matrix products: forward, and twice that back, but for X."""
    first, second, last = OBSERVED * hidden, hidden * hidden, hidden
    trunks = 2 * (first + second) + (ACTIONS + 1) * last
    return 2 * (3 * trunks - 2 * first)


class Sbx:
    """SBX's PPO in a process of its own, asked for one update at a time."""

    def __init__(self, python: str, num_envs: int, hidden: int, threads: int) -> None:
        script = Path(__file__).with_name("engine_sbx.py")
        words = [python, str(script), *map(str, (num_envs, hidden, BATCH, STEPS, EPOCHS, threads))]
        self.process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.seconds(clock=False)

    def seconds(self, clock: bool) -> float:
        """Of one update: by the clock, or of the processor."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("train\n")
        self.process.stdin.flush()
        wall, processor = self.process.stdout.readline().split()
        return float(wall if clock else processor)

    def close(self) -> None:
        """End the process."""
        self.process.communicate()


def sgemm(timer: Callable[[], float]) -> float:
    """Operations per second of the better library."""
    a = np.ones((SIDE, SIDE), np.float32)
    b = torch.from_numpy(a)
    best = 0.0
    for call in (lambda: a @ a, lambda: b @ b):
        began = timer()
        for _ in range(4):
            call()
        best = max(best, 4 * 2 * SIDE**3 / (timer() - began))
    return best


def compare(num_envs: int, hidden: int, threads: int, rounds: int, sbx: str) -> str:
    """One row of the table."""
    timer = time.process_time if threads == 1 else time.perf_counter
    model = sb3(num_envs, hidden, BATCH, threads)
    iterate_sb3(model)
    exact, compiled = (learner(num_envs, hidden, threads, e) for e in Engine)
    for each in (exact, compiled):
        iterate(each)
    torch.set_num_threads(threads)
    peer = Sbx(sbx, num_envs, hidden, threads) if sbx else None
    rows = []
    for _ in range(rounds):
        times = []
        for call in (model.train, lambda: exact.learn(exact.rollout)):
            times.append(seconds(call, timer))
        times.append(seconds(lambda: compiled.learn(compiled.rollout), timer))
        times.append(peer.seconds(timer is time.perf_counter) if peer else float("nan"))
        rows.append((*times, sgemm(timer)))
    if peer:
        peer.close()
    return row(num_envs, hidden, threads, rows)


def seconds(call: Callable[[], object], timer: Callable[[], float]) -> float:
    """Of one call."""
    began = timer()
    call()
    return timer() - began


def row(num_envs: int, hidden: int, threads: int, rows: list[tuple[float, ...]]) -> str:
    """Rates are medians; factors and shares are medians over rounds, with their extremes."""
    samples = num_envs * STEPS * EPOCHS
    theirs, exact, ours_, sbx = (
        samples / statistics.median(column) for column in list(zip(*rows, strict=True))[:4]
    )
    factors = sorted(r[1] / r[2] for r in rows)
    shares = sorted(samples / r[2] * flops(hidden) / r[4] for r in rows)
    stock = statistics.median(r[0] / r[2] for r in rows)
    jax = statistics.median(r[3] / r[2] for r in rows)
    roof = statistics.median(r[4] for r in rows) / 1e9
    return (
        f"| {num_envs} | 2 x {hidden} | {threads} | {theirs:,.0f} | {sbx:,.0f} | {exact:,.0f} "
        f"| {ours_:,.0f} | {statistics.median(factors):.2f} ({factors[0]:.2f} to {factors[-1]:.2f})"
        f" | {stock:.2f} | {jax:.2f} | {roof:.0f} | {statistics.median(shares):.0%} |"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--sbx", default="")
    parser.add_argument("cases", nargs="*", type=int)
    args = parser.parse_args()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", str(args.threads))
    print(
        "| envs | network | threads | SB3 | SBX | exact | compiled | compiled : exact | : SB3 "
        "| : SBX | sgemm, GFLOP/s | share of it |\n|" + "---|" * 12
    )
    for case in [CASES[i] for i in args.cases] or CASES:
        print(compare(*case, args.threads, args.rounds, args.sbx), flush=True)


if __name__ == "__main__":
    main()
