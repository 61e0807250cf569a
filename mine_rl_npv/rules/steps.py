"""The rules of digging, compiled: N mines in progress advance together, one action each.

A column offers its topmost unmined block once all its predecessors are gone. Three clocks decide
the period of a block:

- `EARLIEST`: the first period, not before its predecessors', with room left;
- `PERIOD`: the current period; the last action of the list closes it;
- `TONNAGE`: tonnage already mined divided by the daily rate (resource 0 of period 0).

Capacities are integer kilograms, so that a mask derived elsewhere cannot flip.

Kernels take the arrays out of their named tuples before the loop: a tuple that is handed to an
inner function costs a reference count per array and step (560 instead of 50 ns, measured).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from mine_rl_npv.rules.layout import MineArrays


EARLIEST, PERIOD, TONNAGE = 0, 1, 2
NOWHERE = 65535
"""Stored day of an attempt that found no room: the column is closed for good."""


class Pits(NamedTuple):
    """N pits in progress. Changed in place by the kernels below.

    mine       (N,)       int32    which mine of the arena
    depth      (N, C)     uint8    blocks mined in a column
    waiting    (N, most)  int16    predecessors a block still waits for
    ready      (N, most)  uint16   earliest period its predecessors allow
    room       (N, R, T)  int64    kilograms left
    open       (N, C)     int32    columns that offer a block, unordered; `count` of them
    place      (N, C)     int32    where a column stands in `open`, -1 when it offers none
    count      (N,)       int32
    clock      (N,)       int32    current period of the PERIOD clock
    mined_kg   (N,)       int64    for the TONNAGE clock
    steps      (N,)       int32    actions taken in this episode
    money      (N,)       float64  discounted value so far
    seed       (N,)       uint64   random state of each pit
    """

    mine: np.ndarray
    depth: np.ndarray
    waiting: np.ndarray
    ready: np.ndarray
    room: np.ndarray
    open: np.ndarray
    place: np.ndarray
    count: np.ndarray
    clock: np.ndarray
    mined_kg: np.ndarray
    steps: np.ndarray
    money: np.ndarray
    seed: np.ndarray

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(int(part.nbytes) for part in self)


def allocate_pits(arena: MineArrays, n: int) -> Pits:
    """Room for N pits on any mine of the arena."""
    columns, most = arena.column.shape[1] - 1, int(arena.blocks.max())
    return Pits(
        np.zeros(n, np.int32),
        np.zeros((n, columns), np.uint8),
        np.zeros((n, most), np.int16),
        np.zeros((n, most), np.uint16),
        np.zeros((n, *arena.room.shape[1:]), np.int64),
        np.zeros((n, columns), np.int32),
        np.full((n, columns), -1, np.int32),
        np.zeros(n, np.int32),
        np.zeros(n, np.int32),
        np.zeros(n, np.int64),
        np.zeros(n, np.int32),
        np.zeros(n),
        np.zeros(n, np.uint64),
    )


@njit(cache=True, nogil=True, inline="always")
def _random(seed, n):
    """Next value of a pit's xorshift64* generator (Marsaglia 2003, Vigna 2016)."""
    x = seed[n]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    seed[n] = x
    return (x * np.uint64(2685821657736338717)) >> np.uint64(33)


@njit(cache=True, nogil=True)
def begin(pits, arena, which, mines):
    """Starts new episodes in the pits of `which` (J,), each on a mine drawn from `mines` (Q,)."""
    column, pointer, first = arena.column, arena.pointer, arena.first
    depth, waiting, ready = pits.depth, pits.waiting, pits.ready
    opened, place, count = pits.open, pits.place, pits.count
    for j in range(which.shape[0]):
        n = which[j]
        k = mines[_random(pits.seed, n) % np.uint64(mines.shape[0])]
        base = first[k]
        for b in range(arena.blocks[k]):
            waiting[n, b] = pointer[base + b + 1] - pointer[base + b]
            ready[n, b] = 0
        pits.room[n] = arena.room[k]
        pits.mine[n] = k
        pits.clock[n] = 0
        pits.mined_kg[n] = 0
        pits.steps[n] = 0
        pits.money[n] = 0.0
        count[n] = 0
        for c in range(column.shape[1] - 1):
            depth[n, c] = 0
            place[n, c] = -1
            top = column[k, c]
            if top < column[k, c + 1] and waiting[n, top - base] == 0:
                _offer(opened, place, count, n, c)


@njit(cache=True, nogil=True, inline="always")
def _offer(opened, place, count, n, c):
    place[n, c] = count[n]
    opened[n, count[n]] = c
    count[n] += 1


@njit(cache=True, nogil=True, inline="always")
def _withdraw(opened, place, count, n, c):
    at = place[n, c]
    last = count[n] - 1
    moved = opened[n, last]
    opened[n, at] = moved
    place[n, moved] = at
    place[n, c] = -1
    count[n] = last


@njit(cache=True, nogil=True, inline="always")
def _fits(use, b, d, room, n, t):
    ok = True
    for r in range(use.shape[2]):
        ok = ok and use[b, d, r] <= room[n, r, t]
    return ok


@njit(cache=True, nogil=True, inline="always")
def first_fit(use, b, d, room, n, t):
    """The first period from t on with room for the block; T when there is none."""
    periods = room.shape[2]
    while t < periods and not _fits(use, b, d, room, n, t):
        t += 1
    return t


