"""What training on several processes costs: steps per second of processor time, memory of each.

    python benchmarks/ranks.py [--env nclone] [--ranks 2 4] [--stretches 8] [--steps 786432]

The same run, split over so many processes by `launch=torchrun`, beside as many processes that each
train such a share at the same time and know nothing of each other: what is between them is what
talking to each other costs, and not that cores share caches or that small minibatches are slow.
All of them take turns, from one line of metrics to the next (`run_rates.py`). Processor time is
that of all processes, gloo's included; ratios are the median of the stretches', with their spread.
Peaks are those that the run itself measured, per process.
Last result: see benchmarks/ranks.md.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path

from run_rates import Rate, Watched, in_turns

from frugal_rl.report.files import read_json

ENVS, STEPS, BATCH = 128, 128, 2048
WORDS = f"memory=parallel algo.n_steps={STEPS} algo.n_epochs=4 tracking=disabled"
QUIET = "evaluation.episodes=0 hardware.threads=1 sweep.ledger=''"
FIRST_STEPS = 2 * ENVS * STEPS
MIB = 2**20


def words_of(env: str, share: int, steps: int) -> list[str]:
    """A run of one `share`th of the environments, minibatches and steps."""
    sizes = [f"algo.num_envs={ENVS // share}", f"algo.batch_size={BATCH // share}"]
    return [f"env={env}", *f"{WORDS} {QUIET}".split(), *sizes, f"algo.total_steps={steps // share}"]


def watched(folder: Path, runs: list[list[str]], steps: int) -> list[Watched]:
    """Runs that will be side by side."""
    ends = FIRST_STEPS // len(runs), steps // len(runs)
    return [Watched(folder / str(k), run, *ends) for k, run in enumerate(runs)]


def _peaks(folder: Path) -> list[int]:
    known = read_json(folder / "summary.json")
    if (folder / "report.json").is_file():
        known |= read_json(folder / "report.json")
    return [
        int(peak) for peak in known.get("memory/rank_peak_bytes") or [known["memory/peak_bytes"]]
    ]


def together(env: str, ranks: int, steps: int) -> list[list[str]]:
    """One run on so many processes."""
    return [[*words_of(env, 1, steps), "launch=torchrun", f"launch.processes={ranks}"]]


def apart(env: str, ranks: int, steps: int) -> list[list[str]]:
    """As many runs of a share each."""
    return [[*words_of(env, ranks, steps), f"seed={k}"] for k in range(ranks)]


def ratio(rates: list[Rate], others: list[Rate]) -> str:
    """Steps per processor second beside another's: the median, the lowest and the highest."""
    pairs = zip(rates, others, strict=True)
    found = [one.per_processor_second / other.per_processor_second for one, other in pairs]
    return f"{statistics.median(found):.3f} ({min(found):.3f} to {max(found):.3f})"


def main() -> None:
    """All numbers of processes, together and apart, in turns."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--env", default="nclone")
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--stretches", type=int, default=8)
    parser.add_argument("--steps", type=int, default=786_432)
    given = parser.parse_args()
    ways = {"apart": apart, "together": together}
    kinds = [(1, "apart"), *((ranks, way) for ranks in given.ranks for way in ways)]
    with tempfile.TemporaryDirectory() as name:
        folders = [Path(name) / f"{ranks}_{way}" for ranks, way in kinds]
        for folder in folders:
            folder.mkdir()
        groups = [
            watched(folder, ways[way](given.env, ranks, given.steps), given.steps)
            for folder, (ranks, way) in zip(folders, kinds, strict=True)
        ]
        found = dict(zip(kinds, in_turns(groups, given.stretches), strict=True))
        peaks = [[peak for run in group for peak in _peaks(run.folder)] for group in groups]
    print("\n| processes | steps per processor second | of alone | of apart | steps/s | MiB each |")
    print("|---|---|---|---|---|---|")
    for (ranks, way), held in zip(kinds, peaks, strict=True):
        rates = found[ranks, way]
        rate = statistics.median(one.per_processor_second for one in rates)
        clock = statistics.median(one.per_second for one in rates)
        beside = (ratio(rates, found[1, "apart"]), ratio(rates, found[ranks, "apart"]))
        row = (f"{ranks} {way if ranks > 1 else 'alone'}", f"{rate:,.0f}", *beside, f"{clock:,.0f}")
        print("| " + " | ".join((*row, ", ".join(f"{one / MIB:,.0f}" for one in held))) + " |")


if __name__ == "__main__":
    main()
