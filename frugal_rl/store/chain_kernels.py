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

from frugal_rl.store.delta_kernels import lowest_bit

WHOLE = np.uint32(1 << 31)
"""Marks a start: the row is kept whole."""
BESIDE = np.uint32(1 << 30)
"""Marks a start: another row is kept beside this one."""
OFFSET = np.uint32(BESIDE - 1)
NO_LINK = np.uint32(0xFFFFFFFF)
"""A key row from which no walk leads back: the difference to the row before is not kept."""


ANCHOR_BLOCKS = 32
"""A new anchor at the latest after so many blocks, so that key rows stay close to theirs."""
ANCHOR_SHARE = 0.25
"""A new anchor where a key row differs from its anchor in more than this share."""


@njit(cache=True)
def same_units(a: Any, b: Any) -> bool:
    """Whether two rows of unsigned integers are equal."""
    zero = a.dtype.type(0)
    different = zero
    for i in range(a.shape[0]):
        different |= a[i] ^ b[i]
    return bool(different == zero)


LOWER = np.uint64(0x7FFF7FFF7FFF7FFF)
"""All bits of each unit of a word but its highest."""
SIDE_BY_SIDE = np.uint64(1 << 48 | 1 << 33 | 1 << 18 | 1 << 3)
"""A word of marks, multiplied by it, has them side by side from bit 48 on."""
SUM = np.uint64(1 << 48 | 1 << 32 | 1 << 16 | 1)
"""A word of counts, multiplied by it, has their sum from bit 48 on."""


@njit(cache=True)
def marks_of(word: Any) -> Any:
    """A word whose units are 1 where those of another are not 0, without a branch."""
    return ((((word & LOWER) + LOWER) | word) & ~LOWER) >> np.uint64(15)


