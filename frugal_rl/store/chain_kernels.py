"""Compiled loops of `FrameChain`: differences in units of two bytes behind three levels of bitmaps.

A record says depth first which units differ and by what:

    top    16 bits each, always there    bit h of word i: middle 16 i + h follows
    middle 16 bits                       bit g: group 16 h + g follows
    group  16 bits                       bit j: unit 16 g + j differs
    units  16 bits each                  the differences of the group

A row that would be no smaller that way is kept whole, marked by `WHOLE` in its start.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from frugal_rl.store.delta import lowest_bit

WHOLE = np.uint32(1 << 31)
"""Marks a start: the row is kept whole."""
BESIDE = np.uint32(1 << 30)
"""Marks a start: another row is kept beside this one."""
OFFSET = np.uint32(BESIDE - 1)


@njit(cache=True)
def mark_groups(row: Any, reference: Any, groups: Any, middles: Any, tops: Any) -> Any:
    """Bitmaps of the units in which row [W] differs from reference [W]; returns the record's units.

    groups [G], middles [H], tops [L] uint16 are overwritten; a group is four words of the row.
    """
    middles[:] = 0
    tops[:] = 0
    size = tops.shape[0]
    for g in range(groups.shape[0]):
        bits = np.uint64(0)
        for w in range(4 * g, min(4 * g + 4, row.shape[0])):
            x = row[w] ^ reference[w]
            if x != 0:
                for q in range(4):
                    if (x >> np.uint64(16 * q)) & np.uint64(0xFFFF) != 0:
                        bits |= np.uint64(1) << np.uint64(4 * (w - 4 * g) + q)
                        size += 1
        groups[g] = bits
        if bits != 0:
            size += 1 + (middles[g >> 4] == 0)
            middles[g >> 4] |= np.uint16(1 << (g & 15))
            tops[g >> 8] |= np.uint16(1 << ((g >> 4) & 15))
    return size


@njit(cache=True)
def put_record(
    row: Any, reference: Any, groups: Any, middles: Any, tops: Any, units: Any, at: int
) -> int:
    """Write the record of the bitmaps that `mark_groups` left from units[at] on; returns its end.

    row, reference [4 W] uint16.
    """
    one = np.uint64(1)
    for i in range(tops.shape[0]):
        units[at] = tops[i]
        at += 1
        top = np.uint64(tops[i])
        while top != 0:
            h = 16 * i + lowest_bit(top)
            top &= top - one
            units[at] = middles[h]
            at += 1
            middle = np.uint64(middles[h])
            while middle != 0:
                g = 16 * h + lowest_bit(middle)
                middle &= middle - one
                units[at] = groups[g]
                at += 1
                bits = np.uint64(groups[g])
                while bits != 0:
                    u = 16 * g + lowest_bit(bits)
                    bits &= bits - one
                    units[at] = row[u] ^ reference[u]
                    at += 1
    return at


@njit(cache=True)
def add_record(units: Any, at: Any, tops: int, out: Any) -> None:
    """Exclusive-or the record at units[at] into out [4 W] uint16."""
    one = np.uint64(1)
    for i in range(tops):
        top = np.uint64(units[at])
        at += 1
        while top != 0:
            h = 16 * i + lowest_bit(top)
            top &= top - one
            middle = np.uint64(units[at])
            at += 1
            while middle != 0:
                first = 16 * (16 * h + lowest_bit(middle))
                middle &= middle - one
                bits = np.uint64(units[at])
                at += 1
                while bits != 0:
                    out[first + lowest_bit(bits)] ^= units[at]
                    bits &= bits - one
                    at += 1


@njit(cache=True)
def append_records(
    rows: Any, references: Any, which: Any, rows16: Any, references16: Any,
    groups: Any, middles: Any, tops: Any, units: Any, base: int, used: int, starts: Any,
) -> int:  # fmt: skip
    """Records of rows [M, W] against references[which[m]] from units[used] on; returns their end.

    starts [M] uint32 is set, relative to `base`; rows16 and references16 are the same memory as
    units of two bytes.
    """
    for m in range(rows.shape[0]):
        r = which[m]
        size = mark_groups(rows[m], references[r], groups, middles, tops)
        starts[m] = used - base
        if size < rows16.shape[1]:
            used = put_record(rows16[m], references16[r], groups, middles, tops, units, used)
        else:
            starts[m] |= WHOLE
            units[used : used + rows16.shape[1]] = rows16[m]
            used += rows16.shape[1]
    return used


@njit(cache=True)
def record_sizes(
    rows: Any, references: Any, which: Any, groups: Any, middles: Any, tops: Any, sizes: Any
) -> None:
    """Units that each of rows [M, W] would take against references[which[m]]; -1 means none."""
    for m in range(rows.shape[0]):
        if which[m] >= 0:
            sizes[m] = mark_groups(rows[m], references[which[m]], groups, middles, tops)


@njit(cache=True)
def add_start(units: Any, start: Any, base: Any, tops: int, out: Any) -> None:
    """Turn the row before in out [4 W] uint16 into the one whose record begins at `start`."""
    at = base + np.int64(start & OFFSET)
    if start & WHOLE:
        out[:] = units[at : at + out.shape[0]]
    else:
        add_record(units, at, tops, out)


@njit(cache=True)
def read_chains(
    units: Any, starts: Any, bases: Any, anchors16: Any, anchor_of: Any, key_every: int, tops: int,
    first: Any, last: Any, n: Any, place: Any, aside: Any, state: Any, state8: Any, out: Any,
) -> None:  # fmt: skip
    """Rows first[b] to last[b] of environment n[b] into out[b, place[b]:], one walk for all.

    starts [S, N] uint32, bases [blocks], anchor_of [blocks, N]; S = blocks x key_every
    anchors16              [A, 4 W] uint16
    first, last, n, place  [B] int64   absolute steps that are held
    aside                  [B] int64   a row beside last[b]: its start, written behind; or -1
    state                  [4 W] uint16 scratch, state8 the same as bytes
    out                    [B, k, row_bytes] uint8; other places are left as they are
    """
    rows, row_bytes = starts.shape[0], out.shape[2]
    for b in range(first.shape[0]):
        s = first[b]
        while s % key_every != 0 and starts[s % rows, n[b]] & WHOLE == 0:
            s -= 1
        j = place[b]
        while s <= last[b]:
            block = s // key_every % bases.shape[0]
            if s % key_every == 0:
                state[:] = anchors16[anchor_of[block, n[b]]]
            add_start(units, starts[s % rows, n[b]], bases[block], tops, state)
            if s >= first[b]:
                out[b, j] = state8[:row_bytes]
                j += 1
            s += 1
        if aside[b] >= 0:
            block = last[b] // key_every % bases.shape[0]
            add_start(units, np.uint32(aside[b]), bases[block], tops, state)
            out[b, j] = state8[:row_bytes]
