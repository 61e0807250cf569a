"""Sums over what a block needs, directly or not, for blocks that stand in columns.

A cone holds, with a block of a column, all of the column above it. So the lowest block in each
column says what the cone is, and sums from the top down the columns what it weighs: a cone costs
its footprint, not its volume. Columns are looked at 64 at a time, in one pass over the graph each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from mine_rl_npv.data.instance import Graph

TOGETHER = 64
"""Chains of one pass; their places in a row of int16 fill two lines of a cache."""
_NEAR = 8
"""Chains of one pass come from squares of so many cells, so that most blocks reach none of them."""
_LONGEST = 32_000
"""Blocks of a chain, so that a place in it is an int16."""


def cone_sums(graph: Graph, columns: np.ndarray, position: np.ndarray) -> np.ndarray:
    """Sums of each of k columns over a block and all it needs, exact but for rounding.

    Args:
        graph: precedence between n blocks; its successors for sums over what needs a block.
        columns: (n, k) float64.
        position: (n, 3) int cells. They only say which blocks are worth a try as neighbours in a
            column: chains of blocks follow the arcs, and blocks elsewhere are chains of their own.

    Returns:
        (n, k) float64.
    """
    order = graph.order
    column = np.unique(position[:, :2], axis=0, return_inverse=True)[1].ravel()
    above = _links(graph.pointer, graph.index, column)
    chain, place, tops = _chains(above, order)
    near = np.lexsort((tops, *(position[tops, :2].T // _NEAR)))
    number = np.empty(len(tops), np.int64)
    number[near] = np.arange(len(tops))
    chain = number[chain]
    hanging = np.array(columns, np.float64)
    _hang(above, order, hanging)
    by_place = np.lexsort((place, chain))
    start = np.searchsorted(chain[by_place], np.arange(len(tops)))
    return _sums(graph.pointer, graph.index, order, chain, place, start, hanging[by_place])


@njit(cache=True, nogil=True)
def _links(pointer, index, column):
    """The block (n,) int32 of its own column that each block needs directly, each taken once.

    -1 where there is none. column (n,) int64.
    """
    n = column.shape[0]
    above = np.full(n, -1, np.int32)
    taken = np.zeros(n, np.bool_)
    for b in range(n):
        for k in range(pointer[b], pointer[b + 1]):
            p = index[k]
            if column[p] == column[b] and not taken[p]:
                taken[p] = True
                above[b] = p
                break
    return above


@njit(cache=True, nogil=True)
def _chains(above, order):
    """Chain (n,) int64 and place in it (n,) int16, 1 at the top, and the top of each chain.

    A chain that grows too long is cut: `above` loses the link, in place.
    """
    n = above.shape[0]
    chain, place = np.empty(n, np.int64), np.empty(n, np.int16)
    tops = np.empty(n, np.int64)
    count = 0
    for i in range(n):
        b = order[i]
        a = above[b]
        if a >= 0 and place[a] == _LONGEST:
            above[b] = a = -1
        if a < 0:
            tops[count] = b
            chain[b], place[b] = count, 1
            count += 1
        else:
            chain[b], place[b] = chain[a], place[a] + 1
    return chain, place, tops[:count].copy()


@njit(cache=True, nogil=True)
def _hang(above, order, columns):
    """Adds to each row of columns (n, k), in place, those of the chain above its block."""
    for i in range(order.shape[0]):
        b = order[i]
        if above[b] >= 0:
            for c in range(columns.shape[1]):
                columns[b, c] += columns[above[b], c]


@njit(cache=True, nogil=True)
def _sums(pointer, index, order, chain, place, start, hanging):
    """What hangs on the lowest block of each chain that a block reaches, summed: (n, k) float64.

    chain (n,) int64, place (n,) int16, start (chains,) first row of a chain among those of
    hanging (n, k), which run from its top to its bottom.
    """
    n = order.shape[0]
    total = np.zeros(hanging.shape)
    lowest = np.zeros((n, TOGETHER), np.int16)  # place in each chain of this pass, 0: none
    for first in range(0, start.shape[0], TOGETHER):
        some = np.zeros(n, np.bool_)  # whether a row of `lowest` belongs to this pass
        for i in range(n):
            b = order[i]
            own = chain[b] - first
            if 0 <= own < TOGETHER:
                some[b] = True
                lowest[b, :] = 0
            for k in range(pointer[b], pointer[b + 1]):
                p = index[k]
                if some[p]:
                    _lower(lowest, b, p, some[b])
                    some[b] = True
            if not some[b]:
                continue
            if 0 <= own < TOGETHER:
                lowest[b, own] = place[b]
            for j in range(TOGETHER):
                if lowest[b, j] > 0:
                    row = start[first + j] + lowest[b, j] - 1
                    for c in range(hanging.shape[1]):
                        total[b, c] += hanging[row, c]
    return total


@njit(cache=True, nogil=True, inline="always")
def _lower(lowest, b, p, some):
    """Row b takes the lower place of its own and row p's in each chain; row p's where it is new."""
    if not some:
        for j in range(TOGETHER):
            lowest[b, j] = lowest[p, j]
        return
    for j in range(TOGETHER):
        mine, other = lowest[b, j], lowest[p, j]
        lowest[b, j] = mine if mine > other else other