@njit(cache=True)
def record_units(row: Any, reference: Any) -> Any:
    """How many units the record of row [W] against reference [W] takes."""
    size = np.int64(-(-row.shape[0] // 1024))
    for h in range(0, row.shape[0], 64):
        words, others = row[h : h + 64], reference[h : h + 64]
        if same_units(words, others):
            continue
        size += 1
        for first in range(0, words.shape[0], 4):
            counts = np.uint64(0)
            for w in range(first, min(first + 4, words.shape[0])):
                counts += marks_of(words[w] ^ others[w])
            size += np.int64(counts != 0) + np.int64((counts * SUM) >> np.uint64(48))
    return size


@njit(cache=True)
def put_row(row: Any, reference: Any, units: Any, used: int, base: int) -> Any:
    """Write row [W] from units[used] on, as a record or whole; returns its start and its end."""
    end = put_record(row, reference, units, used)
    if end >= 0:
        return np.uint32(used - base), end
    end = np.int64(used + 4 * row.shape[0])
    copy_row(row.view(np.uint16), units[used:end])
    return np.uint32(used - base) | WHOLE, end


@njit(cache=True)
def put_record(row: Any, reference: Any, units: Any, begin: Any) -> Any:
    """Write the record of row [W] against reference [W] in one pass, from units[begin] on.

    Returns its end; negative where it would be no smaller than the row.
    """
    at, end = np.int64(begin), np.int64(begin + 4 * row.shape[0])
    for first in range(0, row.shape[0], 1024):
        slot, top = at, 0
        at += 1
        for h in range(first, min(first + 1024, row.shape[0]), 64):
            words, others = row[h : h + 64], reference[h : h + 64]
            if same_units(words, others):
                continue
            at = put_middle(words, others, units, at, end)
            if at < 0:
                return at
            top |= 1 << ((h - first) >> 6)
        if at >= end:
            return np.int64(-1)
        units[slot] = top
    return at


@njit(cache=True)
def put_middle(words: Any, others: Any, units: Any, at: Any, end: Any) -> Any:
    """A middle bitmap, its groups and units from units[at] on; returns its end.

    Negative where it would reach `end`.
    """
    slot, middle = at, 0
    at += 1
    for first in range(0, words.shape[0], 4):
        last = min(first + 4, words.shape[0])
        bits, counts = np.uint64(0), np.uint64(0)
        for w in range(first, last):
            marks = marks_of(words[w] ^ others[w])
            counts += marks
            four = (marks * SIDE_BY_SIDE) >> np.uint64(48) & np.uint64(15)
            bits |= four << np.uint64(4 * (w - first))
        if bits == 0:
            continue
        if at + 1 + np.int64((counts * SUM) >> np.uint64(48)) >= end:
            return np.int64(-1)
        middle |= 1 << (first >> 2)
        units[at] = bits
        at += 1
        for w in range(first, last):  # each unit is written, and stays where it differs
            x = words[w] ^ others[w]
            for _ in range(4):
                units[at] = x & np.uint64(0xFFFF)
                at += np.int64(units[at] != 0)
                x >>= np.uint64(16)
    units[slot] = middle
    return at


@njit(cache=True)
def add_record(units: Any, begin: Any, tops: int, out: Any) -> None:
    """Exclusive-or the record at units[begin] into out [4 W] uint16.

    Indices are unsigned, so that none is looked at for being negative.
    """
    one, four = np.uint64(1), np.uint64(4)
    at, count = np.uint64(begin), np.uint64(tops)
    i = np.uint64(0)
    while i < count:
        top = np.uint64(units[at])
        at += one
        while top != 0:
            h = (i << four) + np.uint64(lowest_bit(top))
            top &= top - one
            middle = np.uint64(units[at])
            at += one
            while middle != 0:
                first = ((h << four) + np.uint64(lowest_bit(middle))) << four
                middle &= middle - one
                bits = np.uint64(units[at])
                at += one
                while bits != 0:
                    out[first + np.uint64(lowest_bit(bits))] ^= units[at]
                    bits &= bits - one
                    at += one
        i += one


@njit(cache=True)
def append_records(
    rows: Any,
    references: Any,
    which: Any,
    units: Any,
    base: int,
    used: int,
    starts: Any,
) -> int:
    """Records of rows [M, W] against references[which[m]] from units[used] on; returns their end.

    starts [M] uint32 is set, relative to `base`.
    """
    for m in range(rows.shape[0]):
        starts[m], used = put_row(rows[m], references[which[m]], units, used, base)
    return used


@njit(cache=True)
def begin_chains(
    words: Any,
    last: Any,
    anchors: Any,
    anchor: Any,
    age: Any,
    stale: Any,
    units: Any,
    base: int,
    is_first: bool,
    links: Any,
) -> Any:
    """What leads from key rows [N, W] back to the rows before; which of them need a new anchor.

    links [N] uint32 is set, relative to `base`, where records are written from; age [N] int32
    grows; stale [N] bool is set; anchor [N] int32 may be -1. Returns the records' end.
    """
    used, whole = np.int64(base), 4 * words.shape[1]
    for n in range(words.shape[0]):
        row, links[n] = words[n], NO_LINK
        end = np.int64(-1) if is_first else put_record(row, last[n], units, used)
        if end >= 0:
            links[n] = used - base
            used = end
        age[n] += 1
        stale[n] = anchor[n] < 0 or age[n] >= ANCHOR_BLOCKS
        if not stale[n]:
            stale[n] = record_units(row, anchors[anchor[n]]) > ANCHOR_SHARE * whole
    return used


@njit(cache=True)
def drop_users(slots: Any, users: Any, current: Any, freed: Any) -> int:
    """One user less of each anchor in slots [N]; those that nobody uses go to freed [N].

    Anchors in current [N] begin the chains that come. Returns how many are freed.
    """
    count = 0
    for slot in slots:
        users[slot] -= 1
        if users[slot] == 0 and not np.any(current == slot):
            freed[count] = slot
            count += 1
    return count


@njit(cache=True)
def add_start(units: Any, start: Any, base: Any, tops: int, out: Any) -> None:
    """Turn the row before in out [4 W] uint16 into the one whose record begins at `start`."""
    at = base + np.int64(start & OFFSET)
    if start & WHOLE:
        copy_row(units[at : at + out.shape[0]], out)
    else:
        add_record(units, at, tops, out)


@njit(cache=True)
def forward_from(starts: Any, key_every: int, step: int, n: int) -> int:
    """The newest step up to this one at which a walk may begin: a key row or a whole one."""
    rows = starts.shape[0]
    while step % key_every != 0 and starts[step % rows, n] & WHOLE == 0:
        step -= 1
    return step


@njit(cache=True)
def backward_from(starts: Any, links: Any, key_every: int, count: int, step: int, n: int) -> int:
    """The key row after this step from which a walk back to it is possible; -1 if there is none."""
    rows = starts.shape[0]
    key = (step // key_every + 1) * key_every
    if key >= count or links[key // key_every % links.shape[0], n] == NO_LINK:
        return -1
    for s in range(step + 1, key):
        if starts[s % rows, n] & WHOLE != 0:
            return -1
    return key


@njit(cache=True)
def read_chains(
    units: Any,
    starts: Any,
    bases: Any,
    links: Any,
    anchors: Any,
    anchor_of: Any,
    key_every: int,
    count: int,
    tops: int,
    first: Any,
    last: Any,
    n: Any,
    place: Any,
    aside: Any,
    state: Any,
    words: Any,
    shown: Any,
    out: Any,
) -> None:
    """Rows first[b] to last[b] of environment n[b] into out[b, place[b]:], one walk for all.

    The walk begins at the key row before, or goes back from the one after, whichever is nearer.

    starts [S, N] uint32, bases [blocks], links, anchor_of [blocks, N]; S = blocks x key_every
    anchors                [A, W] uint64
    first, last, n, place  [B] int64   absolute steps that are held
    aside                  [B] int64   a row beside last[b]: its start, written behind; or -1
    state                  [4 W] uint16 scratch; words the same as [W] uint64, shown as rows of out
    out                    [B, k, row] uint64 or uint8; other places are left as they are
    """
    rows, blocks = starts.shape[0], bases.shape[0]
    for b in range(first.shape[0]):
        begin, end, env, shift = first[b], last[b], n[b], place[b] - first[b]
        s: Any = forward_from(starts, key_every, begin, env)
        key: Any = np.int64(-1)
        if aside[b] < 0:
            key = backward_from(starts, links, key_every, count, begin, env)
        if key >= 0 and key - begin < begin - s:
            s = key
            load_key(
                units, starts, bases, anchors, anchor_of, key_every, tops, s, env, state, words
            )
            while s > begin:
                if s <= end:
                    copy_row(shown, out[b, s + shift])
                link = links[s // key_every % blocks, env]
                start = link if s == key else starts[s % rows, env]
                add_start(units, start, bases[s // key_every % blocks], tops, state)
                s -= 1
            copy_row(shown, out[b, s + shift])
            s = key + 1
        else:
            key = -2
        while s <= end:
            if s == key + 1:
                load_key(
                    units,
                    starts,
                    bases,
                    anchors,
                    anchor_of,
                    key_every,
                    tops,
                    key,
                    env,
                    state,
                    words,
                )
            if s % key_every == 0:
                load_key(
                    units, starts, bases, anchors, anchor_of, key_every, tops, s, env, state, words
                )
            else:
                base = bases[s // key_every % blocks]
                add_start(units, starts[s % rows, env], base, tops, state)
            if s >= begin:
                copy_row(shown, out[b, s + shift])
            s += 1
        if aside[b] >= 0:
            base = bases[end // key_every % blocks]
            add_start(units, np.uint32(aside[b]), base, tops, state)
            copy_row(shown, out[b, s + shift])


@njit(cache=True)
def load_key(
    units: Any,
    starts: Any,
    bases: Any,
    anchors: Any,
    anchor_of: Any,
    key_every: int,
    tops: int,
    step: Any,
    n: Any,
    state: Any,
    words: Any,
) -> None:
    """The key row of this step into state [4 W] uint16, which is words [W] uint64."""
    block = step // key_every % bases.shape[0]
    copy_row(anchors[anchor_of[block, n]], words)
    add_start(units, starts[step % starts.shape[0], n], bases[block], tops, state)


@njit(cache=True)
def copy_row(row: Any, out: Any) -> None:
    """Element by element: a compiler makes wide moves of it, and none of a slice assignment."""
    for i in range(out.shape[0]):
        out[i] = row[i]
