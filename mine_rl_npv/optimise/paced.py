"""Schedules in which some blocks wait a period for others: how fast a pit may sink.

`Problem.pace` holds, as arcs, the blocks that must be gone a period before a block is mined. The
forward pass and the settling pass are those of `decode`, with windows that know these arcs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from mine_rl_npv.data.instance import Arcs
from mine_rl_npv.optimise.decode import _fits, _heap_pop, _heap_push, _take, bare_blocks, window

if TYPE_CHECKING:
    from mine_rl_npv.optimise.decode import Schedule
    from mine_rl_npv.optimise.problem import Problem


def fill_paced(problem: Problem, plan: Schedule, priority: np.ndarray, two_pass: bool) -> None:
    """Places blocks by priority (m,) float64 into an empty plan, in place."""
    assert problem.pace is not None
    early, late = Arcs.of(problem.pace), Arcs.of(problem.pace.successors)
    _forward(priority, problem.pit, early, plan)
    if two_pass:
        order = problem.pit.order
        for sweep in (order[::-1].copy(), order):
            _moves(sweep, problem.pit, early, late, plan)


@njit(cache=True, nogil=True)
def _forward(priority, pit, early, plan):
    """List scheduling in the earliest period with room; what waits for a block comes after it."""
    preferred, periods = pit.preferred, plan.room.shape[1]
    waiting, heap, size = bare_blocks(priority, pit.needs.pointer)
    while size > 0:
        b = _heap_pop(heap, size, priority)
        size -= 1
        t = _first(b, pit.needs, early, plan.period, periods)
        while t < periods and not _fits(pit.use, b, preferred[b, t], plan.room, t):
            t += 1
        if t >= periods:
            continue
        plan.period[b] = t
        plan.destination[b] = preferred[b, t]
        _take(pit.use, b, preferred[b, t], plan.room, t, 1)
        for k in range(pit.needed_by.pointer[b], pit.needed_by.pointer[b + 1]):
            s = pit.needed_by.index[k]
            waiting[s] -= 1
            if waiting[s] == 0:
                _heap_push(heap, size, priority, s)
                size += 1


@njit(cache=True, nogil=True)
def _first(b, needs, early, period, periods):
    """First period that both kinds of arcs allow; `periods` where something is not mined."""
    first = 0
    for k in range(needs.pointer[b], needs.pointer[b + 1]):
        t = period[needs.index[k]]
        if t < 0:
            return periods
        first = max(first, t)
    for k in range(early.pointer[b], early.pointer[b + 1]):
        t = period[early.index[k]]
        if t < 0:
            return periods
        first = max(first, t + 1)
    return first


@njit(cache=True, nogil=True)
def _moves(order, pit, early, late, plan):
    """Moves each block, in order, to where its window and the room make it worth most."""
    value, use, discount = pit.value, pit.use, pit.discount
    period, destination, room = plan.period, plan.destination, plan.room
    periods = discount.shape[0]
    for i in range(order.shape[0]):
        b = order[i]
        d, now = destination[b], period[b]
        first = _first(b, pit.needs, early, plan.period, periods)
        last = window(b, pit.needs, pit.needed_by, period, periods)[1]
        for k in range(late.pointer[b], late.pointer[b + 1]):
            t = period[late.index[k]]
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
