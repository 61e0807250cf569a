"""Merging trajectories: the guide's table, measured again, `list` being 1.0.

    python benchmarks/rollout_trajectories.py [--updates 100] [--cases 0 1 ...] [--device cpu]
        [--markdown FILE]

Three workers write 1,024 steps (and more) of [state, reward, mask, action, log-probability]; each
strategy merges them 100 times in a process of its own. `peak` is what the process holds at most
above its start, sources included; `update` the median time of one merge (on the CPU, processor
time of one thread);
`growth` the change of resident memory from the 10th to the last update.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

import psutil
import torch

from frugal_rl.memory.choices import Trajectories
from frugal_rl.store.trajectories import Item, TrajectoryBuffer, trimmed

WORKERS = 3
CASES = {  # label: steps per worker, floats per state, share of the slot that is filled
    "3 x 1,024, 12 MiB": (1024, 1000, 1.0),
    "3 x 1,024, 96 MiB": (1024, 8192, 1.0),
    "3 x 1,024, 96 MiB, lengths vary": (1024, 8192, 0.9),
    "3 x 4,096, 384 MiB": (4096, 8192, 1.0),
    "3 x 4,096, 384 MiB, lengths vary": (4096, 8192, 0.9),
}


def peak_kib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def resident_mib() -> float:
    return psutil.Process().memory_info().rss / 2**20


def one(strategy: Trajectories, case: str, updates: int, device: str) -> None:
    steps, floats, share = CASES[case]
    items = (Item((floats,), torch.float32), *(Item((), torch.float32) for _ in range(4)))
    lengths = [steps - round(steps * (1 - share)) * (w + 1) // WORKERS for w in range(WORKERS)]
    torch.set_num_threads(1)
    if device == "cuda":
        torch.zeros(1, device=device)
    buffer = TrajectoryBuffer(strategy, device, max_buffer_size=WORKERS * steps)
    clock = time.perf_counter if device == "cuda" else time.process_time
    before, times, resident = peak_kib(), [], []
    for update in range(updates):
        slots = buffer.slots(WORKERS, steps, items)
        for slot in slots:
            for tensor in slot:
                tensor.fill_(update)
        start = clock()
        merged, reward = buffer.update(trimmed(slots, lengths))
        times.append(clock() - start)
        assert merged == sum(lengths)
        assert reward == update
        del slots, tensor, slot
        resident.append(resident_mib())
    growth = resident[-1] - resident[min(9, updates - 1)]
    merged_mib = sum(t.nbytes for t in buffer) / 2**20
    peak = (peak_kib() - before) / 1024
    device_peak = torch.cuda.max_memory_allocated() / 2**20 if device == "cuda" else 0.0
    print(merged_mib, peak, device_peak, statistics.median(times) * 1e3, growth)


def measure(strategy: Trajectories, case: str, args: argparse.Namespace) -> list[float]:
    command = [sys.executable, __file__, "--one", strategy.value, "--case", case]
    command += ["--updates", str(args.updates), "--device", args.device]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return [float(x) for x in done.stdout.split()]


def table(args: argparse.Namespace) -> str:
    lines = [
        "| case | strategy | merged MiB | peak MiB | of list | device MiB | update ms | of list "
        "| growth MiB |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for case in [list(CASES)[i] for i in args.cases]:
        base: list[float] = []
        for strategy in Trajectories:
            merged, peak, device, ms, growth = row = measure(strategy, case, args)
            base = base or row
            lines.append(
                f"| {case} | {strategy.value} | {merged:.0f} | {peak:.0f} | {peak / base[1]:.2f} | "
                f"{device:.0f} | {ms:.3f} | {ms / base[3]:.3f} | {growth:.1f} |"
            )
            print(lines[-1], flush=True)
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--updates", type=int, default=100)
    parser.add_argument("--cases", nargs="+", type=int, default=list(range(len(CASES))))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--one")
    parser.add_argument("--case")
    args = parser.parse_args()
    if args.one:
        one(Trajectories(args.one), args.case, args.updates, args.device)
        return
    text = table(args)
    if args.markdown:
        args.markdown.write_text(
            "# Merging trajectories\n\n`python benchmarks/rollout_trajectories.py`"
            f", {args.updates} updates, device {args.device}, torch {torch.__version__}\n\n{text}\n"
        )


if __name__ == "__main__":
    main()
