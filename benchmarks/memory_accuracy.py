"""Predicted against measured peak memory over (environment, profile, size) cells.

    python benchmarks/memory_accuracy.py [--only WORD] [--out FOLDER] [--jobs 2]

Each cell is a training run of two rollouts in a process of its own. Writes
benchmarks/memory_accuracy.md; a finished cell in FOLDER is not repeated.
"""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from frugal_rl.memory.part import human
from frugal_rl.report.document import Document, TableBlock
from frugal_rl.report.files import write_text
from frugal_rl.report.results import RunResult

ROOT = Path(__file__).resolve().parents[1]
STATE_PROFILES = ("baseline", "parallel", "lossless", "attention", "sparse")


@dataclass(frozen=True)
class Cell:
    """One training run: an environment's words, a profile, environments x steps, minibatch."""

    env: str
    profile: str
    num_envs: int
    n_steps: int
    batch_size: int

    @property
    def words(self) -> list[str]:
        """What is typed."""
        return [
            *self.env.split(),
            f"memory={self.profile}",
            f"algo.num_envs={self.num_envs}",
            f"algo.n_steps={self.n_steps}",
            f"algo.batch_size={self.batch_size}",
            f"algo.total_steps={2 * self.num_envs * self.n_steps}",
            "algo.n_epochs=1",
            "evaluation.episodes=4",
            "evaluation.num_envs=4",
        ]

    @property
    def name(self) -> str:
        """A folder's name."""
        env = re.sub(r"[^a-z]+", "_", self.env.removeprefix("env="))
        return f"{env}-{self.profile}-{self.num_envs}x{self.n_steps}"


def grid(env: str, profiles: tuple[str, ...], *sizes: tuple[int, int, int]) -> list[Cell]:
    """All combinations."""
    return [Cell(env, p, *size) for p in profiles for size in sizes]


SAVING = STATE_PROFILES[1:]
MINE = "env=mine_daily_small env.obs=columns"
ATTENTION = "env=nclone agent=attention"
CELLS = [
    *grid("env=nclone", ("baseline",), (8, 32, 64), (32, 64, 512)),
    *grid("env=nclone", SAVING, (32, 128, 512), (128, 256, 4096)),
    *grid(MINE, ("baseline", "lossless", "attention"), (16, 64, 128), (32, 128, 512)),
    *grid("env=mine_cpit", ("baseline", "lossless"), (8, 64, 128)),
    *grid("env=fighting", ("baseline", "lossless"), (8, 64, 128), (16, 128, 512)),
    *grid("env=fighting env.obs=gray", ("baseline", "lossless"), (8, 64, 128), (16, 128, 512)),
    *grid("env=nclone env.obs=graph", ("baseline",), (8, 16, 32), (16, 32, 64)),
    *grid("env=nclone env.obs=graph", SAVING, (16, 16, 64), (32, 32, 128)),
    *grid(ATTENTION, ("lossless",), (16, 64, 256), (32, 64, 1024)),
    *grid("env=toy", ("baseline", "lossless"), (64, 256, 1024), (512, 1024, 8192)),
]  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """What was predicted and measured in one cell."""

    cell: Cell
    predicted: float
    measured: float
    arrays_exact: bool
    phases: str
    """The phase with the highest peak, as predicted and as measured."""

    @property
    def error(self) -> float:
        """Prediction over measurement, minus one."""
        return self.predicted / self.measured - 1


def run_cell(cell: Cell, out: Path) -> Outcome:
    """Train, unless it was done before, and read the result."""
    folder = out / cell.name
    if not (folder / "report.json").is_file():
        command = [sys.executable, str(ROOT / "scripts" / "train.py"), *cell.words]
        subprocess.run([*command, f"hydra.run.dir={folder}"], check=True, capture_output=True)
    run = RunResult.read(folder)
    planned = {
        p["name"].removeprefix("rollout: "): p["ram_bytes"]
        for p in run.plan["parts"]
        if p["name"].startswith("rollout: ")
    }
    held = {
        name.removeprefix("rollout/"): count
        for name, count in run.summary["parts"].items()
        if name.startswith("rollout/") and name != "rollout/minibatch"
    }
    predicted, measured = run.plan["ram_bytes"], run.summary["memory/peak_bytes"]
    peaks = {p: run.summary.get(f"memory/{p}_peak_bytes", 0) for p in run.plan["phases"]}
    phases = f"{run.plan['peak_phase']} / {max(peaks, key=peaks.__getitem__)}"
    return Outcome(cell, predicted, measured, planned == held, phases)


def tried(cell: Cell, out: Path) -> Outcome | str:
    """The outcome of a cell, or what it said when it failed; a line is printed."""
    try:
        outcome = run_cell(cell, out)
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode().strip().splitlines()[-1:]
        words = f"{cell.name} failed: {' '.join(said)}"
        print(words, flush=True)
        return words
    print(
        f"{cell.name:48} {human(outcome.predicted):>10} {human(outcome.measured):>10} "
        f"{outcome.error:+.1%} {'exact' if outcome.arrays_exact else 'NOT exact'} {outcome.phases}",
        flush=True,
    )
    return outcome


def document(outcomes: list[Outcome], failed: list[str]) -> Document:
    """The table, its median and its worst."""
    errors = [abs(o.error) for o in outcomes]
    exact = sum(o.arrays_exact for o in outcomes)
    page = Document("Predicted against measured peak memory")
    page.add(
        f"{len(outcomes)} cells: median error {statistics.median(errors):.1%}, worst "
        f"{max(errors):.1%}; the rollout's arrays are predicted to the byte in {exact}.",
        "The peak is that of the process tree: anonymous and shared pages by their share, mapped "
        "files once per program.",
    )
    rows = [
        (
            o.cell.env, o.cell.profile, f"{o.cell.num_envs} x {o.cell.n_steps}",
            human(o.predicted), human(o.measured), f"{o.error:+.1%}",
            "exact" if o.arrays_exact else "NOT exact", o.phases,
        )
        for o in outcomes
    ]  # fmt: skip
    columns = ("words", "memory", "envs x steps", "predicted", "measured", "error", "arrays")
    columns += ("highest phase",)
    page.add(TableBlock(columns, rows))
    for line in failed:
        page.add(line)
    return page


def main() -> None:
    """Run the cells and write the table after each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--out", default="runs/memory_accuracy")
    parser.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args()
    out = Path(arguments.out)
    wanted = [c for c in CELLS if arguments.only in c.name]
    with ThreadPoolExecutor(arguments.jobs) as pool:
        results = list(pool.map(lambda c: tried(c, out), wanted))
    failed = [r for r in results if isinstance(r, str)]
    outcomes = [run_cell(c, out) for c in CELLS if (out / c.name / "report.json").is_file()]
    if outcomes:
        text = document(outcomes, failed).markdown(ROOT)
        write_text(ROOT / "benchmarks" / "memory_accuracy.md", text)


if __name__ == "__main__":
    main()
