"""Compiled loops of `Worded`: records of units of two bytes, rows of W words of eight.

    header     2 units, the low one first: `WHOLE`, `AS_IT_IS`, or how many units before this record
               the one begins that it differs from
    WHOLE      W names follow
    AS_IT_IS   the row follows, 4 W units
    otherwise  three levels of bitmaps, depth first, as in `store.chain_kernels`, with a bit for
               each word that differs; after each group its names

A name is a place in the table of words. `NO_WORD` says that the word itself follows, in 4 units.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from frugal_rl.store.delta_kernels import lowest_bit
from frugal_rl.store.found.row_kernels import copy_words, split_scratch, turn_three

MOST_WORDS = 65535
NO_WORD = np.uint16(MOST_WORDS)
HEADER, WHOLE, AS_IT_IS, FARTHEST = 2, 0, 1, (1 << 32) - 1
LINKS = 24
"""The most records that reading one row follows."""
NEAR = 4
"""A row of which more than one in so many words differs is also compared with the whole row."""
REWARD = 2
"""How many more words may be named for one that was found again: 8 bytes saved, 4 spent on each."""
NO_ROOM = -1


@njit(cache=True)
def append_rows(
    rows: Any,
    env: Any,
    first: int,
    units: Any,
    table: Any,
    slots: Any,
    newest: Any,
    states: Any,
    most_credit: int,
    scratch: Any,
    handles: Any,
) -> Any:
    """Rows [first:, W] as records; returns how many of the rows found room in units and table.

    newest and states [N + 1, ...] are `Worded`'s `last` and `state`, and behind them room for a
    row, and `counts`. handles is set; scratch uint16 has room for bitmaps and names. They are few
    arrays because each costs more to hand over than a small row costs to keep.
    """
    width = rows.shape[1]
    n_envs = newest.shape[0] - 1
    last, root_row, state, counts = newest, newest[n_envs], states, states[n_envs]
    groups, middles, tops, names = split_scratch(scratch, width)
    for b in range(first, rows.shape[0]):
        n, row, used = env[b], rows[b], counts[0]
        base, changed = state[n, 0], width
        if base >= 0:
            changed = mark_words(row, last[n], groups, middles, tops)
            if changed == 0:
                handles[b] = base
                continue
        owner = n if base >= 0 else 0  # a first row is compared with the first of all
        root, links, since, spent, size = state[owner, 1:]
        late = links >= LINKS or since > 2 * width
        if root >= 0 and (base < 0 or late or NEAR * changed > width):
            read_whole(units, root, table, root_row)
            other = mark_words(row, root_row, groups, middles, tops)
            if base < 0 or late or other < changed:
                base, changed = root, other
            else:
                mark_words(row, last[n], groups, middles, tops)
        if 2 * changed > width or used - base > FARTHEST or (base == root and spent > size):
            base = -1
        known, credit = counts[1], counts[2]
        end = put_row(row, base, units, used, table, slots, counts, groups, middles, tops, names)
        if end == NO_ROOM:  # the words entered so far are found when the row is tried again
            counts[2] = credit - (1 + REWARD) * (counts[1] - known)
            return b
        counts[0] = end
        counts[2] = min(counts[2], most_credit)
        if base < 0:
            state[n, 1:] = used, 0, 0, 0, end - used
        elif base == root:
            state[n, 1:] = root, 1, 0, spent + end - used, size
        else:
            state[n, 2] += 1
            state[n, 3] += end - used
        copy_words(row, last[n])
        state[n, 0] = handles[b] = used
    return rows.shape[0]


@njit(cache=True)
def mark_words(row: Any, reference: Any, groups: Any, middles: Any, tops: Any) -> Any:
    """Bitmaps of the words in which row [W] differs from reference [W]; returns how many.

    groups [G], middles [H], tops [L] uint16 are overwritten; a group is sixteen words.
    """
    middles[:] = 0
    tops[:] = 0
    changed = 0
    for g in range(groups.shape[0]):
        first, end = 16 * g, min(16 * g + 16, row.shape[0])
        differ = np.uint64(0)
        if end == first + 16:  # of a constant length, so that it becomes wide loads
            for w in range(16):
                differ |= row[first + w] ^ reference[first + w]
        groups[g] = 0
        if differ != 0 or end != first + 16:
            bits = np.uint64(0)
            for w in range(first, end):
                other = row[w] != reference[w]
                bits |= np.uint64(other) << np.uint64(w - first)
                changed += other
            groups[g] = bits
            if bits != 0:
                middles[g >> 4] |= np.uint16(1 << (g & 15))
                tops[g >> 8] |= np.uint16(1 << ((g >> 4) & 15))
    return changed


@njit(cache=True)
def put_row(
    row: Any,
    base: int,
    units: Any,
    used: int,
    table: Any,
    slots: Any,
    counts: Any,
    groups: Any,
    middles: Any,
    tops: Any,
    names: Any,
) -> Any:
    """Write the record of a row at units[used]; returns its end, or `NO_ROOM`."""
    width = row.shape[0]
    if units.shape[0] - used < HEADER + 4 * width:
        return NO_ROOM
    named, unknown = name_words(row, base < 0, groups, table, slots, counts, names)
    if named == NO_ROOM:
        return NO_ROOM
    at = used + HEADER
    size = named + 4 * unknown + (0 if base < 0 else bitmap_units(groups, middles, tops))
    header = AS_IT_IS if size >= 4 * width else (WHOLE if base < 0 else used - base)
    units[used], units[used + 1] = header & 0xFFFF, header >> 16
    if header == AS_IT_IS:
        for w in range(width):
            put_word(row[w], units, at + 4 * w)
        return at + 4 * width
    if header == WHOLE:
        for w in range(width):
            at = put_name(names[w], row[w], units, at)
        return at
    return put_changed(row, units, at, groups, middles, tops, names)


@njit(cache=True)
def put_changed(
    row: Any, units: Any, at: int, groups: Any, middles: Any, tops: Any, names: Any
) -> Any:
    """Bitmaps and names of the marked words from units[at] on; returns their end."""
    one = np.uint64(1)
    count = 0
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
                    at = put_name(names[count], row[16 * g + lowest_bit(bits)], units, at)
                    bits &= bits - one
                    count += 1
    return at


@njit(cache=True)
def bitmap_units(groups: Any, middles: Any, tops: Any) -> Any:
    """Units of the bitmaps that are written."""
    count = tops.shape[0]
    for bits in groups:
        count += bits != 0
    for bits in middles:
        count += bits != 0
    return count


@njit(cache=True)
def name_words(
    row: Any, whole: bool, groups: Any, table: Any, slots: Any, counts: Any, names: Any
) -> tuple[int, int]:
    """Names of the marked words, or of all, into names; how many, and how many have none.

    The first number is `NO_ROOM` where the table must grow.
    """
    one, count, unknown = np.uint64(1), 0, 0
    for g in range(groups.shape[0]):
        here = min(16, row.shape[0] - 16 * g)
        bits = (one << np.uint64(here)) - one if whole else np.uint64(groups[g])
        while bits != 0:
            name = name_of(row[16 * g + lowest_bit(bits)], table, slots, counts)
            if name < 0:
                return NO_ROOM, 0
            names[count] = name
            unknown += name == MOST_WORDS
            bits &= bits - one
            count += 1
    return count, unknown


@njit(cache=True)
def name_of(word: Any, table: Any, slots: Any, counts: Any) -> Any:
    """The name of a word, a new one while there is credit; `NO_ROOM` where the table must grow."""
    slot = first_slot(word, slots)
    while slots[slot] != NO_WORD:
        if table[slots[slot]] == word:
            counts[2] += REWARD
            return np.int64(slots[slot])
        slot = (slot + 1) & (slots.shape[0] - 1)
    known = counts[1]
    if counts[2] <= 0 or known == MOST_WORDS:
        return MOST_WORDS
    if known == table.shape[0]:
        return NO_ROOM
    table[known], slots[slot] = word, known
    counts[1] += 1
    counts[2] -= 1
    return np.int64(known)


@njit(cache=True)
def first_slot(word: Any, slots: Any) -> Any:
    """Where the search for a word begins: of a product, the high bits depend on every bit."""
    mixed = (word ^ (word >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    return np.int64((mixed >> np.uint64(44)) & np.uint64(slots.shape[0] - 1))


@njit(cache=True)
def put_names(table: Any, known: int, slots: Any) -> None:
    """Enter the first `known` words of a table into empty slots."""
    for name in range(known):
        slot = first_slot(table[name], slots)
        while slots[slot] != NO_WORD:
            slot = (slot + 1) & (slots.shape[0] - 1)
        slots[slot] = name


@njit(cache=True)
def put_name(name: Any, word: Any, units: Any, at: int) -> int:
    """A name, and the word where it has none; returns the end."""
    units[at] = name
    if name != NO_WORD:
        return at + 1
    put_word(word, units, at + 1)
    return at + 5


@njit(cache=True)
def put_word(word: Any, units: Any, at: int) -> None:
    """A word in four units."""
    for q in range(4):
        units[at + q] = (word >> np.uint64(16 * q)) & np.uint64(0xFFFF)


@njit(cache=True)
def word_at(units: Any, at: Any) -> Any:
    """The word in four units."""
    word = np.uint64(0)
    for q in range(4):
        word |= np.uint64(units[at + q]) << np.uint64(16 * q)
    return word


@njit(cache=True)
def base_of(units: Any, at: int) -> Any:
    """The record that the one at units[at] differs from; -1 for none."""
    header = np.int64(units[at]) | np.int64(units[at + 1]) << 16
    return at - header if header > AS_IT_IS else -1


@njit(cache=True)
def read_rows(
    units: Any,
    table: Any,
    tops: int,
    path: Any,
    handles: Any,
    order: Any,
    row: Any,
    row_bytes: Any,
    root_row: Any,
    out: Any,
    planes: Any,
) -> None:
    """Rows of handles [M] into out [M, W], those of an environment in the order of its records.

    A row that rests on the one read before goes on from there. order [M] says which is read when;
    path [LINKS + 1], row and root_row [W] are scratch, row_bytes is row's memory as uint8. Where
    there are planes [M, 3, P], rows of P pixels of three bytes go there instead.
    """
    turned = planes.shape[0] > 0
    held = root = -1
    for m in order:
        wanted = at = handles[m]
        if at < 0:
            if turned:
                planes[m] = 0
            else:
                out[m] = 0
            continue
        depth = 0
        while at >= 0 and at != held:
            path[depth] = at
            depth += 1
            at = base_of(units, at)
        if at < 0:
            depth -= 1
            if path[depth] != root:
                root = path[depth]
                read_whole(units, root, table, root_row)
            copy_words(root_row, row)
        while depth > 0:
            depth -= 1
            add_changed(units, path[depth] + HEADER, tops, table, row)
        held = wanted
        if turned:
            turn_three(row_bytes, planes[m])
        else:
            copy_words(row, out[m])


@njit(cache=True)
def read_whole(units: Any, at: int, table: Any, out: Any) -> None:
    """The row [W] of a record that rests on none."""
    whole, at = units[at] == WHOLE, at + HEADER
    for w in range(out.shape[0]):
        if not whole:
            out[w] = word_at(units, at + 4 * w)
        elif units[at] != NO_WORD:
            out[w] = table[units[at]]
            at += 1
        else:
            out[w] = word_at(units, at + 1)
            at += 5


@njit(cache=True)
def add_changed(units: Any, begin: int, tops: int, table: Any, out: Any) -> None:
    """Put the words of the record at units[begin] into out [W].

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
                    name, w = units[at], first + np.uint64(lowest_bit(bits))
                    bits &= bits - one
                    at += one
                    if name != NO_WORD:
                        out[w] = table[name]
                    else:
                        out[w] = word_at(units, at)
                        at += four
        i += one
