"""Compiled loops of `DeviceMirror`: what a block's rows become, and which of them a draw needs.

An entry is a unit of two bytes that a row has other than the row before: unit << 16 | value. The
entries of a row at which a walk may begin follow the number of the whole row they are put on.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from frugal_rl.store.chain_kernels import OFFSET, WHOLE, copy_row
from frugal_rl.store.delta_kernels import lowest_bit

BEGINS = np.uint32(1 << 31)
"""Marks where a row's entries begin: the first one is the number of a whole row."""
PLACE = np.uint32(BEGINS - 1)


@njit(cache=True)
def put_block(
    units: Any,
    base: int,
    starts: Any,
    sides: Any,
    side_starts: Any,
    anchors: Any,
    anchor_slots: Any,
    own_slots: Any,
    tops: int,
    state: Any,
    spans: Any,
    side_spans: Any,
    whole: Any,
    out: Any,
) -> int:
    """All rows of a block as entries, each with the row beside it; returns how many there are.

    units, base         its records, and where they begin
    starts              [K, N] uint32 where each row's does, as a `FrameChain` keeps it
    sides, side_starts  [S] int64 rows with one beside them (row * N + environment), its start
    anchors             [N, W] uint64 the whole rows that the key rows are kept against
    anchor_slots        [N] their numbers on the device
    own_slots           [M] numbers for the rows that are kept whole, in their order
    state               [N, 4 W] uint16 scratch
    spans, side_spans   [K * N, 2], [S, 2] uint32 are set: where entries begin and end
    whole               [M, 4 W] uint16 is set: the rows that are kept whole
    out                 entries, int32 or int64
    """
    end, owned, side = 0, 0, 0
    for row in range(starts.shape[0]):
        for n in range(starts.shape[1]):
            place = row * starts.shape[1] + n
            start = np.uint32(starts[row, n])
            if row == 0 and start & WHOLE == 0:
                copy_row(anchors[n].view(np.uint16), state[n])
                out[end] = anchor_slots[n]
                end, owned = put_row_entries(
                    units, base, start, tops, state[n], own_slots, owned,
                    spans[place], whole, out, end + 1,
                )  # fmt: skip
                spans[place, 0] = (spans[place, 0] - 1) | BEGINS
            else:
                end, owned = put_row_entries(
                    units, base, start, tops, state[n], own_slots, owned,
                    spans[place], whole, out, end,
                )  # fmt: skip
            if side < sides.shape[0] and sides[side] == place:
                start = np.uint32(side_starts[side])
                end, owned = put_row_entries(
                    units, base, start, tops, state[n].copy(), own_slots, owned,
                    side_spans[side], whole, out, end,
                )  # fmt: skip
                side += 1
    return end


@njit(cache=True)
def put_row_entries(
    units: Any,
    base: int,
    start: Any,
    tops: int,
    state: Any,
    own_slots: Any,
    owned: int,
    span: Any,
    whole: Any,
    out: Any,
    end: int,
) -> Any:
    """The row whose record begins at `start` into state [4 W], which is the row before.

    Returns the end of the entries and how many whole rows are taken.
    """
    at: Any = base + np.int64(start & OFFSET)
    span[0] = end
    if start & WHOLE:
        copy_row(units[at : at + state.shape[0]], state)
        copy_row(state, whole[owned])
        span[0] = np.uint32(end) | BEGINS
        out[end] = own_slots[owned]
        owned, end = owned + 1, end + 1
    else:
        end = put_entries(units, at, tops, state, out, end)
    span[1] = end
    return end, owned


@njit(cache=True)
def put_entries(units: Any, at: int, tops: int, state: Any, out: Any, end: int) -> int:
    """Exclusive-or the record at units[at] into state [4 W], entries from out[end] on.

    A record's form is told in `chain_kernels`. Returns the entries' end.
    """
    for i in range(tops):
        top = np.uint64(units[at])
        at += 1
        while top != 0:
            h = 16 * i + lowest_bit(top)
            top &= top - np.uint64(1)
            middle = np.uint64(units[at])
            at += 1
            while middle != 0:
                first = (16 * h + lowest_bit(middle)) * 16
                middle &= middle - np.uint64(1)
                bits = np.uint64(units[at])
                at += 1
                while bits != 0:
                    unit = first + lowest_bit(bits)
                    bits &= bits - np.uint64(1)
                    state[unit] ^= units[at]
                    out[end] = np.int64(unit) << 16 | np.int64(state[unit])
                    at, end = at + 1, end + 1
    return end


@njit(cache=True)
def plan_walks(
    spans: Any,
    bases: Any,
    key_every: int,
    first: Any,
    last: Any,
    n: Any,
    place: Any,
    side_spans: Any,
    frames: int,
    runs: Any,
    begun: Any,
) -> Any:
    """What of the device's entries makes the rows first[b] to last[b] of environment n[b].

    spans           [blocks, K * N, 2] uint32, bases [blocks] int64   where each row's entries lie
    first, last, n  [B] int64   steps that lie on the device
    place           [B] int64   in which of `frames` cells of b row first[b] goes
    side_spans      [B, 2] int64   of the row beside last[b], which goes into the cell behind; or -1
    runs            [4, R] int64 is set: cell, order, begin and count of entries
    begun           [3, G] int64 is set: cell, order, and the entry that names a whole row

    Later entries of the same cell or an earlier one hide those before; orders count from 1.
    Returns how many runs and whole rows there are.
    """
    blocks, envs = spans.shape[0], spans.shape[1] // key_every
    count, wholes = 0, 0
    for b in range(first.shape[0]):
        s = first[b]
        while spans[s // key_every % blocks, s % key_every * envs + n[b], 0] & BEGINS == 0:
            s -= 1
        order = 1
        while s <= last[b]:
            block = s // key_every % blocks
            span = spans[block, s % key_every * envs + n[b]]
            cell = b * frames + place[b] + max(s - first[b], 0)
            begin: Any = np.int64(span[0])
            end: Any = np.int64(span[1])
            count, wholes = plan_row(
                bases[block], begin, end, cell, order, runs, count, begun, wholes
            )
            s, order = s + 1, order + 2
        if side_spans[b, 0] >= 0:
            base = bases[last[b] // key_every % blocks]
            cell = b * frames + place[b] + last[b] - first[b] + 1
            begin, end = side_spans[b, 0], side_spans[b, 1]
            count, wholes = plan_row(base, begin, end, cell, order, runs, count, begun, wholes)
    return count, wholes


@njit(cache=True)
def plan_row(
    base: int,
    begin: int,
    end: int,
    cell: int,
    order: int,
    runs: Any,
    count: int,
    begun: Any,
    wholes: int,
) -> Any:
    """One row's whole row and entries; returns how many of both there are so far."""
    at = base + (begin & np.int64(PLACE))
    if begin & np.int64(BEGINS):
        begun[0, wholes], begun[1, wholes], begun[2, wholes] = cell, order, at
        wholes, at = wholes + 1, at + 1
    if at < base + end:
        runs[0, count], runs[1, count], runs[2, count] = cell, order + 1, at
        runs[3, count] = base + end - at
        count += 1
    return count, wholes
