"""Shift search: moves blocks, and groups that must move together, to better periods.

Single moves are those of `decode.best_moves`. A group is a block with what it needs (to go one
period earlier) or with what needs it (one period later, or out of the plan) in the same period.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from mine_rl_npv.optimise.decode import Schedule, _take, best_moves

if TYPE_CHECKING:
    from mine_rl_npv.optimise.problem import Problem


def shift_search(problem: Problem, plan: Schedule, rounds: int = 30, group: int = 0) -> float:
    """Improves a plan in place until a round gains less than 1e-9 of its value.

    Args:
        problem: the pit.
        plan: feasible before and after.
        rounds: most rounds of single moves (and of group moves, when `group` > 0).
        group: most blocks that move together; 0 moves single blocks only.

    Returns:
        The gain in discounted value.
    """
    return _search(problem.pit, plan, rounds, group)


@njit(cache=True, nogil=True)
def _search(pit, plan, rounds, group):
    total = 0.0
    back = pit.order[::-1].copy()
    m = back.shape[0]
    mark = np.zeros(m, np.int64)
    members = np.empty(min(m, group) if group > 0 else 1, np.int32)
    stamp = 0
    scale = 0.0
    for b in range(m):
        scale += abs(pit.value[b, plan.destination[b]])
    for _ in range(rounds):
        gain = best_moves(back, pit, plan) + best_moves(pit.order, pit, plan)
        if group > 0:
            change, stamp = _group_sweep(pit, plan, mark, stamp, members)
            gain += change
        total += gain
        if gain <= 1e-10 * scale:
            break
    return total


@njit(cache=True, nogil=True)
def _group_sweep(pit, plan, mark, stamp, members):
    """Groups later, from the last block to the first; then earlier, and cones into the plan.

    members (most blocks of a group,) int32; mark (m,) int64 holds the stamp of the last group that
    a block was in.
    """
    order, value, period, destination = pit.order, pit.value, plan.period, plan.destination
    gain = 0.0
    for i in range(order.shape[0] - 1, -1, -1):
        b = order[i]
        if period[b] >= 0 and value[b, destination[b]] < 0.0:
            stamp += 1
            gain += _move_group(b, 1, pit.needed_by, pit, plan, mark, stamp, members)
    for b in order:
        if period[b] > 0 and value[b, destination[b]] > 0.0:
            stamp += 1
            gain += _move_group(b, -1, pit.needs, pit, plan, mark, stamp, members)
        if period[b] < 0 and value[b].max() > 0.0:
            stamp += 1
            gain += _insert_cone(b, pit, plan, mark, stamp, members)
    return gain, stamp


@njit(cache=True, nogil=True)
def _gather(b, arcs, value, period, destination, mark, stamp, members):
    """Members: b and all that the arcs reach from it among the blocks of its period.

    Blocks in the ground get the destination where they are worth most. Returns how many they are
    (0: too many), what they are worth undiscounted, and the last period of all that was reached.
    """
    size, done, worth, now, latest = 1, 0, 0.0, period[b], 0
    members[0] = b
    mark[b] = stamp
    while done < size:
        v = members[done]
        done += 1
        if now < 0:
            destination[v] = value[v].argmax()
        worth += value[v, destination[v]]
        for k in range(arcs.pointer[v], arcs.pointer[v + 1]):
            p = arcs.index[k]
            if period[p] > latest:
                latest = period[p]
            if period[p] == now and mark[p] != stamp:
                if size == members.shape[0]:
                    return 0, 0.0, 0
                mark[p] = stamp
                members[size] = p
                size += 1
    return size, worth, latest


@njit(cache=True, nogil=True)
def _fit_together(members, size, pit, plan, t):
    """Whether a period has room for all members."""
    for r in range(plan.room.shape[0]):
        need = np.int64(0)
        for i in range(size):
            v = members[i]
            need += pit.use[v, plan.destination[v], r]
        if need > plan.room[r, t]:
            return False
    return True


@njit(cache=True, nogil=True)
def _place(members, size, pit, plan, t):
    """Puts all members into a period; -1 leaves them in the ground."""
    for i in range(size):
        v = members[i]
        d, now = plan.destination[v], plan.period[v]
        if now >= 0:
            _take(pit.use, v, d, plan.room, now, -1)
        if t >= 0:
            _take(pit.use, v, d, plan.room, t, 1)
        plan.period[v] = t


@njit(cache=True, nogil=True)
def _move_group(b, step, arcs, pit, plan, mark, stamp, members):
    """Moves b and all in its period that the given arcs reach by one period, if that gains."""
    now, periods = plan.period[b], pit.discount.shape[0]
    target = now + step
    size, worth, _ = _gather(
        b, arcs, pit.value, plan.period, plan.destination, mark, stamp, members
    )
    later = pit.discount[target] if target < periods else 0.0
    gain = worth * (later - pit.discount[now])
    if gain <= 0.0:
        return 0.0
    if target == periods:
        target = -1
    elif not _fit_together(members, size, pit, plan, target):
        return 0.0
    _place(members, size, pit, plan, target)
    return gain


@njit(cache=True, nogil=True)
def _insert_cone(b, pit, plan, mark, stamp, members):
    """Adds an unmined block with all it still needs in the first period with room, if that pays."""
    size, worth, first = _gather(
        b, pit.needs, pit.value, plan.period, plan.destination, mark, stamp, members
    )
    if worth <= 0.0:
        return 0.0
    for t in range(first, pit.discount.shape[0]):
        if _fit_together(members, size, pit, plan, t):
            _place(members, size, pit, plan, t)
            return worth * pit.discount[t]
    return 0.0
