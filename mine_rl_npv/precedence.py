"""Which blocks must go before which: slope templates, graphs over grids, orders and cycles."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numba import njit

from frugal_rl.errors import ConfigError

Offset = tuple[int, int, int]
NAMED_PATTERNS = ("5", "9", "1-5-9")

_CROSS: tuple[Offset, ...] = ((0, 0, 1), (1, 0, 1), (-1, 0, 1), (0, 1, 1), (0, -1, 1))
_SQUARE: tuple[Offset, ...] = tuple((x, y, 1) for x in (-1, 0, 1) for y in (-1, 0, 1))


def named_pattern(name: str) -> tuple[tuple[Offset, ...], tuple[Offset, ...]]:
    """Offsets to the predecessors for blocks on odd and on even benches, by the pattern's name.

    `5` is the cross above, `9` the 3 x 3 above, `1-5-9` the cross on odd and the square on even
    benches.
    """
    patterns = {"5": (_CROSS, _CROSS), "9": (_SQUARE, _SQUARE), "1-5-9": (_CROSS, _SQUARE)}
    if name not in patterns:
        raise ConfigError(f"Unknown precedence pattern '{name}'; choose one of {NAMED_PATTERNS}.")
    return patterns[name]


def slope_template(
    angle_degrees: float | Callable[[float], float],
    block_size: Sequence[float],
    levels: int,
) -> tuple[Offset, ...]:
    """Offsets within the slope cone, reduced to those that others do not imply.

    Args:
        angle_degrees: overall slope, or a function of the azimuth in degrees (0 = +y, clockwise).
        block_size: block edge lengths x, y, z in metres.
        levels: how many levels the cone reaches.

    Returns:
        The reduced offsets, lowest level first. For cubes, 45 degrees and 8 levels there are 17.
    """
    slope = angle_degrees if callable(angle_degrees) else lambda azimuth: angle_degrees
    kept: list[Offset] = []
    implied: list[set[tuple[int, int]]] = [{(0, 0)}]
    for dz in range(1, levels + 1):
        reached = {(x + dx, y + dy) for dx, dy, level in kept for x, y in implied[dz - level]}
        for x, y in sorted(_cone_section(slope, block_size, dz) - reached):
            kept.append((x, y, dz))
            reached.add((x, y))
        implied.append(reached)
    return tuple(kept)


def _cone_section(
    slope: Callable[[float], float], size: Sequence[float], dz: int
) -> set[tuple[int, int]]:
    steepest = min(slope(azimuth) for azimuth in range(0, 360, 5))
    radius = dz * size[2] / math.tan(math.radians(steepest))
    reach_x, reach_y = int(radius / size[0] + 1e-9), int(radius / size[1] + 1e-9)
    section = set()
    for x in range(-reach_x, reach_x + 1):
        for y in range(-reach_y, reach_y + 1):
            azimuth = math.degrees(math.atan2(x * size[0], y * size[1])) % 360
            allowed = dz * size[2] / math.tan(math.radians(slope(azimuth)))
            if math.hypot(x * size[0], y * size[1]) <= allowed * (1 + 1e-9):
                section.add((x, y))
    return section


def template_graph(
    position: np.ndarray, odd: Sequence[Offset], even: Sequence[Offset] | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Predecessors of blocks on a grid by offsets; positions without a block are air.

    Args:
        position: (n, 3) int cells x, y, z with z upward.
        odd: offsets used on benches with odd z (and on all when `even` is None).
        even: offsets used on benches with even z.

    Returns:
        pointer (n + 1,) int64 and index (arcs,) int32.
    """
    even = odd if even is None else even
    low = position.min(axis=0)
    shape = position.max(axis=0) - low + 1
    cell_block = np.full(tuple(shape), -1, np.int32)
    local = position - low
    cell_block[tuple(local.T)] = np.arange(len(position), dtype=np.int32)
    is_odd = position[:, 2] % 2 == 1
    pairs = [
        _arcs_of_offset(cell_block, local, np.asarray(offset), mask)
        for offsets, mask in ((odd, is_odd), (even, ~is_odd))
        for offset in offsets
    ]
    owner = np.concatenate([pair[0] for pair in pairs])
    needed = np.concatenate([pair[1] for pair in pairs])
    order = np.lexsort((needed, owner))
    counts = np.bincount(owner, minlength=len(position))
    pointer = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    return pointer, needed[order].astype(np.int32)


