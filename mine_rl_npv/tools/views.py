"""Pictures of deposits, pits, schedules and methods. Each function returns a matplotlib figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib import colormaps
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator
from scipy.ndimage import label

from frugal_rl.run.disk import finished_or_absent
from mine_rl_npv.data.economics import MILL
from mine_rl_npv.data.instance import NEVER, Instance
from mine_rl_npv.optimise.pits import NestedPits, block_tonnes, penalised_pits

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = "viridis"
MOST = 200
"""Cells by axis onto which blocks of unequal size are drawn at most."""


def _figure(columns: int = 1, rows: int = 1, width: float = 5.0, height: float = 3.6) -> Figure:
    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save(figure: Figure, path: str | Path) -> Path:
    """Writes a PNG under a temporary name and renames it."""
    path = Path(path)
    with finished_or_absent(path) as part:
        figure.savefig(part, dpi=110, format="png")
    return path


def grade_tonnage(instance: Instance, grade: str = "cu") -> Figure:
    """Tonnage above a cut-off, and the mean grade of what is above it."""
    grades, tonnes = np.asarray(instance.fields[grade], float), block_tonnes(instance)
    order = np.argsort(-grades)
    above = np.cumsum(tonnes[order])
    metal = np.cumsum((grades * tonnes)[order])
    mean = np.divide(metal, above, out=np.full_like(metal, np.nan), where=above > 0)
    figure = _figure()
    axes = figure.add_subplot()
    axes.plot(grades[order], above / 1e6, color="tab:blue")
    axes.set(xlabel=f"cut-off, {grade} %", ylabel="Mt above cut-off", title="Grade and tonnage")
    axes.yaxis.label.set_color("tab:blue")
    other = axes.twinx()
    other.plot(grades[order], mean, color="tab:red")
    other.set_ylabel(f"mean {grade} above cut-off, %", color="tab:red")
    return figure


def pit_by_pit(pits: NestedPits) -> Figure:
    """Undiscounted value and tonnage of the nested pits."""
    figure = _figure()
    axes = figure.add_subplot()
    number = np.arange(1, len(pits.tonnes) + 1)
    axes.bar(number, pits.tonnes / 1e6, color="lightsteelblue")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlim(0.4, len(number) + 0.6)
    axes.set(xlabel="nested pit, from small to large", ylabel="Mt in the pit", title="Pit by pit")
    other = axes.twinx()
    other.plot(number, pits.value / 1e6, color="tab:red", marker=".", markersize=3)
    other.set_ylabel("undiscounted value, M", color="tab:red")
    return figure


def by_period(instance: Instance, shares: np.ndarray) -> dict[str, np.ndarray]:
    """Figures of each period (T,): tonnes, use per limit, cash flow, cumulative NPV, mean grade.

    Args:
        instance: the mine.
        shares: (n, D, T) of a schedule; D = 1 counts as CPIT.
    """
    single = shares.shape[1] == 1
    money = instance.value[:, None] if single else instance.destination_value
    use = instance.use[:, None] if single else instance.destination_use
    mined = shares.sum(axis=1)
    tonnes = block_tonnes(instance)
    cash = np.einsum("nd,ndt->t", money, shares)
    table = {
        "tonnes": tonnes @ mined,
        "cash": cash,
        "npv": np.cumsum(cash * instance.discount),
    }
    for r in range(instance.resources):
        used = np.einsum("nd,ndt->t", use[:, :, r], shares)
        table[f"resource_{r}"] = used
        limit = instance.high[r]
        binds = np.isfinite(limit) & (limit > 0)
        table[f"share_{r}"] = np.divide(used, limit, out=np.full_like(used, np.nan), where=binds)
    if "cu" in instance.fields:
        ore = _ore(instance, shares)
        weight = tonnes @ ore
        metal = (tonnes * instance.fields["cu"]) @ ore
        table["grade"] = np.divide(metal, weight, out=np.zeros_like(metal), where=weight > 0)
    return table


def _ore(instance: Instance, shares: np.ndarray) -> np.ndarray:
    """(n, T) shares that are milled; of files without a mill, blocks that pay."""
    if "milling" not in instance.limit_names:
        return shares.sum(axis=1) * (instance.value > 0)[:, None]
    if shares.shape[1] == 1:
        return shares[:, 0] * (instance.use[:, 1] > 0)[:, None]
    return shares[:, MILL]


def period_figure(instance: Instance, shares: np.ndarray) -> Figure:
    """Tonnage, use of the limits, cash flow and NPV, and grade per period."""
    table = by_period(instance, shares)
    periods = np.arange(1, instance.periods + 1)
    figure = _figure(2, 2)
    axes = figure.subplots(2, 2)
    axes[0, 0].bar(periods, table["tonnes"] / 1e6, color="slategray")
    axes[0, 0].set(title="Tonnage", ylabel="Mt", xlabel="period")
    for r, name in enumerate(instance.limit_names):
        if not np.isnan(table[f"share_{r}"]).all():
            axes[0, 1].plot(periods, 100 * table[f"share_{r}"], marker=".", label=name)
    axes[0, 1].set(title="Use of the limits", ylabel="%", xlabel="period", ylim=(0, 105))
    if instance.resources:
        axes[0, 1].legend()
    axes[1, 0].bar(periods, table["cash"] / 1e6, color="seagreen", label="cash flow")
    axes[1, 0].plot(periods, table["npv"] / 1e6, color="black", marker=".", label="cumulative NPV")
    axes[1, 0].set(title="Money", ylabel="M", xlabel="period")
    axes[1, 0].legend()
    for one in axes.flat:
        one.xaxis.set_major_locator(MaxNLocator(integer=True))
    if "grade" in table:
        axes[1, 1].plot(periods, table["grade"], marker=".", color="chocolate")
        axes[1, 1].set(title="Mean copper of ore", ylabel="%", xlabel="period", ylim=(0, None))
    else:
        axes[1, 1].set_axis_off()
    return figure


def period_grid(instance: Instance, period: np.ndarray) -> np.ndarray:
    """Periods as a grid (nx, ny, nz) float: nan in air, -1 where nothing is mined.

    Blocks without tonnage are air; those of unequal size fill all the cells that they cover.
    """
    if "ton" in instance.fields:
        period = np.where(np.asarray(instance.fields["ton"]) > 0, period, np.nan)
    slopes = instance.slopes
    if slopes is not None and not slopes.regular:
        return _covered(slopes.centre, slopes.edge, period)
    shape = tuple(int(n) for n in instance.position.max(axis=0) + 1)
    grid = np.full(shape, np.nan)
    grid[tuple(instance.position.T)] = period
    return grid


def _covered(centre: np.ndarray, edge: np.ndarray, period: np.ndarray) -> np.ndarray:
    """The same for blocks (n, 3) of unequal edges, on cells of the smallest, or `MOST` by axis."""
    low, high = centre - edge / 2, centre + edge / 2
    corner = low.min(axis=0)
    size = np.maximum(edge.min(axis=0), (high.max(axis=0) - corner) / MOST)
    first = np.round((low - corner) / size).astype(np.int64)
    past = np.maximum(np.round((high - corner) / size).astype(np.int64), first + 1)
    grid = np.full(past.max(axis=0), np.nan)
    for (i, j, k), (x, y, z), t in zip(first.tolist(), past.tolist(), period.tolist(), strict=True):
        grid[i:x, j:y, k:z] = t
    return grid


def sections(instance: Instance, period: np.ndarray) -> Figure:
    """Plan (period of each column's deepest mined block) and two sections, coloured by period."""
    grid = period_grid(instance, period)
    mined = np.where(grid >= 0, grid, np.nan)
    order = np.argmax(np.isfinite(mined), axis=2)[..., None]
    plan = np.take_along_axis(mined, order, axis=2)[..., 0]
    late = np.nan_to_num(mined).sum(axis=2) / (instance.periods * mined.shape[2])
    depth = np.isfinite(mined).sum(axis=2)
    heart = np.unravel_index((depth - late).argmax(), depth.shape)  # deep, and dug early
    figure = _figure(3)
    axes = figure.subplots(1, 3)
    last = instance.periods - 1
    _paint(axes[0], plan, f"Plan, {np.isfinite(plan).sum()} columns", "x", "y", last)
    for one, axis, name in ((axes[1], 1, "x"), (axes[2], 0, "y")):
        cut = mined[:, heart[1]] if axis == 1 else mined[heart[0]]
        ground = grid[:, heart[1]] if axis == 1 else grid[heart[0]]
        one.imshow(
            np.isfinite(ground).T, origin="lower", cmap="Greys", vmin=0, vmax=4, aspect="auto"
        )
        picture = _paint(one, cut, f"Section along {name}", name, "bench", last)
        outline = np.isfinite(cut).T.astype(float)
        if 0 < outline.mean() < 1:
            one.contour(outline, levels=[0.5], colors="black", linewidths=1)
    _period_bar(figure, picture, axes)
    for one in axes:
        one.xaxis.set_major_locator(MaxNLocator(integer=True))
        one.yaxis.set_major_locator(MaxNLocator(integer=True))
    return figure


def _period_bar(
    figure: Figure, colours: ScalarMappable, axes: Axes | Sequence[Axes], pad: float = 0.02
) -> None:
    """The legend of colours by period; the first period is number 1."""
    number = FuncFormatter(lambda period, _: f"{round(period) + 1}")
    ticks = MaxNLocator(integer=True)
    figure.colorbar(
        colours, ax=axes, label="period", ticks=ticks, format=number, shrink=0.8, pad=pad
    )


def _paint(axes: Axes, cells: np.ndarray, title: str, x: str, y: str, last: int):
    picture = axes.imshow(
        cells.T, origin="lower", cmap=COLOURS, vmin=0, vmax=max(last, 1), aspect="auto"
    )
    axes.set(title=title, xlabel=x, ylabel=y)
    return picture


def voxels(instance: Instance, period: np.ndarray, upto: int | None = None) -> Figure:
    """The pit in 3D: mined blocks coloured by period, the near quarter cut away to look inside.

    Up to about 6,000 blocks are drawn.
    """
    grid = period_grid(instance, period)
    last = instance.periods - 1 if upto is None else upto
    shown = (grid >= 0) & (grid <= last)
    step = max(1, int(np.ceil((shown.sum() / 6000) ** (1 / 3))))
    shown, grid = shown[::step, ::step, ::step], grid[::step, ::step, ::step]
    shown = shown.copy()
    shown[(shown.shape[0] + 1) // 2 :, : shown.shape[1] // 2] = False
    figure = _figure(width=6, height=5)
    axes = figure.add_subplot(projection="3d")
    scale = Normalize(0, max(instance.periods - 1, 1))
    if shown.any():
        colours = colormaps[COLOURS](scale(np.nan_to_num(grid)))
        axes.voxels(shown, facecolors=colours, edgecolor=None, shade=True)
    _period_bar(figure, ScalarMappable(scale, COLOURS), axes, pad=0.14)
    axes.set(
        title=f"Mined by period {last + 1}",
        xlabel="x",
        ylabel="y",
        zlabel="bench",
        xlim=(0, shown.shape[0]),
        ylim=(0, shown.shape[1]),
        zlim=(0, shown.shape[2]),
    )
    axes.set_box_aspect(shown.shape)
    cells = FuncFormatter(lambda place, _: f"{round(place * step)}")
    for axis in (axes.xaxis, axes.yaxis, axes.zaxis):
        axis.set_major_locator(MaxNLocator(4, integer=True))
        axis.set_major_formatter(cells)
    return figure


def frames(instance: Instance, period: np.ndarray) -> list[np.ndarray]:
    """The life of the mine, one RGB frame (h, w, 3) uint8 per period: plan and section."""
    pictures = []
    for t in range(instance.periods):
        so_far = np.where((period >= 0) & (period <= t), period, NEVER)
        figure = sections(instance, so_far)
        figure.suptitle(f"{instance.name}, end of period {t + 1}")
        figure.canvas.draw()
        pictures.append(np.asarray(figure.canvas.buffer_rgba())[..., :3].copy())
    return pictures


def save_gif(pictures: Sequence[np.ndarray], path: str | Path, seconds: float = 0.6) -> Path:
    """Writes frames as an animated GIF, whole or not at all."""
    import imageio.v3 as imageio

    path = Path(path)
    with finished_or_absent(path) as part:
        imageio.imwrite(part, np.stack(pictures), extension=".gif", duration=1000 * seconds, loop=0)
    return path


def method_table(rows: Mapping[str, Mapping[str, float]], upper: float) -> Figure:
    """NPV, gap to the bound, gap to the best schedule, time and memory of methods.

    Args:
        rows: method -> `value`, `seconds`, `mib`.
        upper: certified bound.
    """
    best = max(row["value"] for row in rows.values())
    cells = [
        [
            name,
            f"{row['value']:,.0f}",
            f"{100 * (upper - row['value']) / upper:.2f}",
            f"{100 * (best - row['value']) / best:.2f}",
            f"{row['seconds']:.1f}",
            f"{row['mib']:.0f}",
        ]
        for name, row in sorted(rows.items(), key=lambda item: -item[1]["value"])
    ]
    figure = _figure(width=8, height=0.6 + 0.3 * len(cells))
    axes = figure.add_subplot()
    axes.set_axis_off()
    head = ["method", "NPV", "gap to bound %", "gap to best %", "seconds", "MiB"]
    widths = [0.26, 0.22, 0.15, 0.15, 0.12, 0.1]
    table = axes.table(cells, colLabels=head, loc="center", cellLoc="right", colWidths=widths)
    table.auto_set_font_size(False)
    table.set_fontsize(9)
    table.scale(1, 1.3)
    return figure


def gap_bars(gaps: Mapping[str, float], title: str) -> Figure:
    """Gap to the bound in per cent by method, the best on top."""
    figure = _figure(width=7, height=0.9 + 0.35 * len(gaps))
    axes = figure.add_subplot()
    names = sorted(gaps, key=lambda name: -gaps[name])
    axes.barh(names, [gaps[name] for name in names], color="steelblue")
    axes.set(xlabel="gap to the certified bound, %", title=title)
    axes.bar_label(axes.containers[0], [f" {gaps[name]:.2f}" for name in names])
    axes.margins(x=0.15)
    return figure


def risk(npv: np.ndarray, names: Sequence[str]) -> Figure:
    """NPV of plans (P) over realisations (R), npv (P, R), with P10, P50 and P90."""
    figure = _figure()
    axes = figure.add_subplot()
    axes.boxplot(npv.T / 1e6, tick_labels=list(names), whis=(10, 90), showfliers=True)
    axes.set(ylabel="NPV, M", title=f"Risk over {npv.shape[1]} realisations (whiskers P10, P90)")
    return figure


def coherence(instance: Instance, period: np.ndarray) -> np.ndarray:
    """Connected pieces of each period's blocks (T,): few pieces are easier to mine."""
    grid = period_grid(instance, period)
    return np.array([label(grid == t)[1] for t in range(instance.periods)])


def draw_schedule(instance: Instance, shares: np.ndarray, folder: str | Path) -> list[Path]:
    """Every picture of one schedule, as files of a folder."""
    mined = shares.sum(axis=1)
    period = np.where(mined.max(axis=1) > 0.5, mined.argmax(axis=1), NEVER)
    figures = {
        "pit_by_pit": pit_by_pit(penalised_pits(instance, 40).distinct()),
        "periods": period_figure(instance, shares),
        "sections": sections(instance, period),
        "voxels": voxels(instance, period),
    }
    if "cu" in instance.fields:
        figures["grade_tonnage"] = grade_tonnage(instance)
    folder = Path(folder)
    paths = [save(figure, folder / f"{name}.png") for name, figure in figures.items()]
    return [*paths, save_gif(frames(instance, period), folder / "life.gif")]
