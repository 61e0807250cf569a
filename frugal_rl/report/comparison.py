"""What `scripts/report.py` does: compare finished runs in one document."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from frugal_rl.memory.part import human
from frugal_rl.report import plots
from frugal_rl.report.document import Document, PictureBlock, TableBlock
from frugal_rl.report.files import PICTURES
from frugal_rl.report.results import EVALUATION, Row, RunResult, compare, find_runs

CURVES = (EVALUATION, "eval/return", "episode/return", "episode/success", "memory/held_bytes")
"""Metrics that are drawn where they were logged."""


@dataclass(frozen=True)
class ReportOptions:
    """The options of `scripts/report.py`."""

    runs: tuple[str, ...] = ("runs",)
    """Run folders, or folders above them."""
    out: str = "runs/report"
    """Where the report is written."""
    title: str = "Comparison of runs"
    curves: tuple[str, ...] = CURVES


def write_report(options: ReportOptions) -> list[Path]:
    """Markdown and a self-contained web page; returns their paths."""
    runs = find_runs(options.runs)
    folder = Path(options.out)
    rows = compare(runs)
    document = Document(options.title)
    unfinished = [r.folder.name for r in runs if not r.summary]
    document.add(f"{len(runs)} runs, {len(rows)} variants.")
    if unfinished:
        document.add(f"Without a summary (still running, or killed): {', '.join(unfinished)}.")
    document.add(comparison_table(rows))
    document.add(*_pictures(runs, rows, options.curves, folder / PICTURES))
    for run in runs:
        document.add(*_drawn(run, folder / PICTURES))
    return document.write(folder)


def comparison_table(rows: Sequence[Row]) -> TableBlock:
    """Variant | label | bytes per transition | predicted | measured | error | speed | outcome."""
    columns = (
        "env", "variant", "label", "seeds", "bytes per transition", "peak predicted",
        "peak measured", "error", "steps/s", "success", "return",
    )  # fmt: skip
    return TableBlock(columns, [_cells(r) for r in rows])


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row.env, row.variant, row.label, str(row.seeds), show(row.bytes_per_transition, ",.0f"),
        "-" if row.predicted_bytes is None else human(row.predicted_bytes),
        "-" if row.measured_bytes is None else human(row.measured_bytes),
        show(row.error, "+.1%"), show(row.steps_per_second, ",.0f"), show(row.success, ".1%"),
        show(row.episode_return, ".3g"),
    )  # fmt: skip


def show(value: float | None, form: str) -> str:
    """A number in a form, or a dash."""
    return "-" if value is None else format(value, form)


def _drawn(run: RunResult, folder: Path) -> list[PictureBlock]:
    """What `visualization=true` left in a run folder, copied beside the report."""
    blocks = []
    for path in sorted((run.folder / PICTURES).glob("*")):
        if path.suffix in (".png", ".gif"):
            copy = folder / f"{run.folder.name}_{path.name}"
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
            blocks.append(PictureBlock(copy, f"{path.stem} ({run.folder.name}: {run.variant})"))
    return blocks


def _pictures(
    runs: Sequence[RunResult], rows: Sequence[Row], metrics: Sequence[str], folder: Path
) -> list[PictureBlock]:
    blocks = []
    bars = plots.memory_bars(rows, folder / "memory.png")
    if bars is not None:
        blocks.append(PictureBlock(bars, "Peak memory of the process tree by variant."))
    for metric in metrics:
        name = metric.replace("/", "_") + ".png"
        path = plots.curves(runs, metric, folder / name)
        if path is not None:
            blocks.append(PictureBlock(path, f"{metric} over environment steps."))
    return blocks