def _arcs_of_offset(
    cell_block: np.ndarray, local: np.ndarray, offset: np.ndarray, mask: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    target = local + offset
    inside = mask & np.all((target >= 0) & (target < cell_block.shape), axis=1)
    owner = np.flatnonzero(inside)
    needed = cell_block[tuple(target[inside].T)]
    return owner[needed >= 0], needed[needed >= 0]


@njit(cache=True)
def topological_order(pointer, index):
    """Blocks in an order where predecessors come first; shorter than n when there is a cycle.

    pointer (n + 1,) int64, index (arcs,) int32 -> (m <= n,) int32
    """
    n = pointer.shape[0] - 1
    succ_pointer, succ_index = reverse_graph(pointer, index)
    waiting = np.empty(n, np.int32)
    order = np.empty(n, np.int32)
    filled = 0
    for b in range(n):
        waiting[b] = pointer[b + 1] - pointer[b]
        if waiting[b] == 0:
            order[filled] = b
            filled += 1
    done = 0
    while done < filled:
        b = order[done]
        done += 1
        for k in range(succ_pointer[b], succ_pointer[b + 1]):
            s = succ_index[k]
            waiting[s] -= 1
            if waiting[s] == 0:
                order[filled] = s
                filled += 1
    return order[:filled]


@njit(cache=True)
def reverse_graph(pointer, index):
    """The same arcs by their other end: pointer (n + 1,) int64, index (arcs,) int32."""
    n = pointer.shape[0] - 1
    back = np.zeros(n + 1, np.int64)
    for k in range(index.shape[0]):
        back[index[k] + 1] += 1
    for b in range(n):
        back[b + 1] += back[b]
    place = back[:-1].copy()
    out = np.empty(index.shape[0], np.int32)
    for b in range(n):
        for k in range(pointer[b], pointer[b + 1]):
            p = index[k]
            out[place[p]] = b
            place[p] += 1
    return back, out


def find_cycle(pointer: np.ndarray, index: np.ndarray) -> list[int]:
    """Blocks of one cycle, the first repeated at the end; empty when there is none."""
    n = len(pointer) - 1
    sorted_out = set(topological_order(pointer, index).tolist())
    stuck = [b for b in range(n) if b not in sorted_out]
    if not stuck:
        return []
    walk, seen = [stuck[0]], {stuck[0]: 0}
    while True:
        here = walk[-1]
        needed = index[pointer[here] : pointer[here + 1]]
        step = next(int(p) for p in needed if int(p) not in sorted_out)
        if step in seen:
            return walk[seen[step] :] + [step]
        seen[step] = len(walk)
        walk.append(step)


@njit(cache=True)
def cone_counts(pointer, index):
    """How many blocks each block needs, directly or not, by one search per block.

    pointer (n + 1,) int64, index (arcs,) int32 -> (n,) int64
    """
    n = pointer.shape[0] - 1
    mark = np.full(n, -1, np.int64)
    stack = np.empty(n, np.int32)
    count = np.zeros(n, np.int64)
    for b in range(n):
        top = 1
        stack[0] = b
        mark[b] = b
        while top > 0:
            top -= 1
            v = stack[top]
            for k in range(pointer[v], pointer[v + 1]):
                p = index[k]
                if mark[p] != b:
                    mark[p] = b
                    count[b] += 1
                    stack[top] = p
                    top += 1
    return count


def cone_sums(pointer, index, columns):
    """Sums of each column over a block and all it needs (transposed graph: all that need it).

    columns (n, k) float64 -> (n, k) float64
    """
    return near_cone_sums(pointer, index, columns, np.zeros(len(columns), np.int32), 0)


@njit(cache=True, nogil=True)
def near_cone_sums(pointer, index, columns, level, reach):
    """`cone_sums` of the part of each cone that lies at most `reach` levels above its block.

    A cone grows with the cube of its depth: bounded, a mine of 100,000 blocks takes seconds.
    columns (n, k) float64, level (n,) int32 -> (n, k) float64
    """
    n = pointer.shape[0] - 1
    width = columns.shape[1]
    mark = np.full(n, -1, np.int64)
    stack = np.empty(n, np.int32)
    total = columns.copy()
    for b in range(n):
        top = 1
        stack[0] = b
        mark[b] = b
        while top > 0:
            top -= 1
            v = stack[top]
            for k in range(pointer[v], pointer[v + 1]):
                p = index[k]
                if mark[p] != b and level[p] - level[b] <= reach:
                    mark[p] = b
                    stack[top] = p
                    top += 1
                    for c in range(width):
                        total[b, c] += columns[p, c]
    return total


@njit(cache=True, nogil=True)
def best_of_needing(pointer, index, order, score):
    """Raises each block's score (n,) in place to the best of all blocks that need it.

    order (n,): every block after all that it needs.
    """
    for i in range(order.shape[0] - 1, -1, -1):
        b = order[i]
        for k in range(pointer[b], pointer[b + 1]):
            score[index[k]] = max(score[index[k]], score[b])
