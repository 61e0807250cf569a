"""What `scripts/ablate.py` does: each switch alone and all together, on the same seeds.

Every cell is a training process of its own, so that one does not inherit another's memory.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from frugal_rl.errors import ConfigError
from frugal_rl.memory.advice import variant
from frugal_rl.memory.plan import draw_up
from frugal_rl.report import plots
from frugal_rl.report.comparison import show
from frugal_rl.report.document import Document, PictureBlock, TableBlock
from frugal_rl.report.results import Row, RunResult, compare
from frugal_rl.run.compose import folder
from frugal_rl.run.config import RunConfig

Digest = Callable[[Path], str]
"""A run folder -> a digest of the parameters that it ended with."""


@dataclass(frozen=True)
class Optimisation:
    """One saving: its name, the words that switch it on, and its label."""

    name: str
    words: tuple[str, ...]
    label: str


OPTIMISATIONS = (
    Optimisation("drop internal observations", ("memory.internal_observations=false",), "lossless"),
    Optimisation("stack frames once", ("memory.frame_stack=once",), "lossless"),
    Optimisation("tightest exact storage", ("memory.storage=lossless",), "lossless"),
    Optimisation("share level data", ("memory.level_data=shared",), "lossless"),
    Optimisation("reuse buffers", ("memory.buffers=reused",), "lossless"),
    Optimisation("build graphs on demand", ("memory.graphs=lazy",), "lossless"),
    Optimisation(
        "draw only what is observed",
        ("memory.rendering=observed", "memory.animation=false"),
        "lossless",
    ),
    Optimisation("gather by index", ("memory.shuffle=gather",), "lossless"),
    Optimisation("pin the allocator", ("memory.allocator=pinned",), "lossless"),
    Optimisation("recompute activations", ("memory.gradient_checkpointing=true",), "lossless"),
    Optimisation("half precision storage", ("memory.storage=half",), "precision"),
    Optimisation("sparse storage", ("memory.storage=sparse",), "precision"),
    Optimisation("smallest storage", ("memory.storage=smallest",), "precision"),
    Optimisation("bfloat16 arithmetic", ("memory.precision=bf16",), "precision"),
    Optimisation("micro-batches", ("memory.micro_batch=",), "precision"),
    Optimisation("all lossless ones", ("memory=lossless",), "lossless"),
)
"""Every switch of the profile that changes what a run holds; the size of a micro-batch is filled
in."""

PIECES = 4
MIB = 1 << 20


@dataclass(frozen=True)
class AblationOptions:
    """The options of `scripts/ablate.py` beside those of a run."""

    base: str = "baseline"
    """The memory profile that every cell starts from."""
    out: str = "runs/ablation"
    """Where runs and report go."""
    seeds: tuple[int, ...] = (0,)
    only: tuple[str, ...] = ()
    """Names of optimisations to run; none means all."""


@dataclass(frozen=True)
class Cell:
    """One optimisation with its runs; `error` says why it is impossible."""

    optimisation: Optimisation
    row: Row | None
    digests: tuple[str, ...]
    error: str = ""


def ablate(run: RunConfig, options: AblationOptions, digest: Digest) -> list[Path]:
    """Run all cells and write the table; returns the report's paths.

    Raises:
        ConfigError: the row that the others are compared with cannot be run.
    """
    out = Path(options.out)
    base = Optimisation("none", (f"memory={options.base}",), "")
    wanted = [o for o in OPTIMISATIONS if not options.only or o.name in options.only]
    cells = [_cell(run, options, base, digest, out / "runs" / "none")]
    if cells[0].error:
        raise ConfigError(f"The row to compare with fails, so there is no table: {cells[0].error}")
    for optimisation in wanted:
        words = (*base.words, *filled(optimisation.words, run))
        if optimisation.words[0].startswith("memory="):
            words = optimisation.words
        at = out / "runs" / optimisation.name.replace(" ", "_")
        filled_in = Optimisation(optimisation.name, words, optimisation.label)
        cells.append(_cell(run, options, filled_in, digest, at))
        print(" | ".join(table_of(cells).rows[-1]), flush=True)
    track_table(replace(run, run_dir=str(out)), table_of(cells))
    return ablation_document(run, options, cells).write(out, "ablation")


def track_table(run: RunConfig, table: TableBlock) -> None:
    """The same table in W&B, where it is not disabled."""
    if run.tracking.wandb == "disabled":
        return
    from frugal_rl.report.wandb_sink import open_wandb

    for sink in open_wandb(run, draw_up(run)):
        sink.table("ablation", list(table.columns), [list(row) for row in table.rows])
        sink.close()


def filled(words: Sequence[str], run: RunConfig) -> tuple[str, ...]:
    """Words with the size of a micro-batch filled in."""
    piece = max(1, min(run.algo.batch_size, run.algo.n_steps * run.algo.num_envs) // PIECES)
    return tuple(w + str(piece) if w.endswith("=") else w for w in words)


def _cell(
    run: RunConfig, options: AblationOptions, what: Optimisation, digest: Digest, at: Path
) -> Cell:
    own = {"base", "out", "seeds", "only", "seed", "memory"}
    typed = [o for o in run.overrides if o.split("=")[0] not in own]
    try:
        variant(run, [*typed, *what.words])
        results = [
            _train([*typed, *what.words], seed, at / f"seed{seed}", run.config_dir)
            for seed in options.seeds
        ]
    except ConfigError as error:
        return Cell(what, None, (), str(error))
    (row,) = compare(results)
    return Cell(what, row, tuple(digest(r.folder) for r in results))


def _train(words: Sequence[str], seed: int, at: Path, config_dir: str) -> RunResult:
    """One training process; a finished one of the same words is not repeated.

    Raises:
        ConfigError: it failed; carries the last line of what it said.
    """
    overrides = [*words, f"seed={seed}"]
    if (at / "report.json").is_file():
        known = RunResult.read(at)
        if [o for o in known.overrides if not o.startswith("hydra.run.dir")] == overrides:
            return known
    beside = ["--config-dir", config_dir] if config_dir else []
    command = [sys.executable, str(folder("scripts") / "train.py"), *beside, *overrides]
    done = subprocess.run(
        [*command, f"hydra.run.dir={at}"], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        said = (done.stderr.strip().splitlines() or ["nothing was said"])[-1]
        raise ConfigError(said)
    return RunResult.read(at)


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
            document.add(f"{cell.optimisation.name}: {cell.error}")
    rows = [replace(c.row, variant=c.optimisation.name) for c in cells if c.row is not None]
    bars = plots.memory_bars(rows, Path(options.out) / "ablation.png")
    if bars is not None:
        document.add(PictureBlock(bars, "Peak memory of the process tree."))
    return document


def table_of(cells: list[Cell]) -> TableBlock:
    """Optimisation | label | bytes per transition | predicted | measured | steps/s | unchanged?"""
    columns = (
        "optimisation", "label", "bytes per transition", "peak predicted, MiB",
        "peak measured, MiB",
        "steps/s", "success", "learning unchanged?",
    )  # fmt: skip
    first = cells[0]
    return TableBlock(columns, [_line(c, first) for c in cells])


def _line(cell: Cell, first: Cell) -> tuple[str, ...]:
    what, row = cell.optimisation, cell.row
    if row is None:
        return (what.name, what.label, "-", "-", "-", "-", "-", "impossible here")
    same = "bit for bit" if cell.digests == first.digests else "no"
    return (
        what.name, what.label, show(row.bytes_per_transition, ",.0f"),
        _mib(row.predicted_bytes), _mib(row.measured_bytes),
        show(row.steps_per_second, ",.0f"), show(row.success, ".1%"),
        "-" if cell is first else same,
    )  # fmt: skip


def _mib(count: float | None) -> str:
    """One unit for all rows, so that they can be compared at a glance."""
    return show(None if count is None else count / MIB, ",.0f")
