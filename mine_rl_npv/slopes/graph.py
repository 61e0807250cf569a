"""Precedence from coordinates: each block needs what lies in its slope cone, least arcs first.

Nothing is assumed about neighbours: where a cell is empty, the blocks behind it are found by their
own places, so that a void breaks no slope. An arc is left out where another one already says it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from frugal_rl.errors import DataError
from mine_rl_npv.slopes.cone import BY_TURNS, PATTERNS, Slopes, cell_slopes
from mine_rl_npv.slopes.rows import MOST_WIDE, arcs_by_rows, most_arcs, rows_of

_CELLS_PER_BLOCK = 400
_MOST_SEARCHED = 300_000
"""Cells of a cone; those of walls of 15 degrees over eight benches of two cells are 136,000."""
_OVERLAP = 0.99
"""Footprints that share less than a hundredth of an edge only touch."""


def slope_graph(slopes: Slopes) -> tuple[np.ndarray, np.ndarray]:
    """Direct predecessors of every block.

    On a regular lattice the cone is searched over `slopes.levels` benches, further above voids;
    blocks of irregular models search it to its full height.

    Returns:
        pointer (n + 1,) int64 and index (arcs,) int32.

    Raises:
        DataError: the blocks are strewn over far more cells than there are blocks.
    """
    offsets = _unbroken_offsets(slopes)
    return _arcs(slopes, offsets, len(slopes.centre))


def _unbroken_offsets(slopes: Slopes) -> np.ndarray:
    """Cells (P, 3) int64 that a block needs directly where no cell of its cone is empty.

    A block that has all of them needs nothing else directly: what an empty cell would have named
    lies in the cone of one of them, which looks behind its own voids. Empty where the lattice is
    not regular, a centroid lies off it, or the rule is a pattern.
    """
    none = np.empty((0, 3), np.int64)
    if not slopes.regular or slopes.pattern or not slopes.levels or not len(slopes.centre):
        return none
    if np.any(slopes.centre != slopes.stated):
        return none
    size = bin_size(slopes)
    reach = np.ceil(slopes.levels * size[2] * slopes.run.max() / size[:2]).astype(np.int64) + 1
    if math.prod(2 * reach + 1) * (slopes.levels + 1) > _MOST_SEARCHED:
        return none  # walls so flat that looking for them would take minutes
    axes = [np.arange(-r, r + 1) for r in reach] + [np.arange(slopes.levels + 1)]
    cells = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    cells = np.concatenate((np.zeros((1, 3), np.int64), cells[np.any(cells != 0, axis=1)]))
    whole = cell_slopes(cells, size.tolist(), slopes.run, slopes.levels)
    _, index = _arcs(whole, none, 1)
    return cells[index]


class _Blocks(NamedTuple):
    """Places of blocks, as in `Slopes`; `off` (n,) bool where centre and stated differ."""

    centre: np.ndarray
    stated: np.ndarray
    edge: np.ndarray
    off: np.ndarray


class _Bins(NamedTuple):
    """Blocks by search bin: pointer (bins + 1,), blocks (n,), bins by axis (3,), bin (n, 3).

    A bin has edge lengths `size` (3,); blocks may reach out of theirs by `margin` (3,).
    """

    first: np.ndarray
    order: np.ndarray
    shape: np.ndarray
    place: np.ndarray
    size: np.ndarray
    margin: np.ndarray


class _Rule(NamedTuple):
    """Which blocks a block needs: 0 by `run`, the number of a pattern else; see `Slopes`."""

    mode: int
    run: np.ndarray
    least: float
    most: float
    levels: int
    regular: bool


def _arcs(slopes: Slopes, offsets: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Arcs of the first `count` blocks."""
    first, order, shape, place = _bins(slopes)
    off = np.any(slopes.centre != slopes.stated, axis=1)
    apart = off.any() or not slopes.regular
    margin = slopes.edge.max(axis=0) if apart else np.zeros(3)
    mode = PATTERNS.index(slopes.pattern) + 1 if slopes.pattern else 0
    levels = 1 if mode else (slopes.levels if slopes.levels else shape[2])
    height = levels if slopes.regular else shape[2]
    run = slopes.run
    rule = _Rule(mode, run, float(run.min()), float(run.max()), height, slopes.regular)
    rows = map(np.ascontiguousarray, (slopes.centre, slopes.stated, slopes.edge))
    blocks = _Blocks(*rows, off)  # by rows always: the kernels are compiled for one order
    bins = _Bins(first, order, np.array(shape), place, bin_size(slopes), margin)
    return _cone_arcs(blocks, bins, rule, _cone_rows(slopes, rule, bins), offsets, count)