@njit(cache=True, nogil=True, inline="always")
def remove(
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
):
    """Takes block b out of the ground in period t and tells its successors and its column."""
    c = owner[b]
    depth[n, c] += 1
    if place[n, c] >= 0:
        _withdraw(opened, place, count, n, c)
    below = b + 1
    if below < column[k, c + 1] and waiting[n, below - base] == 0:
        _offer(opened, place, count, n, c)
    for i in range(after_pointer[b], after_pointer[b + 1]):
        s = after_index[i]
        rel = s - base
        if t > ready[n, rel]:
            ready[n, rel] = t
        left = waiting[n, rel] - 1
        waiting[n, rel] = left
        if left == 0:
            other = owner[s]
            if column[k, other] + depth[n, other] == s and place[n, other] < 0:
                _offer(opened, place, count, n, other)


@njit(cache=True, nogil=True, inline="always")
def _period(clock, mined_kg, rates, ready, clocks, use, room, n, k, b, rel, d, periods):
    """The period in which block b goes to destination d; T when it finds no room."""
    if clock == TONNAGE:
        return mined_kg[n] // rates[k, 0, 0]
    if clock == EARLIEST:
        return first_fit(use, b, d, room, n, np.int64(ready[n, rel]))
    t = np.int64(clocks[n])
    return t if _fits(use, b, d, room, n, t) else np.int64(periods)


@njit(cache=True, nogil=True)
def _take(clock, use, b, d, room, mined_kg, n, t):
    """Counts what block b uses: against its period's limits, or as tonnage mined so far."""
    if clock == TONNAGE:
        mined_kg[n] += use[b, d, 0]
        return
    for r in range(use.shape[2]):
        room[n, r, t] -= use[b, d, r]


@njit(cache=True, nogil=True)
def step_columns(
    pits,
    arena,
    actions,
    clock,
    daily_discount,
    max_steps,
    invalid_reward,
    reward,
    entry,
    day,
    terminated,
    truncated,
):
    """One column action per pit: column * D + destination; with the PERIOD clock, C * D closes.

    Written: reward (N,) float32; entry (N,) int32 block number within its mine plus one, 0 when
    nothing was touched; day (N,) uint16 its period, `NOWHERE` when it found no room;
    terminated, truncated (N,) bool. An action on a column that offers nothing costs a step.
    """
    column, owner, value, use = arena.column, arena.owner, arena.value, arena.use
    after_pointer, after_index, first = arena.after_pointer, arena.after_index, arena.first
    discount, scale, rates = arena.discount, arena.scale, arena.room
    depth, waiting, ready, room = pits.depth, pits.waiting, pits.ready, pits.room
    opened, place, count, steps = pits.open, pits.place, pits.count, pits.steps
    mines, clocks, mined_kg, money = pits.mine, pits.clock, pits.mined_kg, pits.money
    destinations, columns, periods = value.shape[1], column.shape[1] - 1, room.shape[2]
    for n in range(actions.shape[0]):
        k = mines[n]
        c = actions[n] // destinations
        d = actions[n] - c * destinations
        reward[n] = invalid_reward
        entry[n] = 0
        day[n] = 0
        steps[n] += 1
        ended = False
        if c >= columns:
            clocks[n] += 1
            reward[n] = 0.0
            ended = clocks[n] >= periods
        elif place[n, c] >= 0:
            base = first[k]
            b = column[k, c] + depth[n, c]
            t = _period(
                clock, mined_kg, rates, ready, clocks, use, room, n, k, b, b - base, d, periods
            )
            if clock != TONNAGE and t == periods:
                if clock == EARLIEST:
                    reward[n] = 0.0
                    entry[n] = b - base + 1
                    day[n] = NOWHERE
                    _withdraw(opened, place, count, n, c)
            else:
                _take(clock, use, b, d, room, mined_kg, n, t)
                factor = daily_discount**t if clock == TONNAGE else discount[k, t]
                worth = value[b, d] * factor
                money[n] += worth
                reward[n] = worth / scale[k]
                entry[n] = b - base + 1
                day[n] = t
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
        terminated[n] = ended or count[n] == 0
        truncated[n] = not terminated[n] and steps[n] >= max_steps


@njit(cache=True, nogil=True)
def column_masks(pits, arena, clock, mask):
    """Mask (N, actions) bool: columns that offer a block, times destinations (and closing)."""
    column, use, room, depth = arena.column, arena.use, pits.room, pits.depth
    opened, count, mines, clocks = pits.open, pits.count, pits.mine, pits.clock
    destinations = arena.value.shape[1]
    columns = column.shape[1] - 1
    for n in range(mask.shape[0]):
        mask[n] = False
        k = mines[n]
        for i in range(count[n]):
            c = opened[n, i]
            b = column[k, c] + depth[n, c]
            for d in range(destinations):
                fits = clock != PERIOD or _fits(use, b, d, room, n, clocks[n])
                mask[n, c * destinations + d] = fits
        if clock == PERIOD:
            mask[n, columns * destinations] = True


@njit(cache=True, nogil=True)
def sample_columns(pits, destinations, actions):
    """Uniformly random open column and destination per pit, from each pit's own generator."""
    seed, opened, count = pits.seed, pits.open, pits.count
    for n in range(actions.shape[0]):
        pick = _random(seed, n) % np.uint64(count[n])
        d = _random(seed, n) % np.uint64(destinations) if destinations > 1 else np.uint64(0)
        actions[n] = opened[n, pick] * destinations + d
