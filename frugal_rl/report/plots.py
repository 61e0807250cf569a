"""Pictures of a report: curves over steps, predicted beside measured memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from frugal_rl.run.disk import finished_or_absent

if TYPE_CHECKING:
    from frugal_rl.report.results import Row, RunResult

MIB = 1 << 20
BYTES = "_bytes"
"""How metrics end that count them."""
MEMORY = "memory"
"""What the picture of peaks draws, among the metrics."""
COLOURS = ("#3366aa", "#cc6633", "#339966", "#aa3377", "#888888", "#bbaa22", "#66aadd", "#7755bb")
WIDTH = 5.6
"""Inches of every picture: its words can still be read where a phone shows it whole."""
LEGEND_WIDTH = 74
NAME_WIDTH = 30
"""Characters of a name in one line of a legend, and beside a bar."""
FEW_POINTS = 20
"""Curves with fewer points show them."""
Points = tuple[np.ndarray, np.ndarray]
"""Steps [P] and values [P] of one run."""


def curves(
    runs: Sequence[RunResult], metric: str, path: Path, names: Mapping[str, str] | None = None
) -> Path | None:
    """One metric over steps: each variant's mean over its runs, and their range.

    None without a point.

    Args:
        runs: of one environment.
        metric: as it was logged.
        path: of the picture.
        names: what to call each variant; None means in full.
    """
    by_variant: dict[str, list[Points]] = {}
    for run in runs:
        steps, values = run.curve(metric)
        if steps:
            unit = MIB if metric.endswith(BYTES) else 1
            drawn = np.array(steps), np.array(values) / unit
            by_variant.setdefault(run.variant, []).append(drawn)
    if not by_variant:
        return None
    figure, axes = _axes(3.4)
    for place, (variant, points) in enumerate(by_variant.items()):
        colour = COLOURS[place % len(COLOURS)]
        name = (names or {}).get(variant, variant)
        label = f"{fill(name, LEGEND_WIDTH)} ({len(points)} run{'s' * (len(points) > 1)})"
        _band(axes, points, colour, label)
    axes.set_xlabel("environment steps")
    axes.set_ylabel(metric.replace(BYTES, ", MiB"))
    figure.legend(fontsize=8, loc="outside lower left")
    return _saved(figure, path)


def _band(axes: Any, points: Sequence[Points], colour: str, label: str) -> None:
    """The mean of several curves where all of them have values, their range behind it."""
    first = max(x[0] for x, _ in points)
    last = min(x[-1] for x, _ in points)
    steps = np.unique(np.concatenate([x for x, _ in points]))
    shared = steps[(steps >= first) & (steps <= last)]
    if len(points) == 1 or not len(shared):
        for number, (x, y) in enumerate(points):
            style = "o-" if len(x) < FEW_POINTS else "-"
            named = label if number == 0 else None
            axes.plot(x, y, style, color=colour, linewidth=1.2, markersize=4, label=named)
        return
    values = np.stack([np.interp(shared, x, y) for x, y in points])
    style = "o-" if len(shared) < FEW_POINTS else "-"
    axes.plot(shared, values.mean(0), style, color=colour, linewidth=1.4, markersize=4, label=label)
    axes.fill_between(shared, values.min(0), values.max(0), color=colour, alpha=0.18, linewidth=0)


def memory_bars(
    rows: Sequence[Row], path: Path, names: Mapping[str, str] | None = None
) -> Path | None:
    """Peak memory of each variant: predicted beside measured. None without a measurement."""
    known = [r for r in rows if r.predicted_bytes and r.measured_bytes]
    if not known:
        return None
    figure, axes = _axes(1 + 0.5 * len(known))
    places = range(len(known))
    predicted = [(r.predicted_bytes or 0) / MIB for r in known]
    measured = [(r.measured_bytes or 0) / MIB for r in known]
    axes.barh([p - 0.2 for p in places], predicted, 0.38, color=COLOURS[6], label="predicted")
    axes.barh([p + 0.2 for p in places], measured, 0.38, color=COLOURS[0], label="measured")
    called = [fill((names or {}).get(r.variant, r.variant), NAME_WIDTH) for r in known]
    axes.set_yticks(list(places), called, fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("peak memory of the process tree, MiB")
    figure.legend(fontsize=8, loc="outside lower left", ncols=2)
    return _saved(figure, path)


def _axes(height: float) -> tuple[Any, Any]:
    """A figure that needs no display."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _saved(figure: Any, path: Path) -> Path:
    with finished_or_absent(path) as part:
        figure.savefig(part, dpi=130)
    return path
