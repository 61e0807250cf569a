"""Our update against Stable-Baselines3's, same data, same network, alternating in one process.

python benchmarks/train_update.py [NUMBER OF A CASE ...]
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable

import torch
from train_workload import iterate, iterate_sb3, ours, sb3

CASES = ((8, 64, 64), (64, 64, 64), (64, 64, 256), (64, 64, 2048), (256, 64, 2048), (64, 256, 2048))
"""Environments, width of two hidden layers, minibatch."""
ROUNDS = 9


def seconds(call: Callable[[], object]) -> float:
    """Processor time: one thread, so what else the machine does is not in it."""
    began = time.process_time()
    call()
    return time.process_time() - began


def compare(num_envs: int, hidden: int, batch_size: int, threads: int) -> str:
    """One line: samples per second of both, and the median ratio of paired runs."""
    model = sb3(num_envs, hidden, batch_size, threads)
    iterate_sb3(model)
    exact, fused = (ours(num_envs, hidden, batch_size, threads, f) for f in (False, True))
    for learner in (exact, fused):
        iterate(learner)
    torch.set_num_threads(threads)
    calls = (model.train, *(lambda each=each: each.learn(each.rollout) for each in (exact, fused)))
    times = [[seconds(c) for c in calls] for _ in range(ROUNDS)]
    samples = num_envs * 128 * 4
    rates = [samples / statistics.median(column) for column in zip(*times, strict=True)]
    gains = [statistics.median(t[0] / t[i] for t in times) for i in (1, 2)]
    return (
        f"{num_envs:>5} envs  2x{hidden:<4} batch {batch_size:>5}   "
        f"sb3 {rates[0]:>9,.0f}   ours {rates[1]:>9,.0f} ({gains[0]:.2f}x)   "
        f"fused Adam {rates[2]:>9,.0f} ({gains[1]:.2f}x)"
    )


def main() -> None:
    print("updates, samples per second of processor time, one thread; ratio: median of pairs")
    for case in [CASES[int(i)] for i in sys.argv[1:]] or CASES:
        print(compare(*case, threads=1), flush=True)


if __name__ == "__main__":
    main()
