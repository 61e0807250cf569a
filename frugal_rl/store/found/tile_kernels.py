"""Compiled loops of `Tiled`: tiles named by their content, rows painted from their names.

Tiles begin at any byte of a row, words at every eighth: words are shifted together when a tile is
taken out, and apart when rows are painted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from frugal_rl.store.found.row_kernels import same_words, turn_three

UNKNOWN = np.uint16(65535)


@njit(cache=True)
def name_rows(
    rows: Any,
    first: int,
    lay: Any,
    table: Any,
    known: int,
    few: int,
    most: int,
    slots: Any,
    keys: Any,
    row: Any,
    tile: Any,
    fresh: Any,
    names: Any,
    is_named: Any,
) -> Any:
    """Names of rows [first:, W] into names [B, >= K] uint16, new tiles entered.

    A row of more than `few` distinct new tiles, or of too many for a table of `most`, gets none:
    is_named [B] tells. Before the table has the tiles of a row, so many are let in. Returns how
    many of the rows found room in the table, and the tiles known. row [W + 1], tile [S] and fresh
    [K] uint64 are scratch.
    """
    for b in range(first, rows.shape[0]):
        row[: rows.shape[1]] = rows[b]
        allowed = max(few, fresh.shape[0] - known)
        new = name_tiles(row, lay, table, slots, keys, tile, fresh, allowed, names[b])
        is_named[b] = new <= allowed and known + new <= most
        if new > 0 and is_named[b]:
            known, done = enter_tiles(row, lay, table, known, slots, keys, tile, names[b])
            if not done and known < most:
                return b, known
            is_named[b] = done
    return rows.shape[0], known


@njit(cache=True)
def name_tiles(
    row: Any,
    lay: Any,
    table: Any,
    slots: Any,
    keys: Any,
    tile: Any,
    fresh: Any,
    allowed: int,
    names: Any,
) -> int:
    """Names of a row's tiles, `UNKNOWN` for new ones.

    Returns how many distinct ones are new, told apart by 64 bits of theirs in fresh [K]; one more
    than are allowed where there are more, and then names are not all there.
    """
    columns = -(-lay[2] // lay[4])
    k = new = 0
    for down in range(-(-lay[1] // lay[3])):
        for across in range(columns):
            mixed = take_tile(row, lay, down, across, keys, tile)
            names[k] = slots[slot_of(tile, mixed, table, slots)]
            if names[k] == UNKNOWN:
                seen = 0
                while seen < new and fresh[seen] != mixed:
                    seen += 1
                if seen == new:
                    if new == allowed:
                        return new + 1
                    fresh[new] = mixed
                    new += 1
            k += 1
    return new


@njit(cache=True)
def enter_tiles(
    row: Any, lay: Any, table: Any, known: int, slots: Any, keys: Any, tile: Any, names: Any
) -> Any:
    """Enter the unknown tiles of a row; how many are known now, and whether there was room."""
    columns = -(-lay[2] // lay[4])
    for k in range(-(-lay[1] // lay[3]) * columns):
        if names[k] != UNKNOWN:
            continue
        mixed = take_tile(row, lay, k // columns, k % columns, keys, tile)
        slot = slot_of(tile, mixed, table, slots)
        if slots[slot] == UNKNOWN:  # it may stand in the row twice
            if known == table.shape[0]:
                return known, False
            table[known] = tile
            slots[slot] = known
            known += 1
        names[k] = slots[slot]
    return known, True


@njit(cache=True)
def take_tile(row: Any, lay: Any, down: int, across: int, keys: Any, tile: Any) -> Any:
    """Copy a tile out of a row [W + 1], zeros where it is no whole one; returns its `mix`.

    Indices are unsigned, so that none is looked at for being negative.
    """
    planes, lines, line_bytes, high, wide = lay
    one, three, seven, most = np.uint64(1), np.uint64(3), np.uint64(7), np.uint64(63)
    half, first, step = np.uint64(29), across * wide, (wide + 7) >> 3
    here = min(wide, line_bytes - first)
    last = np.uint64((here - 1) >> 3)
    mask = np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(-8 * here & 63)
    if here < wide or (down + 1) * high > lines:
        tile[:] = 0
    mixed = np.uint64(0)
    for a in range(planes):
        at = np.uint64(a * high * step)
        for y in range(down * high, min((down + 1) * high, lines)):
            begin = np.uint64((a * lines + y) * line_bytes + first)
            i, shift = begin >> three, (begin & seven) << three
            other = most - shift  # shifting by 64 is not defined, by 1 and 63 it is
            q = np.uint64(0)
            while q < last:
                word = (row[i + q] >> shift) | ((row[i + q + one] << one) << other)
                tile[at + q] = word
                mixed += (word ^ (word >> half)) * keys[at + q]
                q += one
            word = ((row[i + q] >> shift) | ((row[i + q + one] << one) << other)) & mask
            tile[at + q] = word
            mixed += (word ^ (word >> half)) * keys[at + q]
            at += np.uint64(step)
    return mixed


@njit(cache=True)
def mix(tile: Any, keys: Any) -> Any:
    """64 bits of which the highest depend on every bit of a tile; keys are odd."""
    mixed = np.uint64(0)
    for w in range(tile.shape[0]):
        mixed += (tile[w] ^ (tile[w] >> np.uint64(29))) * keys[w]
    return mixed


@njit(cache=True)
def slot_of(tile: Any, mixed: Any, table: Any, slots: Any) -> Any:
    """Where a tile stands among the slots, or the free one where it would."""
    slot = np.int64(mixed >> np.uint64(40)) & (slots.shape[0] - 1)
    while slots[slot] != UNKNOWN and not same_words(table[slots[slot]], tile):
        slot = (slot + 1) & (slots.shape[0] - 1)
    return slot


@njit(cache=True)
def put_tiles(table: Any, known: int, slots: Any, keys: Any) -> None:
    """Enter the first `known` tiles of a table into empty slots."""
    for name in range(known):
        slots[slot_of(table[name], mix(table[name], keys), table, slots)] = name


@njit(cache=True)
def paint_rows(
    names: Any,
    order: Any,
    lay: Any,
    table: Any,
    row: Any,
    row_bytes: Any,
    places: Any,
    out: Any,
    planes: Any,
) -> None:
    """Rows of names [B, >= K] to out[places] [M, W], or as planes [M, 3, P] uint8 where there are.

    order [B] says which is painted when; row [W + 1] is scratch, row_bytes its memory as uint8.
    """
    before = -1
    for b in order:
        paint(names[b], names[before], before >= 0, lay, table, row)
        before = b
        if planes.shape[0]:
            turn_three(row_bytes, planes[places[b]])
        else:
            out[places[b]] = row[: out.shape[1]]


@njit(cache=True)
def paint(names: Any, before: Any, begun: bool, lay: Any, table: Any, row: Any) -> None:
    """A row [W + 1] from the names of its tiles.

    Once begun, row holds the picture of the names before: tiles side by side that are the same as
    theirs are left, where they begin and end with a word.
    """
    count, lines, line_bytes, high, wide = lay
    columns = -(-line_bytes // wide)
    apart = begun and high * line_bytes % 8 == 0 and lines * line_bytes % 8 == 0
    at = bits = np.uint64(0)
    for a in range(count):
        for top in range(0, lines, high):
            here = min(high, lines - top)
            first = (top // high) * columns
            same = apart
            for k in range(first, first + columns):
                same = same and names[k] == before[k]
            if same:
                at += np.uint64(here * line_bytes >> 3)
            else:
                some = names[first : first + columns]
                at, bits = paint_tiles(some, a * high, here, lay, table, row, at, bits)


@njit(cache=True)
def paint_tiles(
    names: Any, first: int, lines: int, lay: Any, table: Any, row: Any, at: Any, bits: Any
) -> Any:
    """Tiles side by side, line by line, each word as soon as it is full.

    first is the line of a tile that is painted first. Words of row [W + 1] before `at` are there,
    and `bits` of that one, 0 to 56; returns both for what follows. Shifts by 64 are not defined,
    so that they are made of two.
    """
    line_bytes, wide = lay[2], lay[4]
    step = (wide + 7) >> 3
    one, three, six, most = np.uint64(1), np.uint64(3), np.uint64(6), np.uint64(63)
    full = row[at] & ((one << bits) - one)
    for y in range(first, first + lines):
        line = np.uint64(y * step)
        for x in range(names.shape[0]):
            here = np.uint64(min(wide, line_bytes - x * wide))
            tile, q = table[names[x]], line
            last = line + (here - one >> three)
            while q < last:
                word = tile[q]
                row[at] = full | (word << bits)
                full = (word >> one) >> (most - bits)
                at += one
                q += one
            word = tile[q]
            full |= word << bits
            row[at] = full
            spilled = (word >> one) >> (most - bits)
            bits += (((here - one) & np.uint64(7)) + one) << three
            full = spilled if bits > most else full
            at += bits >> six
            bits &= most
    if bits:  # the next word may be there already
        row[at] = full
    return at, bits
