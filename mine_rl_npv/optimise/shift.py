"""Shift search: moves blocks, and groups that must move together, to better periods.

Single moves are those of `decode.best_moves`. A group is a block with what it needs (to go one
period earlier) or with what needs it (one period later, or out of the plan) in the same period.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from mine_rl_npv.optimise.decode import Schedule, best_moves

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
    graph, back = problem.graph, problem.graph.successors
    return _search(
        graph.order,
        graph.pointer,
        graph.index,
        back.pointer,
        back.index,
        problem.value,
        problem.use,
        problem.discount,
        plan.period,
        plan.destination,
        plan.room,
        rounds,
        group,
    )


@njit(cache=True, nogil=True)
def _search(
    order,
    pointer,
    index,
    succ_pointer,
    succ_index,
    value,
    use,
    discount,
    period,
    destination,
    room,
    rounds,
    group,
):
    total = 0.0
    back = order[::-1].copy()
    m = order.shape[0]
    mark = np.zeros(m, np.int64)
    members = np.empty(m if group > 0 else 1, np.int32)
    stamp = 0
    scale = 0.0
    for b in range(m):
        scale += abs(value[b, destination[b]])
    for _ in range(rounds):
        gain = 0.0
        for sweep in (back, order):
            gain += best_moves(
                sweep,
                pointer,
                index,
                succ_pointer,
                succ_index,
                value,
                use,
                discount,
                period,
                destination,
                room,
            )
        if group > 0:
            change, stamp = _group_sweep(
                order,
                pointer,
                index,
                succ_pointer,
                succ_index,
                value,
                use,
                discount,
                period,
                destination,
                room,
                mark,
                stamp,
                members,
                group,
            )
            gain += change
        total += gain
        if gain <= 1e-10 * scale:
            break
    return total


@njit(cache=True, nogil=True)
def _group_sweep(
    order,
    pointer,
    index,
    succ_pointer,
    succ_index,
    value,
    use,
    discount,
    period,
    destination,
    room,
    mark,
    stamp,
    members,
    group,
):
    """Groups later, from the last block to the first; then earlier, and cones into the plan."""
    gain = 0.0
    for i in range(order.shape[0] - 1, -1, -1):
        stamp += 1
        gain += _move_group(
            order[i],
            1,
            succ_pointer,
            succ_index,
            value,
            use,
            discount,
            period,
            destination,
            room,
            mark,
            stamp,
            members,
            group,
        )
    for b in order:
        stamp += 1
        gain += _move_group(
            b,
            -1,
            pointer,
            index,
            value,
            use,
            discount,
            period,
            destination,
            room,
            mark,
            stamp,
            members,
            group,
        )
        stamp += 1
        gain += _insert_cone(
            b,
            pointer,
            index,
            value,
            use,
            discount,
            period,
            destination,
            room,
            mark,
            stamp,
            members,
            group,
        )
    return gain, stamp


@njit(cache=True, nogil=True)
def _move_group(
    b,
    step,
    pointer,
    index,
    value,
    use,
    discount,
    period,
    destination,
    room,
    mark,
    stamp,
    members,
    limit,
):
    """Moves b and all in its period that the given arcs reach by one period, if that gains."""
    now = period[b]
    if now < 0:
        return 0.0
    target = now + step
    if target < 0 or (step < 0 and value[b, destination[b]] <= 0):
        return 0.0
    if step > 0 and value[b, destination[b]] >= 0:
        return 0.0
    size = 1
    members[0] = b
    mark[b] = stamp
    done = 0
    worth = 0.0
    while done < size:
        v = members[done]
        done += 1
        worth += value[v, destination[v]]
        for k in range(pointer[v], pointer[v + 1]):
            p = index[k]
            if period[p] == now and mark[p] != stamp:
                if size == limit:
                    return 0.0
                mark[p] = stamp
                members[size] = p
                size += 1
    later = discount[target] if target < discount.shape[0] else 0.0
    gain = worth * (later - discount[now])
    if gain <= 0.0:
        return 0.0
    if target < discount.shape[0]:
        for r in range(room.shape[0]):
            need = np.int64(0)
            for i in range(size):
                need += use[members[i], destination[members[i]], r]
            if need > room[r, target]:
                return 0.0
    for i in range(size):
        v = members[i]
        d = destination[v]
        for r in range(room.shape[0]):
            room[r, now] += use[v, d, r]
            if target < discount.shape[0]:
                room[r, target] -= use[v, d, r]
        period[v] = target if target < discount.shape[0] else -1
    return gain


@njit(cache=True, nogil=True)
def _insert_cone(
    b,
    pointer,
    index,
    value,
    use,
    discount,
    period,
    destination,
    room,
    mark,
    stamp,
    members,
    limit,
):
    """Adds an unmined block with all it still needs in the first period with room, if that pays."""
    if period[b] >= 0 or value[b].max() <= 0.0:
        return 0.0
    size = 1
    members[0] = b
    mark[b] = stamp
    done = 0
    first = 0
    worth = 0.0
    while done < size:
        v = members[done]
        done += 1
        destination[v] = value[v].argmax()
        worth += value[v, destination[v]]
        for k in range(pointer[v], pointer[v + 1]):
            p = index[k]
            if period[p] > first:
                first = period[p]
            if period[p] < 0 and mark[p] != stamp:
                if size == limit:
                    return 0.0
                mark[p] = stamp
                members[size] = p
                size += 1
    if worth <= 0.0:
        return 0.0
    for t in range(first, discount.shape[0]):
        fits = True
        for r in range(room.shape[0]):
            need = np.int64(0)
            for i in range(size):
                need += use[members[i], destination[members[i]], r]
            fits = fits and need <= room[r, t]
        if fits:
            for i in range(size):
                v = members[i]
                period[v] = t
                for r in range(room.shape[0]):
                    room[r, t] -= use[v, destination[v], r]
            return worth * discount[t]
    return 0.0
