"""Environment steps per second, end to end: ours against Stable-Baselines3 in one process.

python benchmarks/train_throughput.py [threads]
"""

from __future__ import annotations

import statistics
import sys
import time

from train_workload import EPISODE, iterate, iterate_sb3, ours, sb3

CASES = ((64, 64), (256, 64), (64, 256), (256, 256))
"""Environments, width of two hidden layers."""
ROUNDS = 5


def compare(num_envs: int, hidden: int, threads: int) -> str:
    """One line: steps per second of both, and the median ratio of paired iterations."""
    model = sb3(num_envs, hidden, 2048, threads)
    learner = ours(num_envs, hidden, 2048, threads, fused=False)
    for _ in range(2):
        iterate_sb3(model)
        iterate(learner)
    pairs = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        iterate_sb3(model)
        middle = time.perf_counter()
        metrics = iterate(learner)
        pairs.append((middle - began, time.perf_counter() - middle))
    steps = num_envs * 128
    theirs, mine = (steps / statistics.median(p) for p in zip(*pairs, strict=True))
    gain = statistics.median(a / b for a, b in pairs)
    reached = metrics["episode/return"] / EPISODE
    return (
        f"{num_envs:>5} envs  2x{hidden:<4}  sb3 {theirs:>9,.0f}   ours {mine:>9,.0f}   "
        f"{gain:.2f}x   reward {reached:.2f}"
    )


def main() -> None:
    threads = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    print(f"env steps/s, 128 steps per iteration, 4 epochs, minibatch 2,048, {threads} thread(s)")
    for num_envs, hidden in CASES:
        print(compare(num_envs, hidden, threads), flush=True)


if __name__ == "__main__":
    main()
