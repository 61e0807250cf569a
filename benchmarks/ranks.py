"""Steps per second of processor time, and memory per process, at 1, 2 and 4 processes.

    python benchmarks/ranks.py [--env nclone] [--ranks 1 2] [--rounds 3] [--steps 131072]

The same run, split over so many processes by `launch=torchrun`. Each round trains a long and a
short run with every number of processes, in turn; their difference leaves out what starting
costs. Processor time is that of all processes, gloo's included; `of one` is the median of the
rounds' ratios. Peaks are those that the run itself measured, per process.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from frugal_rl.report.files import read_json

SIZES = "memory=parallel algo.num_envs=128 algo.n_steps=128 algo.batch_size=2048 algo.n_epochs=4"
QUIET = "tracking=disabled evaluation.episodes=0 hardware.threads=1 sweep.ledger=''"
MIB = 2**20


@dataclass(frozen=True)
class Cost:
    """What a run took, in seconds of processor and clock, and the peak of each process."""

    cpu: float
    clock: float
    peaks: tuple[int, ...] = ()

    def __sub__(self, other: Cost) -> Cost:
        return Cost(self.cpu - other.cpu, self.clock - other.clock, self.peaks)


def trained(env: str, ranks: int, steps: int) -> Cost:
    """One run in processes of its own."""
    many = f"launch=torchrun launch.processes={ranks}" if ranks > 1 else ""
    with tempfile.TemporaryDirectory() as folder:
        words = [*f"env={env} {SIZES} {QUIET} {many}".split(), f"algo.total_steps={steps}"]
        command = [sys.executable, "scripts/train.py", *words, f"hydra.run.dir={folder}"]
        before, began = _cpu(), time.monotonic()
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"{' '.join(words)}: {done.stderr[-2000:]}")
        cost = _cpu() - before, time.monotonic() - began
        summary = read_json(Path(folder) / "summary.json")
        report = Path(folder) / "report.json"
        known = summary | (read_json(report) if report.is_file() else {})
        peaks = known.get("memory/rank_peak_bytes") or [known.get("memory/peak_bytes", 0)]
        return Cost(*cost, tuple(int(peak) for peak in peaks))


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """All numbers of processes in turn, round by round."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--env", default="nclone")
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=131_072)
    given = parser.parse_args()
    trained(given.env, 1, 16_384)  # compiles and measures what later ones read
    found: dict[int, list[Cost]] = {ranks: [] for ranks in given.ranks}
    for _ in range(given.rounds):
        for ranks in given.ranks:
            short = trained(given.env, ranks, 16_384)
            found[ranks].append(trained(given.env, ranks, 16_384 + given.steps) - short)
    first = found[given.ranks[0]]
    print("| processes | steps per processor second | of one | steps per second | MiB each |")
    print("|---|---|---|---|---|")
    for ranks, costs in found.items():
        rate = statistics.median(given.steps / cost.cpu for cost in costs)
        ratio = statistics.median(a.cpu / b.cpu for a, b in zip(first, costs, strict=True))
        clock = statistics.median(given.steps / cost.clock for cost in costs)
        peaks = ", ".join(f"{peak / MIB:,.0f}" for peak in costs[-1].peaks)
        print(f"| {ranks} | {rate:,.0f} | {ratio:.3f} | {clock:,.0f} | {peaks} |")


if __name__ == "__main__":
    main()
