"""Pictures of a report: curves over steps, predicted beside measured memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from frugal_rl.report.averaging import averaged, is_averaged
from frugal_rl.run.disk import finished_or_absent
from frugal_rl.run.progress import WINDOW

if TYPE_CHECKING:
    from frugal_rl.report.results import Row, RunResult

MIB = 1 << 20
BYTES = "_bytes"
"""How metrics end that count them."""
FRACTION = "/success"
"""How metrics end that lie between 0 and 1."""
MEMORY = "memory"
"""What the picture of peaks draws, among the metrics."""
COLOURS = ("#3366aa", "#cc6633", "#339966", "#aa3377", "#888888", "#bbaa22", "#66aadd", "#7755bb")
"""One per variant of a picture; more variants take more pictures."""
OTHERS = "#d5d5d5"
"""Variants that another picture names."""
WIDTH = 5.6
"""Inches of every picture: its words can still be read where a phone shows it whole."""
PLOT_HEIGHT, LINE_HEIGHT, LEAST_BAR = 3.0, 0.16, 0.4
"""Inches of the axes, of a line of small words, and of a variant's two bars."""
LEGEND_WIDTH = 74
NAME_WIDTH, LONGEST_WORD = 30, 36
"""Characters of a name in one line of a legend, and beside a bar, where a word may be longer."""
FEW_POINTS = 20
"""Curves with fewer points show them."""
Points = tuple[np.ndarray, np.ndarray]
"""Steps [P] and values [P] of one run."""


def curves(
    runs: Sequence[RunResult], metric: str, path: Path, names: Mapping[str, str] | None = None
) -> list[Path]:
    """One metric over steps: each variant's mean over its runs, and their range.

    A picture names as many variants as there are colours, and shows the others in grey; there are
    as many pictures as that takes. Where no run has two points there is none: tables say it.
    Episodes of training are averaged as the terminal does, if all runs are long enough for it.

    Args:
        runs: of one environment.
        metric: as it was logged.
        path: of the first picture; others are numbered.
        names: what to call each variant; None means in full.
    """
    by_variant: dict[str, list[Points]] = {run.variant: [] for run in runs}
    for run in runs:
        steps, values = run.curve(metric)
        if steps:
            unit = MIB if metric.endswith(BYTES) else 1
            by_variant[run.variant].append((np.array(steps), np.array(values) / unit))
    every = [points for found in by_variant.values() for points in found]
    if all(len(steps) < 2 for steps, _ in every):
        return []
    label = metric.replace(BYTES, ", MiB")
    if is_averaged(metric, (len(steps) for steps, _ in every)):
        by_variant = {v: [averaged(*p) for p in found] for v, found in by_variant.items()}
        label = f"{metric}, over {WINDOW} rollouts"
    called = list(by_variant)
    pages = [called[i : i + len(COLOURS)] for i in range(0, len(called), len(COLOURS))]
    drawn = []
    for number, page in enumerate(pages, 1):
        if any(by_variant[variant] for variant in page):
            place = path if number == 1 else path.with_stem(f"{path.stem}_{number}")
            drawn.append(_page(by_variant, page, names or {}, label, place))
    return drawn


def _page(
    by_variant: Mapping[str, list[Points]],
    page: Sequence[str],
    names: Mapping[str, str],
    called: str,
    path: Path,
) -> Path:
    """The curves of all variants, of which a few are named and coloured."""
    labels = {
        variant: f"{fill(names.get(variant, variant), LEGEND_WIDTH)} ({_counted(points)})"
        for variant, points in by_variant.items()
        if variant in page and points
    }
    lines = sum(1 + label.count("\n") for label in labels.values())
    figure, axes = _axes(PLOT_HEIGHT + LINE_HEIGHT * (lines + 1))
    for variant, points in by_variant.items():
        if points and variant not in labels:
            _band(axes, points, OTHERS, None)
    for variant, label in labels.items():
        _band(axes, by_variant[variant], COLOURS[page.index(variant)], label)
    _count_steps(axes)
    axes.set_xlabel("environment steps")
    axes.set_ylabel(called)
    if FRACTION in called:
        axes.set_ylim(-0.02, 1.02)  # a success of 1 in all is no noise between 0.96 and 1.04
    figure.legend(fontsize=8, loc="outside lower left")
    return _saved(figure, path)


def _counted(points: Sequence[Points]) -> str:
    return f"{len(points)} run{'s' * (len(points) > 1)}"


def _count_steps(axes: Any) -> None:
    """Few ticks, written as 200k and 1.5M: longer ones run into each other."""
    from matplotlib.ticker import EngFormatter, MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))


def _band(axes: Any, points: Sequence[Points], colour: str, label: str | None) -> None:
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
    called = [_wrapped((names or {}).get(r.variant, r.variant)) for r in known]
    lines = max(1 + name.count("\n") for name in called)
    figure, axes = _axes(1 + len(known) * max(LEAST_BAR, LINE_HEIGHT * lines + 0.1))
    places = range(len(known))
    predicted = [(r.predicted_bytes or 0) / MIB for r in known]
    measured = [(r.measured_bytes or 0) / MIB for r in known]
    axes.barh([p - 0.2 for p in places], predicted, 0.38, color=COLOURS[6], label="predicted")
    axes.barh([p + 0.2 for p in places], measured, 0.38, color=COLOURS[0], label="measured")
    axes.set_yticks(list(places), called, fontsize=8)
    axes.set_ylim(len(known) - 0.5, -0.5)  # the first on top, nothing above it
    axes.set_xlabel("peak memory of the process tree, MiB")
    figure.legend(fontsize=8, loc="outside lower left", ncols=2)
    return _saved(figure, path)


def _wrapped(name: str) -> str:
    """A name in lines that break between words, and within those that no line could hold."""
    longest = max(map(len, name.split(" ")))
    return fill(name, max(NAME_WIDTH, min(longest, LONGEST_WORD)), break_on_hyphens=False)


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
