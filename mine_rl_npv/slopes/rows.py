"""Arcs on a lattice, where every block has the same cone, by rows of cells.

What a block needs follows from cells alone: whole rows of its cone are struck out at a time by the
cones of the blocks that it needs already.
"""

from __future__ import annotations

import numpy as np
from numba import njit

MOST_WIDE = 31
"""Cells to each side of the middle that a row of 64 bits holds."""


@njit(cache=True)
def rows_of(cone):
    """Rows (K, J) uint64 of a cone of cells (K, J, I) bool: bit i of a row is its cell i."""
    rows = np.zeros(cone.shape[:2], np.uint64)
    for k in range(cone.shape[0]):
        for j in range(cone.shape[1]):
            for i in range(cone.shape[2]):
                if cone[k, j, i]:
                    rows[k, j] |= np.uint64(1) << np.uint64(i)
    return rows


@njit(cache=True)
def most_arcs(rows):
    """Cells of a cone: no block needs more."""
    return rows.size * (2 * MOST_WIDE + 1)


@njit(cache=True)
def arcs_by_rows(place, shape, first, order, full, rows, levels, said, index, filled):
    """Write the arcs of the block at the cell `place` (3,) to `index` from `filled` on.

    `first` and `order` are the blocks by cell of a lattice of `shape` (3,), `full` its benches
    (shape[2],) bool of which every cell is filled, `rows` what `rows_of` makes of the cone, `said`
    an array like it to work in. So many `levels`, and as many in a row without an empty cell, say
    all.

    Returns:
        The new `filled`; -1 where benches above those of `rows` may say more.
    """
    middle_j, whole = rows.shape[1] // 2, 1
    left = max(0, MOST_WIDE - place[0])
    right = min(2 * MOST_WIDE + 1, shape[0] - place[0] + MOST_WIDE)
    inside = (np.uint64(1) << np.uint64(right)) - (np.uint64(1) << np.uint64(left))
    low, high = max(0, middle_j - place[1]), min(rows.shape[1], shape[1] - place[1] + middle_j)
    said[:] = 0
    for k in range(1, shape[2] - place[2]):
        if k >= len(rows):
            return -1
        bench, missing = place[2] + k, False
        for j in range(low, high):
            cells = rows[k, j] & inside
            if full[bench] or missing:
                cells &= ~said[k, j]
            if not cells:
                continue
            line = (bench * shape[1] + place[1] + j - middle_j) * shape[0] + place[0] - MOST_WIDE
            for i in range(left, right):
                bit = np.uint64(1) << np.uint64(i)
                if not cells & bit:
                    continue
                cell = line + i
                if first[cell] == first[cell + 1]:
                    missing = True
                elif not said[k, j] & bit:
                    index[filled] = order[first[cell]]
                    filled += 1
                    _strike(said, rows, k, j - middle_j, i - MOST_WIDE)
        whole = 0 if missing else whole + 1
        if k >= levels and whole > levels:
            break
    return filled


@njit(cache=True)
def _strike(said, rows, k, j, i):
    """Strike out what lies in the cone of the cell (j, i) cells away on bench k."""
    deep = rows.shape[1]
    for bench in range(k + 1, len(rows)):
        for row in range(max(0, j), min(deep, deep + j)):
            cells = rows[bench - k, row - j]
            said[bench, row] |= cells << np.uint64(i) if i >= 0 else cells >> np.uint64(-i)
