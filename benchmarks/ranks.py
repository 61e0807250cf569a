"""What training on several processes costs: steps per second of processor time, memory of each.

    python benchmarks/ranks.py [--env nclone] [--ranks 2 4] [--rounds 3] [--steps 786432]

The same run, split over so many processes by `launch=torchrun`, beside as many processes that each
train such a share at the same time and know nothing of each other: what is between them is what
talking to each other costs, and not that cores share caches or that small minibatches are slow.
Rates are those between the second line of metrics and the last one: what starts is left out.
Processor time is that of all processes, gloo's included; ratios are the median of the rounds'.
Peaks are those that the run itself measured, per process.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from dataclasses import dataclass
from pathlib import Path

from run_rates import Watched, watch

from frugal_rl.report.files import read_json

ENVS, STEPS, BATCH = 128, 128, 2048
WORDS = f"memory=parallel algo.n_steps={STEPS} algo.n_epochs=4 tracking=disabled"
QUIET = "evaluation.episodes=0 hardware.threads=1 sweep.ledger=''"
FIRST_STEPS = 2 * ENVS * STEPS
MIB = 2**20


@dataclass(frozen=True)
class Cost:
    """Steps per processor second and per second of runs together, and each process's peak."""

    per_processor_second: float
    per_second: float
    peaks: tuple[int, ...]


def words_of(env: str, share: int, steps: int) -> list[str]:
    """A run of one `share`th of the environments, minibatches and steps."""
    sizes = [f"algo.num_envs={ENVS // share}", f"algo.batch_size={BATCH // share}"]
    return [f"env={env}", *f"{WORDS} {QUIET}".split(), *sizes, f"algo.total_steps={steps // share}"]


def cost(runs: list[list[str]], steps: int) -> Cost:
    """Runs side by side, to their end."""
    with tempfile.TemporaryDirectory() as name:
        folders = [Path(name) / str(k) for k in range(len(runs))]
        ends = FIRST_STEPS // len(runs), steps // len(runs)
        rates = watch([Watched(*run, *ends) for run in zip(folders, runs, strict=True)])
        peaks = [peak for folder in folders for peak in _peaks(folder)]
    return Cost(
        statistics.harmonic_mean(rate.per_processor_second for rate in rates),
        sum(rate.per_second for rate in rates),
        tuple(peaks),
    )


def _peaks(folder: Path) -> list[int]:
    known = read_json(folder / "summary.json")
    if (folder / "report.json").is_file():
        known |= read_json(folder / "report.json")
    return [
        int(peak) for peak in known.get("memory/rank_peak_bytes") or [known["memory/peak_bytes"]]
    ]


def main() -> None:
    """All numbers of processes in turn, together and apart, round by round."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--env", default="nclone")
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=786_432)
    given = parser.parse_args()

    def together(ranks: int) -> Cost:
        launch = ["launch=torchrun", f"launch.processes={ranks}"]
        return cost([[*words_of(given.env, 1, given.steps), *launch]], given.steps)

    def apart(ranks: int) -> Cost:
        words = words_of(given.env, ranks, given.steps)
        return cost([[*words, f"seed={k}"] for k in range(ranks)], given.steps)

    kinds = {(1, "alone"): apart}
    kinds |= {
        (n, how): way
        for n in given.ranks
        for how, way in (("apart", apart), ("together", together))
    }
    found: dict[tuple[int, str], list[Cost]] = {kind: [] for kind in kinds}
    for _ in range(given.rounds):
        for (ranks, how), run in kinds.items():
            found[ranks, how].append(run(ranks))
            print(ranks, how, found[ranks, how][-1], flush=True)
    rates = "steps per processor second | of alone | of apart | steps per second"
    print(f"\n| processes | {rates} | MiB each |")
    print("|---|---|---|---|---|---|")
    for (ranks, how), costs in found.items():
        rate, clock = (
            statistics.median(getattr(one, what) for one in costs)
            for what in ("per_processor_second", "per_second")
        )
        ratios = [
            statistics.median(
                one.per_processor_second / other.per_processor_second
                for one, other in zip(costs, found[base], strict=True)
            )
            for base in ((1, "alone"), (ranks, "apart" if ranks > 1 else "alone"))
        ]
        peaks = ", ".join(f"{peak / MIB:,.0f}" for peak in costs[-1].peaks)
        row = (f"{ranks} {how}", f"{rate:,.0f}", *(f"{r:.3f}" for r in ratios), f"{clock:,.0f}")
        print("| " + " | ".join((*row, peaks)) + " |", flush=True)


if __name__ == "__main__":
    main()
