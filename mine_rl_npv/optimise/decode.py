"""From a priority per block to a feasible schedule: forward, backward, and what a closure prunes.

The forward pass places the most urgent available block in the earliest period with room. That
puts waste far too early where mining capacity is loose, so the backward pass takes the blocks from
the last needed to the first and moves each to the period of its window where it is worth most,
out of the plan when nothing needs it.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import njit

from mine_rl_npv.data.instance import NEVER
from mine_rl_npv.optimise.closure import max_closure

if TYPE_CHECKING:
    from mine_rl_npv.optimise.problem import Problem


class Decoder(Enum):
    """How scores become a schedule."""

    forward = "forward"
    """List scheduling in the earliest feasible period."""
    two_pass = "two_pass"
    """Forward, then one backward and one forward settling pass."""
    shift = "shift"
    """Two passes, then shift search with groups and an optimal prune."""


class Schedule(NamedTuple):
    """A plan for the pit's blocks, and what of each resource it leaves; kernels fill it."""

    period: np.ndarray
    """(m,) int32, -1 for blocks that stay in the ground."""
    destination: np.ndarray
    """(m,) uint8."""
    room: np.ndarray
    """(R, T) int64 kilograms left."""


def empty_schedule(problem: Problem) -> Schedule:
    """Nothing mined."""
    return Schedule(
        np.full(problem.blocks, NEVER, np.int32),
        np.zeros(problem.blocks, np.uint8),
        problem.room.copy(),
    )


def list_schedule(problem: Problem, priority: np.ndarray, two_pass: bool = False) -> Schedule:
    """Places blocks by priority (m,) float64, highest first, ties by id; see the module."""
    plan = empty_schedule(problem)
    forward(priority, problem.pit, plan)
    if two_pass:
        settle(problem, plan)
    return plan


def settle(problem: Problem, plan: Schedule, rounds: int = 1) -> None:
    """The backward pass, then a forward one that fills what it freed; in place."""
    order = problem.pit.order
    for _ in range(rounds):
        for sweep in (order[::-1].copy(), order):
            best_moves(sweep, problem.pit, plan)


def prune(problem: Problem, plan: Schedule) -> None:
    """Drops the blocks that do not pay for themselves with periods fixed: one closure, optimal."""
    mined = plan.period != NEVER
    rows = np.arange(problem.blocks)
    worth = problem.value[rows, plan.destination] * problem.discount[plan.period]
    keep = max_closure(np.where(mined, worth, 0.0), problem.graph)
    for b in np.flatnonzero(mined & ~keep):
        plan.room[:, plan.period[b]] += problem.use[b, plan.destination[b]]
        plan.period[b] = NEVER


@njit(cache=True, nogil=True, inline="always")
def _fits(use, b, d, room, t):
    fits = True
    for r in range(room.shape[0]):
        fits = fits and use[b, d, r] <= room[r, t]
    return fits


@njit(cache=True, nogil=True, inline="always")
def _take(use, b, d, room, t, sign):
    for r in range(room.shape[0]):
        room[r, t] -= sign * use[b, d, r]


@njit(cache=True, nogil=True)
def _heap_push(heap, size, priority, b):
    i = size
    while i > 0:
        above = (i - 1) >> 1
        a = heap[above]
        if priority[a] > priority[b] or (priority[a] == priority[b] and a < b):
            break
        heap[i] = a
        i = above
    heap[i] = b


@njit(cache=True, nogil=True)
def _heap_pop(heap, size, priority):
    top = heap[0]
    last = heap[size - 1]
    size -= 1
    i = 0
    while True:
        c = 2 * i + 1
        if c >= size:
            break
        if c + 1 < size:
            x, y = heap[c], heap[c + 1]
            if priority[y] > priority[x] or (priority[y] == priority[x] and y < x):
                c += 1
        x = heap[c]
        if priority[last] > priority[x] or (priority[last] == priority[x] and last < x):
            break
        heap[i] = x
        i = c
    heap[i] = last
    return top


