"""Reworking a plan: the blocks of a few periods are scheduled again, in a slightly other order.

A try takes blocks of two or three neighbouring periods out of the plan, mostly those around two
places. What stands around one block, or one block with all it needs or all that needs it, moves
forward or back in the order; or one comes earlier with all it needs, one goes later with all that
needs it, or both. Then the same periods are filled again, and all settle where they are worth most.
A try is kept where the plan earns no less. It costs what its blocks cost, not what the mine does: a
hundred tries take the time of a few whole schedules.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import njit

from mine_rl_npv.optimise.decode import Schedule, _fits, _heap_pop, _heap_push, _take, best_moves

if TYPE_CHECKING:
    from mine_rl_npv.optimise.problem import Problem

_WIDEST = 3
_NEAR = 0.7
"""Share of the tries that take the blocks around two places, not all of their periods."""
_FREE, _EARLIER, _LATER, _KINDS = 2, 2, 3, 5
"""Of five kinds of tries two change the order, one brings forward, one puts off, one does both."""
_LOOKS = 8
"""At blocks for one that can change its period."""


class _Scratch(NamedTuple):
    """What a try notes about its blocks; m of the pit."""

    trial: np.ndarray
    """(m,) float64 priority, highest first."""
    early: np.ndarray
    """(m,) int32 earliest period."""
    waiting: np.ndarray
    """(m,) int32 blocks of the try that are needed and not placed; -1 outside of it."""
    stack: np.ndarray
    """(m,) int32."""


@dataclass
class Rework:
    """Tries on one plan, one after the other: the same everywhere for a seed."""

    problem: Problem
    """Without a pace."""
    plan: Schedule
    """Feasible before and after; changed in place."""
    key: np.ndarray
    """(m,) float64 ranks in [0, 1), what goes first lowest; changed in place."""
    seed: int
    state: np.ndarray = field(init=False)
    place: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.state = np.full(1, self.seed, np.uint64)
        self.place = self.problem.instance.position[self.problem.inside].astype(np.float64)

    def spend(self, blocks: int) -> float:
        """Tries until so many blocks were scheduled again; the gain in discounted value."""
        return float(_tries(self.problem.pit, self.plan, self.key, self.place, blocks, self.state))

    def follow(self, other: Rework) -> None:
        """Takes over another one's plan and order."""
        for own, theirs in zip((*self.plan, self.key), (*other.plan, other.key), strict=True):
            own[:] = theirs


def ranks(priority: np.ndarray) -> np.ndarray:
    """(m,) float64 in [0, 1) of priorities (m,), the highest lowest."""
    rank = np.empty(len(priority))
    rank[np.argsort(-priority, kind="stable")] = np.arange(len(priority)) / len(priority)
    return rank