def _cone_rows(slopes: Slopes, rule: _Rule, bins: _Bins) -> np.ndarray:
    """The cone of every block as `arcs_by_rows` takes it; empty where blocks differ in theirs."""
    alike = slopes.regular and not np.ptp(slopes.edge, axis=0).any()
    if not alike or np.any(slopes.centre != slopes.stated) or slopes.pattern == BY_TURNS:
        return np.zeros((0, 1), np.uint64)
    per_bench = np.ones(2) if rule.mode else bins.size[2] * rule.most / bins.size[:2]
    benches = min(bins.shape[2] - 1, int((MOST_WIDE - 1) / per_bench[0]))
    wide_y = min(int(per_bench[1] * benches) + 1, bins.shape[1] - 1)
    return rows_of(_cone_cells(benches + 1, wide_y, rule, bins.size))


def bin_size(slopes: Slopes) -> np.ndarray:
    """Edge lengths (3,) float64 of the search bins: cells, or median blocks."""
    return np.median(slopes.edge, axis=0)


def _bins(slopes: Slopes) -> tuple[np.ndarray, np.ndarray, tuple[int, int, int], np.ndarray]:
    """Blocks by search bin: pointer (bins + 1,), blocks (n,), bins by axis, bin (n, 3)."""
    low = slopes.centre.min(axis=0)
    place = np.floor((slopes.centre - low) / bin_size(slopes) + 0.5).astype(np.int64, order="C")
    shape = tuple((place.max(axis=0) + 1).tolist())
    if math.prod(shape) > _CELLS_PER_BLOCK * len(place) + 1_000_000:
        raise DataError(
            f"{len(place)} blocks are strewn over {shape[0]} x {shape[1]} x {shape[2]} cells; "
            "check for far-away coordinates, or state block_size=[x,y,z]."
        )
    key = (place[:, 2] * shape[1] + place[:, 1]) * shape[0] + place[:, 0]
    order = np.argsort(key, kind="stable")
    counts = np.bincount(key, minlength=math.prod(shape))
    first = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    return first, order.astype(np.int64), shape, place


@njit(cache=True)
def _in_cone(dx, dy, dz, rule, size, bench):
    """Whether an offset (metres, z upward) lies in the cone of a block on cell level `bench`."""
    if dz <= 1e-6 * size[2]:
        return False
    if rule.mode == 0:
        far = math.sqrt(dx * dx + dy * dy) - 2e-6
        if far <= dz * rule.least:
            return True
        if far > dz * rule.most:
            return False
        azimuth = math.degrees(math.atan2(dx, dy)) % 360.0
        return far <= dz * rule.run[min(int(azimuth), 359)]
    i, j, k = abs(round(dx / size[0])), abs(round(dy / size[1])), round(dz / size[2])
    if rule.mode == 1:
        return i + j <= k
    if rule.mode == 2:
        return max(i, j) <= k
    crosses = k // 2 + (k % 2 if bench % 2 == 1 else 0)
    return max(i, j) <= k and i + j <= crosses + 2 * (k - crosses)


@njit(cache=True)
def _cone_cells(benches, wide_y, rule, size):
    """Cells (benches, 2 wide_y + 1, 63) bool around a block that it needs, itself in the middle."""
    cone = np.zeros((benches, 2 * wide_y + 1, 2 * MOST_WIDE + 1), np.bool_)
    for k in range(1, benches):
        for j in range(-wide_y, wide_y + 1):
            for i in range(-MOST_WIDE, MOST_WIDE + 1):
                cone[k, wide_y + j, MOST_WIDE + i] = (i == 0 and j == 0) or _in_cone(
                    i * size[0], j * size[1], k * size[2], rule, size, np.int64(0)
                )
    return cone


@njit(cache=True)
def _apart(places, a, b):
    """From block b to block a by axis; a difference of rows would be an array on the heap."""
    return (
        places[a, 0] - places[b, 0],
        places[a, 1] - places[b, 1],
        places[a, 2] - places[b, 2],
    )


@njit(cache=True)
def _needs(b, a, blocks, bins, rule):
    """Whether block b needs block a: in its cone, or above it with a common footprint."""
    edge, size, bench = blocks.edge, bins.size, bins.place[b, 2]
    dx, dy, dz = _apart(blocks.centre, a, b)
    if _in_cone(dx, dy, dz, rule, size, bench):
        return True
    if (
        dz > 1e-6 * size[2]
        and abs(dx) < 0.5 * _OVERLAP * (edge[a, 0] + edge[b, 0])
        and abs(dy) < 0.5 * _OVERLAP * (edge[a, 1] + edge[b, 1])
    ):
        return True
    if rule.mode == 0 and (blocks.off[a] or blocks.off[b]):
        x, y, z = _apart(blocks.stated, a, b)
        return _in_cone(x, y, z, rule, size, bench)
    return False


