"""What `scripts/ablate.py` does: each switch alone and all together, on the same seeds.

Every cell is a training process of its own, so that one does not inherit another's memory.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from frugal_rl.errors import ConfigError
from frugal_rl.invocation import starting, value
from frugal_rl.memory.advice import samples_of
from frugal_rl.memory.plan import draw_up
from frugal_rl.memory.savings import BY_NAME, SAVINGS, Saving, filled
from frugal_rl.observation.choices import Label
from frugal_rl.ranges import SEED
from frugal_rl.report import plots
from frugal_rl.report.comparison import show
from frugal_rl.report.document import Document, PictureBlock, TableBlock
from frugal_rl.report.results import Row, RunResult, State, compare
from frugal_rl.report.wandb_sink import open_wandb
from frugal_rl.run.lock import writer_of
from frugal_rl.run.nearness import nearest
from frugal_rl.run.search_path import choices, folder

if TYPE_CHECKING:
    from frugal_rl.run.config import RunConfig

Digest = Callable[[Path], str]
"""A run folder -> a digest of the parameters that it ended with."""


WHOLE = "all lossless ones"
"""The profile with all of them stands at the end of the table."""
_SAME_PROBLEM = [s for s in SAVINGS if s.label is not Label.capacity]
SINGLE = (*(s for s in _SAME_PROBLEM if s.name != WHOLE), BY_NAME[WHOLE])
PIECES = 4
MIB = 1 << 20


@dataclass(frozen=True)
class AblationOptions:
    """The options of `scripts/ablate.py` beside those of a run."""

    base: str = "baseline"
    """The memory profile that every cell starts from."""
    out: str = "runs/ablation"
    """Where runs and report go."""
    seeds: Annotated[tuple[int, ...], SEED] = (0,)
    only: tuple[str, ...] = ()
    """Names of optimisations to run; none means all."""

    def __post_init__(self) -> None:
        if not self.seeds:
            raise ConfigError("seeds=[] names no seed; name one for each run of a row: seeds=[0].")


@dataclass(frozen=True)
class Cell:
    """One saving with its runs; `error` says why it is impossible."""

    name: str
    label: str
    words: tuple[str, ...]
    row: Row | None
    digests: tuple[str, ...]
    error: str = ""


def ablate(run: RunConfig, options: AblationOptions, digest: Digest) -> list[Path]:
    """Run all cells and write the table; returns the report's paths.

    Raises:
        ConfigError: the row that the others are compared with cannot be run.
    """
    out, alone_ones = Path(options.out), wanted(options)
    if options.base not in choices("memory"):
        raise ConfigError(
            f"base={options.base} is no memory profile; {nearest(options.base, choices('memory'))}"
        )
    base = (f"memory={options.base}",)
    cells = [_cell(run, options, "none", "", base, digest)]
    if cells[0].error:
        raise ConfigError(f"The row to compare with fails, so there is no table: {cells[0].error}")
    for saving in alone_ones:
        alone = filled(saving, samples_of(run), PIECES)
        words = alone if saving.name == WHOLE else (*base, *alone)
        cells.append(_cell(run, options, saving.name, saving.label.value, words, digest))
        print(" | ".join(table_of(cells).rows[-1]), flush=True)
    track_table(replace(run, run_dir=str(out)), table_of(cells))
    return ablation_document(run, options, cells).write(out, "ablation")


def track_table(run: RunConfig, table: TableBlock) -> None:
    """The same table in W&B, where it is not disabled."""
    if run.tracking.wandb == "disabled":
        return
    for sink in open_wandb(run, draw_up(run)):
        sink.table("ablation", list(table.columns), [list(row) for row in table.rows])
        sink.close()


def wanted(options: AblationOptions) -> list[Saving]:
    """The savings to run, in the order of the table.

    Raises:
        ConfigError: a name that is none of a saving.
    """
    unknown = [name for name in options.only if name not in BY_NAME]
    if unknown:
        raise ConfigError(f"only={unknown[0]} is no saving; {nearest(unknown[0], BY_NAME)}")
    return [s for s in SINGLE if not options.only or s.name in options.only]


def _cell(
    run: RunConfig,
    options: AblationOptions,
    name: str,
    label: str,
    words: tuple[str, ...],
    digest: Digest,
) -> Cell:
    """One row: trained on all seeds, or why it cannot be."""
    own = {"base", "out", "seeds", "only", "seed", "memory", *(w.split("=")[0] for w in words)}
    typed = [o for o in run.overrides if o.split("=")[0] not in own]
    at = Path(options.out) / "runs" / name.replace(" ", "_")
    try:
        run.variant([*typed, *words])
        results = [
            _train([*typed, *words], seed, at / f"seed{seed}", run.config_dir)
            for seed in options.seeds
        ]
    except ConfigError as error:
        return Cell(name, label, words, None, (), str(error))
    (row,) = compare(results)
    return Cell(name, label, words, row, tuple(digest(r.folder) for r in results))


def _train(words: Sequence[str], seed: int, at: Path, config_dir: str) -> RunResult:
    """One training process; a finished one of the same words is not repeated.

    Raises:
        ConfigError: it failed; carries the last line of what it said.
    """
    overrides = [*words, f"seed={seed}"]
    if (at / "report.json").is_file():
        known = RunResult.read(at)
        whole = known.state is State.complete  # one that was asked to stop has a report as well
        if whole and [o for o in known.overrides if not o.startswith("hydra.run.dir")] == overrides:
            return known
    if writer_of(at) is None:  # of other words, or killed: a run begins in no other's folder
        shutil.rmtree(at, ignore_errors=True)
    beside = ["--config-dir", config_dir] if config_dir else []
    command = [*starting("train", folder("scripts")), *beside, *overrides]
    done = subprocess.run(
        [*command, f"hydra.run.dir={value(at)}"],
        capture_output=True,
        text=True,
        errors="backslashreplace",  # an environment may print any bytes
        check=False,
    )
    if done.returncode != 0:
        said = (done.stderr.strip().splitlines() or ["nothing was said"])[-1]
        raise ConfigError(said)
    result = RunResult.read(at)
    if result.state is not State.complete:
        raise ConfigError("it was asked to stop before its end.")
    return result


def ablation_document(run: RunConfig, options: AblationOptions, cells: list[Cell]) -> Document:
    """The table, the reasons of what could not be run, and bars."""
    document = Document(f"Each saving alone: env={run.env.name}, base memory={options.base}")
    document.add(
        f"{run.algo.total_steps:,} steps, {run.algo.num_envs} environments x {run.algo.n_steps} "
        f"steps per rollout, seeds {', '.join(map(str, options.seeds))}. Learning is unchanged "
        "where the final parameters equal those of the first row bit for bit.",
        table_of(cells),
    )
    for cell in cells:
        if cell.error:
            document.add(f"{cell.name}: {cell.error}")
    rows = [replace(c.row, variant=c.name) for c in cells if c.row is not None]
    bars = plots.memory_bars(rows, Path(options.out) / "ablation.png")
    if bars is not None:
        document.add(PictureBlock(bars, "Peak memory of the process tree."))
    return document


def table_of(cells: list[Cell]) -> TableBlock:
    """Optimisation | label | bytes per transition | predicted | measured | steps/s | unchanged?"""
    columns = (
        "optimisation",
        "label",
        "bytes per transition",
        "peak predicted, MiB",
        "peak measured, MiB",
        "steps/s",
        "success",
        "learning unchanged?",
    )
    first = cells[0]
    return TableBlock(columns, [_line(c, first) for c in cells])


def _line(cell: Cell, first: Cell) -> tuple[str, ...]:
    row = cell.row
    if row is None:
        return (cell.name, cell.label, "-", "-", "-", "-", "-", "impossible here")
    same = "bit for bit" if cell.digests == first.digests else "no"
    return (
        cell.name,
        cell.label,
        show(row.bytes_per_transition, ",.0f"),
        _mib(row.predicted_bytes),
        _mib(row.measured_bytes),
        show(row.steps_per_second, ",.0f"),
        show(row.success, ".1%"),
        "-" if cell is first else same,
    )


def _mib(count: float | None) -> str:
    """One unit for all rows, so that they can be compared at a glance."""
    return show(None if count is None else count / MIB, ",.0f")
