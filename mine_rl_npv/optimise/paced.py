"""Schedules in which some blocks wait a period for others: how fast a pit may sink.

`Problem.pace` holds, as arcs, the blocks that must be gone a period before a block is mined. The
forward pass and the settling pass are those of `decode`, with windows that know these arcs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from mine_rl_npv.optimise.decode import _fits, _heap_pop, _heap_push, _take, bare_blocks, window

if TYPE_CHECKING:
    from mine_rl_npv.optimise.decode import Schedule
    from mine_rl_npv.optimise.problem import Problem


def fill_paced(problem: Problem, plan: Schedule, priority: np.ndarray, two_pass: bool) -> None:
    """Places blocks by priority (m,) float64 into an empty plan, in place."""
    assert problem.pace is not None
    graph, back = problem.graph, problem.graph.successors
    early, late = problem.pace, problem.pace.successors
    arcs = (graph.pointer, graph.index, back.pointer, back.index)
    lags = (early.pointer, early.index, late.pointer, late.index)
    mutable = (plan.period, plan.destination, plan.room)
    _forward(priority, *arcs, *lags, problem.use, problem.preferred, *mutable)
    if two_pass:
        for order in (graph.order[::-1], graph.order):
            _moves(order, *arcs, *lags, problem.value, problem.use, problem.discount, *mutable)


@njit(cache=True, nogil=True)
def _forward(
    priority,
    pointer,
    index,
    succ_pointer,
    succ_index,
    lag_pointer,
    lag_index,
    late_pointer,
    late_index,
    use,
    preferred,
    period,
    destination,
    room,
):
    """List scheduling in the earliest period with room; what waits for a block comes after it."""
    periods = room.shape[1]
    waiting, heap, size = bare_blocks(priority, pointer)
    while size > 0:
        b = _heap_pop(heap, size, priority)
        size -= 1
        t = _first(b, pointer, index, lag_pointer, lag_index, period, periods)
        while t < periods and not _fits(use, b, preferred[b, t], room, t):
            t += 1
        if t >= periods:
            continue
        period[b] = t
        destination[b] = preferred[b, t]
        _take(use, b, destination[b], room, t, 1)
        for k in range(succ_pointer[b], succ_pointer[b + 1]):
            s = succ_index[k]
            waiting[s] -= 1
            if waiting[s] == 0:
                _heap_push(heap, size, priority, s)
                size += 1


@njit(cache=True, nogil=True)
def _first(b, pointer, index, lag_pointer, lag_index, period, periods):
    """First period that both kinds of arcs allow; `periods` where something is not mined."""
    first = 0
    for k in range(pointer[b], pointer[b + 1]):
        t = period[index[k]]
        if t < 0:
            return periods
        first = max(first, t)
    for k in range(lag_pointer[b], lag_pointer[b + 1]):
        t = period[lag_index[k]]
        if t < 0:
            return periods
        first = max(first, t + 1)
    return first


@njit(cache=True, nogil=True)
def _moves(
    order,
    pointer,
    index,
    succ_pointer,
    succ_index,
    lag_pointer,
    lag_index,
    late_pointer,
    late_index,
    value,
    use,
    discount,
    period,
    destination,
    room,
):
    """Moves each block, in order, to where its window and the room make it worth most."""
    periods = discount.shape[0]
    for i in range(order.shape[0]):
        b = order[i]
        d, now = destination[b], period[b]
        first = _first(b, pointer, index, lag_pointer, lag_index, period, periods)
        last = window(b, pointer, index, succ_pointer, succ_index, period, periods)[1]
        for k in range(late_pointer[b], late_pointer[b + 1]):
            t = period[late_index[k]]
            if t >= 0:
                last = min(last, t - 1)
        if first == periods:
            continue
        v, best, best_t = value[b, d], 0.0, -1
        if now >= 0:
            _take(use, b, d, room, now, -1)
            if last < periods or v * discount[now] > 0.0:
                best, best_t = v * discount[now], now
        stop = min(last, periods - 1)
        for k in range(stop - first + 1):
            t = first + k if v > 0.0 else stop - k
            if (best_t < 0 or v * discount[t] > best) and _fits(use, b, d, room, t):
                if v * discount[t] > best:
                    best, best_t = v * discount[t], t
                break
        period[b] = best_t
        if best_t >= 0:
            _take(use, b, d, room, best_t, 1)
