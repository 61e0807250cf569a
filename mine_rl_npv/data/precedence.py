"""Graphs of precedence: orders, cycles, and sums over what a block needs."""

from __future__ import annotations

import numpy as np
from numba import njit


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


@njit(cache=True, nogil=True)
def near_cone_sums(pointer, index, columns, level, reach, total, begin, end):
    """Adds up, over a block and what it needs, what lies at most `reach` levels above it.

    A cone grows with the cube of its depth: bounded, a mine of 100,000 blocks takes seconds.
    Whole cones are summed in `cones`.
    columns (n, k) float64, level (n,) int32; total (n, k) float64, filled from `begin` to `end`
    """
    n = pointer.shape[0] - 1
    width = columns.shape[1]
    mark = np.full(n, -1, np.int64)
    stack = np.empty(n, np.int32)
    total[begin:end] = columns[begin:end]
    for b in range(begin, end):
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


@njit(cache=True, nogil=True)
def best_of_needing(pointer, index, order, score):
    """Raises each block's score (n,) in place to the best of all blocks that need it.

    order (n,): every block after all that it needs.
    """
    for i in range(order.shape[0] - 1, -1, -1):
        b = order[i]
        for k in range(pointer[b], pointer[b + 1]):
            score[index[k]] = max(score[index[k]], score[b])
