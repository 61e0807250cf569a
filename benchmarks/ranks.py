"""What training on several processes costs: steps per second of processor time, memory of each.

    python benchmarks/ranks.py [--env nclone] [--ranks 2 4] [--rounds 3] [--steps 131072]

The same run, split over so many processes by `launch=torchrun`, beside as many processes that each
train such a share at the same time and know nothing of each other: what is between them is what
talking to each other costs, and not that cores share caches or that small minibatches are slow.
Each round trains a long and a short run; their difference leaves out what starting costs. Processor
time is that of all processes, gloo's included; ratios are the median of the rounds'. Peaks are
those that the run itself measured, per process.
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

ENVS, STEPS, BATCH = 128, 128, 2048
WORDS = f"memory=parallel algo.n_steps={STEPS} algo.n_epochs=4 tracking=disabled"
QUIET = "evaluation.episodes=0 hardware.threads=1 sweep.ledger=''"
SHORT = ENVS * STEPS
MIB = 2**20


@dataclass(frozen=True)
class Cost:
    """What runs took, in seconds of processor and clock, and the peak of each process."""

    cpu: float
    clock: float
    peaks: tuple[int, ...] = ()

    def __sub__(self, other: Cost) -> Cost:
        return Cost(self.cpu - other.cpu, self.clock - other.clock, self.peaks)


def command(env: str, share: int, steps: int, *words: str) -> list[str]:
    """A run of one `share`th of the environments, minibatches and steps."""
    sizes = [f"algo.num_envs={ENVS // share}", f"algo.batch_size={BATCH // share}"]
    given = [
        f"env={env}",
        *f"{WORDS} {QUIET}".split(),
        *sizes,
        f"algo.total_steps={steps // share}",
    ]
    return [sys.executable, "scripts/train.py", *given, *words]


def cost(commands: list[list[str]]) -> Cost:
    """Runs side by side, to their end."""
    before, began = _cpu(), time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        folders = [Path(name) / str(k) for k in range(len(commands))]
        runs = [
            subprocess.Popen(
                [*words, f"hydra.run.dir={folder}"],
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            )
            for words, folder in zip(commands, folders, strict=True)
        ]  # fmt: skip
        for run in runs:
            said = run.communicate()[1]
            if run.returncode:
                sys.exit(f"{run.args}: {said[-2000:]}")
        peaks = [peak for folder in folders for peak in _peaks(folder)]
        return Cost(_cpu() - before, time.monotonic() - began, tuple(peaks))


def _peaks(folder: Path) -> list[int]:
    known = read_json(folder / "summary.json")
    if (folder / "report.json").is_file():
        known |= read_json(folder / "report.json")
    return [
        int(peak) for peak in known.get("memory/rank_peak_bytes") or [known["memory/peak_bytes"]]
    ]


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """All numbers of processes in turn, together and apart, round by round."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--env", default="nclone")
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=131_072)
    given = parser.parse_args()

    def together(ranks: int, steps: int) -> Cost:
        launch = ["launch=torchrun", f"launch.processes={ranks}"]
        return cost([command(given.env, 1, steps, *launch)])

    def apart(ranks: int, steps: int) -> Cost:
        return cost([command(given.env, ranks, steps, f"seed={k}") for k in range(ranks)])

    kinds = {(1, "alone"): apart}
    kinds |= {
        (n, how): way
        for n in given.ranks
        for how, way in (("apart", apart), ("together", together))
    }
    apart(1, SHORT)  # compiles and measures what later ones read
    found: dict[tuple[int, str], list[Cost]] = {kind: [] for kind in kinds}
    for _ in range(given.rounds):
        for (ranks, how), run in kinds.items():
            found[ranks, how].append(run(ranks, SHORT + given.steps) - run(ranks, SHORT))
    print("| processes | steps per processor second | of apart | steps per second | MiB each |")
    print("|---|---|---|---|---|")
    for (ranks, how), costs in found.items():
        base = found[ranks, "apart" if ranks > 1 else "alone"]
        rate = statistics.median(given.steps / one.cpu for one in costs)
        ratio = statistics.median(a.cpu / b.cpu for a, b in zip(base, costs, strict=True))
        clock = statistics.median(given.steps / one.clock for one in costs)
        peaks = ", ".join(f"{peak / MIB:,.0f}" for peak in costs[-1].peaks)
        print(f"| {ranks} {how} | {rate:,.0f} | {ratio:.3f} | {clock:,.0f} | {peaks} |", flush=True)


if __name__ == "__main__":
    main()