@njit(cache=True, nogil=True)
def bare_blocks(priority, pointer):
    """What each block waits for, and a heap of those that wait for nothing, with its size."""
    m = priority.shape[0]
    waiting = np.empty(m, np.int32)
    heap = np.empty(m, np.int32)
    size = 0
    for b in range(m):
        waiting[b] = pointer[b + 1] - pointer[b]
        if waiting[b] == 0:
            _heap_push(heap, size, priority, b)
            size += 1
    return waiting, heap, size


@njit(cache=True, nogil=True)
def forward(priority, pit, plan):
    """List scheduling in the earliest feasible period; fills an empty plan.

    A block that fits nowhere stays in the ground, and so does what needs it.
    priority (m,) float64; pit: `Problem.pit`.
    """
    preferred, periods = pit.preferred, plan.room.shape[1]
    ready = np.zeros(priority.shape[0], np.int32)
    waiting, heap, size = bare_blocks(priority, pit.needs.pointer)
    while size > 0:
        b = _heap_pop(heap, size, priority)
        size -= 1
        t = ready[b]
        while t < periods and not _fits(pit.use, b, preferred[b, t], plan.room, t):
            t += 1
        if t == periods:
            continue
        d = preferred[b, t]
        plan.period[b] = t
        plan.destination[b] = d
        _take(pit.use, b, d, plan.room, t, 1)
        for k in range(pit.needed_by.pointer[b], pit.needed_by.pointer[b + 1]):
            s = pit.needed_by.index[k]
            if t > ready[s]:
                ready[s] = t
            waiting[s] -= 1
            if waiting[s] == 0:
                _heap_push(heap, size, priority, s)
                size += 1


@njit(cache=True, nogil=True)
def window(b, needs, needed_by, period, periods):
    """First period allowed by what b needs and last allowed by what needs b.

    The first is `periods` when something it needs is not mined; the last is `periods` when nothing
    mined needs it, which says that b may also be left.
    """
    first = 0
    for k in range(needs.pointer[b], needs.pointer[b + 1]):
        t = period[needs.index[k]]
        if t < 0:
            return periods, periods
        if t > first:
            first = t
    last = periods
    for k in range(needed_by.pointer[b], needed_by.pointer[b + 1]):
        t = period[needed_by.index[k]]
        if 0 <= t < last:
            last = t
    return first, last


@njit(cache=True, nogil=True)
def best_moves(order, pit, plan):
    """Moves each block, in the given order, to where its window and the room make it worth most.

    Returns the total gain in discounted value; the plan changes in place.
    """
    value, use, discount = pit.value, pit.use, pit.discount
    period, destination, room = plan.period, plan.destination, plan.room
    periods = discount.shape[0]
    total = 0.0
    for i in range(order.shape[0]):
        b = order[i]
        first, last = window(b, pit.needs, pit.needed_by, period, periods)
        now = period[b]
        if now < 0 and first == periods:
            continue
        worth = 0.0
        if now >= 0:
            worth = value[b, destination[b]] * discount[now]
            _take(use, b, destination[b], room, now, -1)
        best, best_t, best_d = worth, now, destination[b]
        if last == periods and best < 0.0:
            best, best_t = 0.0, -1
        stop = last if last < periods else periods - 1
        for d in range(value.shape[1]):
            v = value[b, d]
            if v > 0.0:
                t = first
                while t <= stop and v * discount[t] > best:
                    if _fits(use, b, d, room, t):
                        best, best_t, best_d = v * discount[t], t, d
                        break
                    t += 1
            else:
                t = stop
                while t >= first and v * discount[t] > best:
                    if _fits(use, b, d, room, t):
                        best, best_t, best_d = v * discount[t], t, d
                        break
                    t -= 1
        if best_t >= 0:
            _take(use, b, best_d, room, best_t, 1)
        period[b] = best_t
        destination[b] = best_d
        total += best - worth
    return total
