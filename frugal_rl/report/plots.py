"""Pictures of a report: curves over steps, predicted beside measured memory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from frugal_rl.report.results import Row, RunResult

MIB = 1 << 20
COLOURS = ("#3366aa", "#cc6633", "#339966", "#aa3377", "#888888", "#bbaa22", "#66aadd", "#7755bb")
LONGEST_NAME = 48


def curves(runs: Sequence[RunResult], metric: str, path: Path) -> Path | None:
    """One metric over steps; repetitions of a variant share a colour. None without a point."""
    drawn = [(run, *run.curve(metric)) for run in runs]
    drawn = [(run, x, y) for run, x, y in drawn if x]
    if not drawn:
        return None
    figure, axes = _axes(8, 4)
    variants = list(dict.fromkeys(run.variant for run, _, _ in drawn))
    for run, x, y in drawn:
        place = variants.index(run.variant)
        style = "o-" if len(x) < 20 else "-"
        axes.plot(x, y, style, color=COLOURS[place % len(COLOURS)], linewidth=1.2, markersize=4)
    for place, variant in enumerate(variants):
        axes.plot([], [], color=COLOURS[place % len(COLOURS)], label=_short(variant))
    axes.set_xlabel("environment steps")
    axes.set_ylabel(metric)
    axes.legend(fontsize=8, loc="best")
    return _saved(figure, path)


def memory_bars(rows: Sequence[Row], path: Path) -> Path | None:
    """Peak memory of each variant: predicted beside measured. None without a measurement."""
    known = [r for r in rows if r.predicted_bytes and r.measured_bytes]
    if not known:
        return None
    figure, axes = _axes(8, 1 + 0.5 * len(known))
    places = range(len(known))
    predicted = [(r.predicted_bytes or 0) / MIB for r in known]
    measured = [(r.measured_bytes or 0) / MIB for r in known]
    axes.barh([p - 0.2 for p in places], predicted, 0.38, color=COLOURS[6], label="predicted")
    axes.barh([p + 0.2 for p in places], measured, 0.38, color=COLOURS[0], label="measured")
    axes.set_yticks(list(places), [_short(r.variant) for r in known], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("peak memory of the process tree, MiB")
    axes.legend(fontsize=8)
    return _saved(figure, path)


def _short(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 3] + "..."


def _axes(width: float, height: float) -> tuple[Any, Any]:
    """A figure that needs no display."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _saved(figure: Any, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part.png")
    figure.savefig(part, dpi=130)
    part.replace(path)
    return path
