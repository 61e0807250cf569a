"""Macro actions, compiled: a target block, or a whole bench, with all that it still needs."""

from __future__ import annotations

import numpy as np
from numba import njit

from mine_rl_npv.rules.steps import first_fit, remove


@njit(cache=True, nogil=True, inline="always")
def _cone(column, owner, pointer, index, depth, n, k, base, target, members, mark, stack):
    """Unmined blocks that the target needs, itself included, predecessors first; their number."""
    size = 0
    top = 1
    stack[0] = target
    mark[target - base] = 1
    while top > 0:
        b = stack[top - 1]
        state = mark[b - base]
        if state == 1:
            mark[b - base] = 2
            for i in range(pointer[b], pointer[b + 1]):
                p = index[i]
                mined = p - column[k, owner[p]] < depth[n, owner[p]]
                if not mined and mark[p - base] == 0:
                    mark[p - base] = 1
                    stack[top] = p
                    top += 1
        else:
            top -= 1
            if state == 2:
                mark[b - base] = 3
                members[size] = b
                size += 1
    return size


@njit(cache=True, nogil=True)
def step_macros(
    pits,
    arena,
    actions,
    macro_first,
    macro_pointer,
    macro_target,
    max_steps,
    invalid_reward,
    reward,
    stamp,
    terminated,
    truncated,
):
    """One macro per pit: its targets with all they still need, by the EARLIEST clock.

    macro_pointer, macro_target: targets (absolute ids) of each macro; a mine's macros begin at
    `macro_first` (K,). stamp (N, most) int32 becomes period + 1 of the blocks that were mined.
    Blocks without room, and what needs them, stay; a macro that moves nothing costs a step.
    """
    column, owner, value, use = arena.column, arena.owner, arena.value, arena.use
    after_pointer, after_index, first = arena.after_pointer, arena.after_index, arena.first
    pointer, index, discount, scale = arena.pointer, arena.index, arena.discount, arena.scale
    depth, waiting, ready, room = pits.depth, pits.waiting, pits.ready, pits.room
    opened, place, count = pits.open, pits.place, pits.count
    periods, most = room.shape[2], waiting.shape[1]
    members, stack = np.empty(most, np.int64), np.empty(most + 1, np.int64)
    mark = np.empty(most, np.uint8)
    for n in range(actions.shape[0]):
        k = pits.mine[n]
        base = first[k]
        macro = macro_first[k] + actions[n]
        pits.steps[n] += 1
        earned = 0.0
        touched = 0
        mark[:] = 0
        for i in range(macro_pointer[macro], macro_pointer[macro + 1]):
            target = macro_target[i]
            c = owner[target]
            if target - column[k, c] < depth[n, c] or mark[target - base] != 0:
                continue
            size = _cone(
                column, owner, pointer, index, depth, n, k, base, target, members, mark, stack
            )
            for j in range(size):
                b = members[j]
                if waiting[n, b - base] != 0 or column[k, owner[b]] + depth[n, owner[b]] != b:
                    continue
                t = first_fit(use, b, 0, room, n, np.int64(ready[n, b - base]))
                if t == periods:
                    continue
                for r in range(use.shape[2]):
                    room[n, r, t] -= use[b, 0, r]
                earned += value[b, 0] * discount[k, t]
                touched += 1
                stamp[n, b - base] = t + 1
                remove(
                    column,
                    owner,
                    after_pointer,
                    after_index,
                    depth,
                    waiting,
                    ready,
                    opened,
                    place,
                    count,
                    n,
                    k,
                    base,
                    b,
                    t,
                )
        pits.money[n] += earned
        reward[n] = earned / scale[k] if touched > 0 else invalid_reward
        terminated[n] = count[n] == 0
        truncated[n] = not terminated[n] and pits.steps[n] >= max_steps


@njit(cache=True, nogil=True)
def macro_masks(pits, arena, macro_first, macro_count, macro_pointer, macro_target, mask):
    """Mask (N, most macros) bool: macros of the pit's mine with at least one unmined target."""
    column, owner, depth = arena.column, arena.owner, pits.depth
    for n in range(mask.shape[0]):
        mask[n] = False
        k = pits.mine[n]
        for a in range(macro_count[k]):
            macro = macro_first[k] + a
            for i in range(macro_pointer[macro], macro_pointer[macro + 1]):
                c = owner[macro_target[i]]
                if macro_target[i] - column[k, c] >= depth[n, c]:
                    mask[n, a] = True
                    break
