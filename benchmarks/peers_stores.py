"""Rollout stores side by side: bytes, time to add, time to draw, peak of the first epoch.

    python benchmarks/peers_stores.py [--workloads gb graph mine mine_small] [--markdown FILE]

Peers that are not installed are skipped; `pip install "sb3-extra-buffers[lz4]" torchrl cpprb` in an
environment of their own. Every store runs in a process of its own on one thread; all are given the
same transitions, and each drawn observation is compared with what went in (`exact`).

`resident` is the growth of resident memory while filling, `counted` what the store says it holds,
per transition; `add` microseconds per transition; `draw` the median of milliseconds per minibatch,
`dense` with the observation rebuilt as the others deliver it; `peak` MiB above the start. `indexed`
is no store but the machine's own pace: plain arrays of dense steps, copied by index.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import peers_workloads
import psutil
import torch
from peers_kinds import make_store
from peers_workloads import Workload

STORES = {
    "gb": ("sb3", "sb3x gzip6", "sb3x gzip9", "sb3x lz4-frame/0", "torchrl memmap",
           "torchrl compressed", "cpprb", "indexed", "ours"),
    **dict.fromkeys(
        ("graph", "mine", "mine_small"),
        ("sb3", "sb3x lz4-frame/0", "torchrl memmap", "torchrl compressed", "cpprb", "indexed",
         "ours"),
    ),
}  # fmt: skip


def status_mib(key: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(x for x in lines if x.startswith(key)).split()[1]) / 1024


def reset_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def fill(store: Any, load: Workload) -> float:
    seconds = 0.0
    for t in range(load.steps):
        obs = store.prepare(t)
        start = time.perf_counter()
        store.add(obs)
        seconds += time.perf_counter() - start
    return seconds


def check_exact(store: Any, load: Workload) -> bool:
    """Whether 3 drawn minibatches equal what went in."""
    for count, (inds, draw) in enumerate(store.dense_draws()):
        got = store.dense(draw())
        n, t = np.divmod(inds, load.steps)
        for i in range(0, len(inds), max(1, len(inds) // 8)):
            expected = load.dense(int(t[i]))
            for name, value in expected.items():
                if not np.array_equal(np.asarray(got[name][i]), value[n[i]]):
                    return False
        if count == 2:
            break
    return True


def one(workload: str, name: str) -> None:
    torch.set_num_threads(1)
    load = peers_workloads.make(workload)
    warm = make_store(name, load)  # compiles, imports
    warm.add(warm.prepare(0))
    if name == "ours":
        for t in range(1, load.steps):
            warm.add(warm.prepare(t))
        for draws in (warm.draws(), warm.dense_draws()):
            _, draw = next(iter(draws))
            draw()
    del warm
    before = psutil.Process().memory_info().rss
    reset_peak()
    base = status_mib("VmRSS")
    store = make_store(name, load)
    seconds = fill(store, load)
    total = load.steps * load.num_envs
    resident = (psutil.Process().memory_info().rss - before) / total
    first = list(draw_times(store, dense=name == "ours"))
    peak = status_mib("VmHWM") - base
    times = [t for _ in range(2) for t in draw_times(store, dense=False)] or first
    dense = (
        [t for _ in range(2) for t in draw_times(store, dense=True)] if name == "ours" else times
    )
    exact = check_exact(store, load)
    print(
        resident, store.counted() / total, seconds / total * 1e6,
        statistics.median(times) * 1e3, statistics.median(dense) * 1e3, peak, int(exact),
    )  # fmt: skip


def draw_times(store: Any, dense: bool):
    for _, draw in store.dense_draws() if dense else store.draws():
        start = time.perf_counter()
        drawn = draw()
        yield time.perf_counter() - start
        del drawn


def row(workload: str, name: str) -> str:
    environment = os.environ | {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "--one", workload, name]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        reason = done.stderr.strip().splitlines()[-1][:90]
        return f"| {workload} | {name} | - | - | - | - | - | - | {reason} |"
    resident, counted, add, draw, dense, peak, exact = map(float, done.stdout.split()[-7:])
    said = f"{counted:,.0f}" if counted else "-"
    return (
        f"| {workload} | {name} | {resident:,.0f} | {said} | {add:,.1f} | {draw:.2f} | "
        f"{dense:.2f} | {peak:,.0f} | {'yes' if exact else 'no'} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workloads", nargs="+", default=list(STORES))
    parser.add_argument("--stores", nargs="+")
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--rows", action="store_true", help="without the table's head")
    parser.add_argument("--one", nargs=2)
    args = parser.parse_args()
    if args.one:
        one(*args.one)
        return
    lines = (
        []
        if args.rows
        else [
            "| workload | store | resident B | counted B | add us | draw ms | dense ms | peak MiB "
            "| exact |",
            "|---|---|---|---|---|---|---|---|---|",
        ]
    )
    for workload in args.workloads:
        for name in args.stores or STORES[workload]:
            lines.append(row(workload, name))
            print(lines[-1], flush=True)
    if args.markdown:
        args.markdown.write_text("\n".join(["# Rollout stores side by side", "", *lines, ""]))


if __name__ == "__main__":
    main()
