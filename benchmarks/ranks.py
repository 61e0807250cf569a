"""What training on several processes costs: steps per second of processor time, memory of each.

    python benchmarks/ranks.py [--env nclone] [--ranks 2 4] [--stretches 8] [--steps 786432]
        [--num-envs 128] [--n-steps 128] [--batch 2048] [--words algo.engine=compiled ...]

The same run, split over so many processes by `launch=torchrun` (together), is compared with one
process alone; with as many whole runs that share the machine and nothing else (beside), so that
cores which share caches and a hypervisor count on both sides; and with as many processes that each
train such a share and know nothing of each other (apart). From alone to beside is the machine's
cost, from beside to apart that of half minibatches, from apart to together that of talking.
A run that grew with its processes (grown: as many environments and samples for each of them as one
alone has) differs from beside by talking alone.
All of them take turns, from one line of metrics to the next (`run_rates.py`). Processor time is
that of all processes, gloo's included; ratios are the median of the stretches', with their spread.
Peaks are those that the run itself measured, per process.
Last result: see benchmarks/ranks.md.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from run_rates import Rate, Watched, in_turns

from frugal_rl.report.files import read_json

QUIET = "memory=parallel tracking=disabled evaluation.episodes=0 hardware.threads=1 sweep.ledger=''"
FIRST_ITERATIONS = 2
"""Which no figure counts."""
MIB = 2**20


@dataclass(frozen=True)
class Job:
    """What one process does alone."""

    words: tuple[str, ...]
    num_envs: int
    n_steps: int
    batch: int
    steps: int

    def words_of(self, share: Fraction) -> list[str]:
        """A run of a share of the environments, minibatches and steps."""
        sizes = {
            "num_envs": self.num_envs * share,
            "batch_size": self.batch * share,
            "total_steps": self.steps * share,
            "n_steps": self.n_steps,
        }
        own = [f"algo.{name}={int(size)}" for name, size in sizes.items()]
        return [*QUIET.split(), "algo.n_epochs=4", *self.words, *own]

    def watched(self, folder: Path, runs: list[list[str]], share: Fraction) -> list[Watched]:
        """Runs of a share each that will be side by side."""
        first = FIRST_ITERATIONS * self.num_envs * self.n_steps
        ends = int(first * share), int(self.steps * share)
        return [Watched(folder / str(k), run, *ends) for k, run in enumerate(runs)]


def _peaks(folder: Path) -> list[int]:
    known = read_json(folder / "summary.json")
    if (folder / "report.json").is_file():
        known |= read_json(folder / "report.json")
    return [
        int(peak) for peak in known.get("memory/rank_peak_bytes") or [known["memory/peak_bytes"]]
    ]


def share_of(way: str, ranks: int) -> Fraction:
    """How much of one process's work each run of a kind does."""
    return {"apart": Fraction(1, ranks), "grown": Fraction(ranks)}.get(way, Fraction(1))


def runs_of(way: str, job: Job, ranks: int) -> list[list[str]]:
    """One run on so many processes, or as many runs of one process."""
    words = job.words_of(share_of(way, ranks))
    if way in ("together", "grown"):
        return [[*words, "launch=torchrun", f"launch.processes={ranks}"]]
    return [[*words, f"seed={k}"] for k in range(ranks)]


def ratio(rates: list[Rate], others: list[Rate]) -> str:
    """Steps per processor second beside another's: the median, the lowest and the highest."""
    pairs = zip(rates, others, strict=True)
    found = [one.per_processor_second / other.per_processor_second for one, other in pairs]
    return f"{statistics.median(found):.3f} ({min(found):.3f} to {max(found):.3f})"


WAYS = ("beside", "apart", "together", "grown")
Kind = tuple[int, str]
ALONE: Kind = (1, "beside")
HEAD = (
    "processes | steps per processor second | of alone | of beside | of apart | steps/s | MiB each"
)


def row(kind: Kind, found: dict[Kind, list[Rate]], peaks: list[int]) -> str:
    """One kind of run beside the others of as many processes."""
    ranks, way = kind
    rate = statistics.median(one.per_processor_second for one in found[kind])
    clock = statistics.median(one.per_second for one in found[kind])
    others = [(ranks, "beside"), (ranks, "apart")] if ranks > 1 else []
    ratios = [ratio(found[kind], found[other]) for other in (ALONE, *others)]
    name = "1 alone" if kind == ALONE else f"{ranks} {way}"
    cells = (name, f"{rate:,.0f}", *[*ratios, "", ""][:3], f"{clock:,.0f}")
    return " | ".join((*cells, ", ".join(f"{one / MIB:,.0f}" for one in peaks)))


def main() -> None:
    """All numbers of processes, together and apart, in turns."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--env", default="nclone")
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--stretches", type=int, default=8)
    parser.add_argument("--steps", type=int, default=786_432)
    parser.add_argument("--num-envs", type=int, default=128)
    parser.add_argument("--n-steps", type=int, default=128)
    parser.add_argument("--batch", type=int, default=2048)
    parser.add_argument("--words", nargs="*", default=[])
    given = parser.parse_args()
    words = (f"env={given.env}", *given.words)
    job = Job(words, given.num_envs, given.n_steps, given.batch, given.steps)
    kinds = [ALONE, *((ranks, way) for ranks in given.ranks for way in WAYS)]
    with tempfile.TemporaryDirectory() as name:
        groups = []
        for ranks, way in kinds:
            folder = Path(name) / f"{ranks}_{way}"
            folder.mkdir()
            runs = runs_of(way, job, ranks)
            groups.append(job.watched(folder, runs, share_of(way, ranks)))
        found = dict(zip(kinds, in_turns(groups, given.stretches), strict=True))
        peaks = [[peak for run in group for peak in _peaks(run.folder)] for group in groups]
    print(f"\n| {HEAD} |\n|{'---|' * (HEAD.count('|') + 1)}")
    for kind, held in zip(kinds, peaks, strict=True):
        print(f"| {row(kind, found, held)} |")


if __name__ == "__main__":
    main()