@njit(cache=True, nogil=True)
def _next(state):
    """A number in [0, 1) from state (1,) uint64, by splitmix64."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return np.float64(z >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@njit(cache=True, nogil=True)
def _tries(pit, plan, key, place, blocks, state):
    m, periods = key.shape[0], plan.room.shape[1]
    work = _Scratch(
        np.empty(m), np.zeros(m, np.int32), np.full(m, -1, np.int32), np.empty(m, np.int32)
    )
    extent = 1.0
    for axis in range(place.shape[1]):
        extent = max(extent, np.ptp(place[:, axis]) + 1.0)
    gain, done = 0.0, np.int64(0)
    while done < blocks:
        done += 1 + m // 64  # what finding the blocks costs
        b, other = int(_next(state) * m), int(_next(state) * m)
        if plan.period[b] < 0:
            continue
        width = min(periods, 2 + int(_next(state) * (_WIDEST - 1)))
        first = min(max(0, plan.period[b] - int(_next(state) * width)), periods - width)
        reach = np.inf
        if _next(state) < _NEAR:
            reach = np.exp(_next(state) * np.log(0.5 * extent)) + 1.0
        taken = _taken(pit.order, plan.period, first, first + width, place, b, other, reach)
        done += taken.shape[0]
        kind = int(_next(state) * _KINDS)
        free = kind < _FREE
        if free:
            _reorder(b, taken, pit, plan, key, place, extent, first, first + width, work, state)
        else:
            _keep_in_place(taken, plan, key, work, state)
        if not free and kind != _LATER:
            c = b if kind == _EARLIER else taken[int(_next(state) * taken.shape[0])]
            _bring_forward(c, taken, pit, plan, first, first + width, work, state)
        if not free and kind != _EARLIER:
            _put_off(b, taken, pit, plan, first, first + width, work, state)
        gain += _schedule_again(taken, pit, plan, key, first + width, free, work)
    return gain


@njit(cache=True, nogil=True)
def _taken(order, period, first, stop, place, one, other, reach):
    """Blocks (k,) of these periods around one of two, what is needed before what needs it."""
    out = np.empty(order.shape[0], np.int32)
    count, far = 0, reach * reach
    for b in order:
        if first <= period[b] < stop:
            x = y = 0.0
            for axis in range(place.shape[1]):
                x += (place[b, axis] - place[one, axis]) ** 2
                y += (place[b, axis] - place[other, axis]) ** 2
            if x <= far or y <= far:
                out[count] = b
                count += 1
    return out[:count].copy()


@njit(cache=True, nogil=True)
def _reorder(b, taken, pit, plan, key, place, extent, first, stop, work, state):
    """All may come as early as they fit; what stands around b, or hangs on it, moves in the order.

    As far as the blocks of some periods at most, where a mine digs equally many in each.
    """
    periods = plan.room.shape[1]
    shift = (2.0 * _next(state) - 1.0) * (stop - first) / periods
    for v in taken:
        work.early[v] = first
        work.trial[v] = -key[v]
    if _next(state) < 0.5:
        radius = np.exp(_next(state) * np.log(max(2.0, 0.3 * extent))) + 0.5
        for v in taken:
            away = 0.0
            for axis in range(place.shape[1]):
                away += ((place[v, axis] - place[b, axis]) / radius) ** 2
            work.trial[v] += shift * np.exp(-away)
        return
    arcs = pit.needs if shift > 0.0 else pit.needed_by
    for i in range(_hanging(b, arcs, plan.period, first, stop, work)):
        work.trial[work.stack[i]] += shift


@njit(cache=True, nogil=True)
def _keep_in_place(taken, plan, key, work, state):
    """All stay where they are as long as they fit, in an order by chance to some degree."""
    chance = _next(state) * taken.shape[0] / key.shape[0]
    for v in taken:
        work.early[v] = plan.period[v]
        work.trial[v] = -(2.0 * plan.period[v] + key[v] + chance * _next(state))


@njit(cache=True, nogil=True)
def _bring_forward(b, taken, pit, plan, first, stop, work, state):
    """A paying block comes earlier, with all that it needs, before what is there already."""
    for _ in range(_LOOKS):
        if plan.period[b] > first and pit.value[b, plan.destination[b]] > 0.0:
            break
        b = taken[int(_next(state) * taken.shape[0])]
    now = plan.period[b]
    if now == first:
        return
    goal = first + int(_next(state) * (now - first))
    for i in range(_hanging(b, pit.needs, plan.period, goal + 1, stop, work)):
        work.early[work.stack[i]] = goal
        work.trial[work.stack[i]] = 1.0 - 2.0 * goal


@njit(cache=True, nogil=True)
def _put_off(b, taken, pit, plan, first, stop, work, state):
    """A block goes later, with all that needs it, behind what is there already."""
    for _ in range(_LOOKS):
        if plan.period[b] < stop - 1:
            break
        b = taken[int(_next(state) * taken.shape[0])]
    now = plan.period[b]
    if now == stop - 1:
        return
    goal = now + 1 + int(_next(state) * (stop - 1 - now))
    for i in range(_hanging(b, pit.needed_by, plan.period, first, goal, work)):
        work.early[work.stack[i]] = goal
        work.trial[work.stack[i]] = -2.0 * goal - 1.5


@njit(cache=True, nogil=True)
def _hanging(b, arcs, period, first, stop, work):
    """How many lie on the stack: b, and all that the arcs reach from it in these periods."""
    work.stack[0] = b
    work.waiting[b] = 0
    size, done = 1, 0
    while done < size:
        v = work.stack[done]
        done += 1
        for k in range(arcs.pointer[v], arcs.pointer[v + 1]):
            p = arcs.index[k]
            if first <= period[p] < stop and work.waiting[p] < 0:
                work.waiting[p] = 0
                work.stack[size] = p
                size += 1
    for i in range(size):
        work.waiting[work.stack[i]] = -1
    return size


@njit(cache=True, nogil=True)
def _schedule_again(taken, pit, plan, key, stop, free, work):
    """The gain; where all would lose, or one finds no room, the plan is what it was."""
    period, destination = plan.period, plan.destination
    old_period, old_destination = period[taken], destination[taken]
    before = _worth(taken, pit, plan)
    for b in taken:
        _take(pit.use, b, destination[b], plan.room, period[b], -1)
    gain = -1.0
    if _fill(taken, pit, plan, stop, free, work):
        best_moves(taken[::-1].copy(), pit, plan)
        best_moves(taken, pit, plan)
        gain = _worth(taken, pit, plan) - before
    if gain >= 0.0:
        if free:
            for b in taken:
                key[b] = -work.trial[b]
        return gain
    for b in taken:
        if period[b] >= 0:
            _take(pit.use, b, destination[b], plan.room, period[b], -1)
    for i in range(taken.shape[0]):
        b = taken[i]
        period[b], destination[b] = old_period[i], old_destination[i]
        _take(pit.use, b, destination[b], plan.room, period[b], 1)
    return 0.0


@njit(cache=True, nogil=True)
def _worth(taken, pit, plan):
    total = 0.0
    for b in taken:
        if plan.period[b] >= 0:
            total += pit.value[b, plan.destination[b]] * pit.discount[plan.period[b]]
    return total


@njit(cache=True, nogil=True)
def _fill(taken, pit, plan, stop, free, work):
    """List scheduling of the taken blocks before `stop`; whether all found room.

    With `free` they go to the destination that their period prefers, else to the one they had.
    """
    period, waiting, needs = plan.period, work.waiting, pit.needs
    heap, size = np.empty(taken.shape[0], np.int32), 0
    for b in taken:
        period[b] = -1
        waiting[b] = 0
        for k in range(needs.pointer[b], needs.pointer[b + 1]):
            waiting[b] += waiting[needs.index[k]] >= 0
        if waiting[b] == 0:
            _heap_push(heap, size, work.trial, b)
            size += 1
    placed = 0
    while size > 0:
        b = _heap_pop(heap, size, work.trial)
        size -= 1
        t = _place(b, pit, plan, work.early[b], stop, free)
        if t < 0:
            break
        placed += 1
        for k in range(pit.needed_by.pointer[b], pit.needed_by.pointer[b + 1]):
            s = pit.needed_by.index[k]
            if waiting[s] > 0:
                waiting[s] -= 1
                if waiting[s] == 0:
                    _heap_push(heap, size, work.trial, s)
                    size += 1
    for b in taken:
        waiting[b] = -1
    return placed == taken.shape[0]


@njit(cache=True, nogil=True)
def _place(b, pit, plan, first, stop, free):
    """The first period with room between what b needs and what needs it; -1 without one."""
    for k in range(pit.needs.pointer[b], pit.needs.pointer[b + 1]):
        first = max(first, plan.period[pit.needs.index[k]])
    for k in range(pit.needed_by.pointer[b], pit.needed_by.pointer[b + 1]):
        later = plan.period[pit.needed_by.index[k]]
        if later >= 0:
            stop = min(stop, later + 1)
    for t in range(first, stop):
        d = pit.preferred[b, t] if free else plan.destination[b]
        if _fits(pit.use, b, d, plan.room, t):
            plan.period[b], plan.destination[b] = t, d
            _take(pit.use, b, d, plan.room, t, 1)
            return t
    return -1