@njit(cache=True)
def _with_room(index, filled):
    if filled < len(index):
        return index
    wider = np.empty(2 * filled, np.int32)
    wider[: len(index)] = index
    return wider


@njit(cache=True)
def _cell(place, offset, shape):
    """Number of the cell at an offset from a block's."""
    i, j, k = place + offset
    return (k * shape[1] + j) * shape[0] + i


@njit(cache=True)
def _has_all(place, offsets, first, shape):
    """Whether every offset from a block lies in the model and holds a block."""
    for o in offsets:
        for axis in range(3):
            if not 0 <= place[axis] + o[axis] < shape[axis]:
                return False
        cell = _cell(place, o, shape)
        if first[cell] == first[cell + 1]:
            return False
    return True


@njit(cache=True)
def _full_benches(first, shape):
    """Whether each bench holds a block in every cell: (shape[2],) bool."""
    area = shape[0] * shape[1]
    full = np.ones(shape[2], np.bool_)
    for cell in range(shape[2] * area):
        if first[cell] == first[cell + 1]:
            full[cell // area] = False
    return full


@njit(cache=True)
def _by_cells(b, bins, levels, offsets, full, rows, struck, index, filled):
    """Write arcs of block b, if cells alone tell them; the new `filled`, or -1."""
    first, order, shape, place = bins.first, bins.order, bins.shape, bins.place[b]
    if len(offsets) and _has_all(place, offsets, first, shape):
        for o in offsets:
            index[filled] = order[first[_cell(place, o, shape)]]
            filled += 1
        return filled
    for benches in (min(levels + 1, len(rows)), len(rows)):  # above voids more of them are asked
        few, own = rows[:benches], struck[:benches]
        end = arcs_by_rows(place, shape, first, order, full, few, levels, own, index, filled)
        if end >= 0 or benches == len(rows):
            return end
    return -1


@njit(cache=True)
def _reach(height, bins, rule):
    """Cells to each side in which what a block needs may lie, so many metres above it."""
    size, margin = bins.size, bins.margin
    if rule.mode == 0:
        wide = (height + (size[2] if margin[2] > 0 else 0.0)) * rule.most
        wide_x, wide_y = wide + margin[0], wide + margin[1]
    else:
        wide_x, wide_y = height / size[2] * size[0], height / size[2] * size[1]
    return int(wide_x / size[0] + 1e-6), int(wide_y / size[1] + 1e-6)


@njit(cache=True)
def _by_blocks(b, blocks, bins, rule, index, start):
    """Add the arcs of block b, comparing each block above with each arc; index and new `filled`."""
    filled, whole = start, 0
    first, shape, size = bins.first, bins.shape, bins.size
    x0, y0, bench = bins.place[b]
    for k in range(bench, shape[2]):
        height = (k - bench) * size[2]
        reach_x, reach_y = _reach(height, bins, rule)
        missing = False
        for j in range(max(y0 - reach_y, 0), min(y0 + reach_y + 1, shape[1])):
            for i in range(max(x0 - reach_x, 0), min(x0 + reach_x + 1, shape[0])):
                cell = (k * shape[1] + j) * shape[0] + i
                if rule.regular and first[cell] == first[cell + 1] and not missing:
                    x, y = (i - x0) * size[0], (j - y0) * size[1]
                    missing = _in_cone(x, y, height, rule, size, bench)
                for at in range(first[cell], first[cell + 1]):
                    a = bins.order[at]
                    if not _needs(b, a, blocks, bins, rule):
                        continue
                    said = False
                    for c in index[start:filled]:
                        said = said or _needs(np.int64(c), a, blocks, bins, rule)
                    if not said:
                        index = _with_room(index, filled)
                        index[filled] = a
                        filled += 1
        whole = 0 if missing else whole + 1
        if k > bench and k - bench >= rule.levels and whole > rule.levels:
            break
    return index, filled


@njit(cache=True)
def _cone_arcs(blocks, bins, rule, rows, offsets, count):
    """Arcs of `slope_graph`; stops above `levels` benches in a row without an empty cell."""
    pointer = np.zeros(count + 1, np.int64)
    index = np.empty(32 * count + 1024, np.int32)
    filled = np.int64(0)  # a literal would be a type of its own, and compile all below twice
    full, struck = _full_benches(bins.first, bins.shape), np.empty_like(rows)
    for b in range(count):
        start = filled
        index = _with_room(index, filled + len(offsets) + most_arcs(rows))
        filled = _by_cells(b, bins, rule.levels, offsets, full, rows, struck, index, start)
        if filled < 0:
            index, filled = _by_blocks(b, blocks, bins, rule, index, start)
        index[start:filled].sort()
        pointer[b + 1] = filled
    return pointer, index[:filled].copy()
