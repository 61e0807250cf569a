"""Compiled loops of `Tiled`: tiles named by their content, rows painted from their names.

Tiles begin at any byte of a row, words at every eighth: words are loaded from any byte when a tile
is taken out, and shifted apart when rows are painted. A tile is first compared with the one that
stood there in the row before, which is cheaper than taking it out and looking it up.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from frugal_rl.store.found.row_kernels import same_words, turn_three, word_from

UNKNOWN = np.uint16(65535)


@njit(cache=True)
def name_rows(
    rows: Any,
    first: int,
    env: Any,
    counts: Any,
    table: Any,
    slots: Any,
    scratch: Any,
    before: Any,
    names: Any,
    is_named: Any,
) -> Any:
    """Names of rows [first:, W] into names [B, >= K / 4] uint64, four in a word; new tiles entered.

    A row of more than `few` distinct new tiles, or of too many for a table of `most`, gets none:
    is_named [B] tells. Before the table has the tiles of a row, so many are let in. before
    [N, >= K / 4] are the newest names of environments env [B]. counts holds the tiles known, rows
    that got no names, `few`, `most` and how a row lies; the first two are written. scratch uint64
    is what `split_tile_scratch` tells. Arrays are few because each costs more to hand over than a
    tile costs to name. Returns how many of the rows found room in the table.
    """
    few, most = counts[2], counts[3]
    lay = (counts[4], counts[5], counts[6], counts[7], counts[8])
    row, tile, keys, fresh = split_tile_scratch(scratch, rows.shape[1], table.shape[1])
    octets = row.view(np.uint8)
    for b in range(first, rows.shape[0]):
        row[: rows.shape[1]] = rows[b]
        known, mine = counts[0], names[b].view(np.uint16)
        allowed = max(few, fresh.shape[0] - known)
        likely = before[env[b]].view(np.uint16)
        new = name_tiles(octets, lay, table, known, slots, keys, tile, fresh, allowed, likely, mine)
        is_named[b] = new <= allowed and known + new <= most
        if new > 0 and is_named[b]:
            counts[0], done = enter_tiles(octets, lay, table, known, slots, keys, tile, mine)
            if not done and counts[0] < most:
                return b
            is_named[b] = done
        counts[1] += not is_named[b]
    return rows.shape[0]


@njit(cache=True)
def split_tile_scratch(scratch: Any, width: int, size: int) -> Any:
    """Room for a row [width + 1], a tile [size], keys [size] and new tiles [K]."""
    tile, keys, fresh = width + 1, width + 1 + size, width + 1 + 2 * size
    return scratch[:tile], scratch[tile:keys], scratch[keys:fresh], scratch[fresh:]


@njit(cache=True)
def name_tiles(
    row: Any,
    lay: Any,
    table: Any,
    known: int,
    slots: Any,
    keys: Any,
    tile: Any,
    fresh: Any,
    allowed: int,
    before: Any,
    names: Any,
) -> int:
    """Names of a row's tiles, `UNKNOWN` for new ones; before [>= K] are likely ones.

    Returns how many distinct ones are new, told apart by 64 bits of theirs in fresh [K]; one more
    than are allowed where there are more, and then names are not all there.
    """
    columns = -(-lay[2] // lay[4])
    k = new = 0
    for down in range(-(-lay[1] // lay[3])):
        for across in range(columns):
            likely = before[k]
            if likely < known and is_tile(row, lay, down, across, table[likely]):
                names[k] = likely
                k += 1
                continue
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
def is_tile(row: Any, lay: Any, down: int, across: int, tile: Any) -> bool:
    """Whether a tile stands at a place of a row [8 W + 8] uint8; most others differ early.

    Indices are unsigned, so that none is looked at for being negative.
    """
    planes, lines, line_bytes, high, wide = lay
    first, step = across * wide, (wide + 7) >> 3
    here, lower = min(wide, line_bytes - first), min(high, lines - down * high)
    one, eight, last = np.uint64(1), np.uint64(8), np.uint64((here - 1) >> 3)
    mask = np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(-8 * here & 63)
    for a in range(planes):
        at = np.uint64(a * high * step)
        begin = np.uint64((a * lines + down * high) * line_bytes + first)
        for _ in range(lower):
            differ, q, byte = np.uint64(0), at, begin
            while q < at + last:
                differ |= word_from(row, byte) ^ tile[q]
                q += one
                byte += eight
            differ |= (word_from(row, byte) & mask) ^ tile[q]
            if differ != 0:
                return False
            at += np.uint64(step)
            begin += np.uint64(line_bytes)
    return True


@njit(cache=True)
def take_tile(row: Any, lay: Any, down: int, across: int, keys: Any, tile: Any) -> Any:
    """Copy a tile out of a row [8 W + 8] uint8, zeros where it is no whole one; returns its `mix`.

    Indices are unsigned, as in `is_tile`.
    """
    planes, lines, line_bytes, high, wide = lay
    first, step = across * wide, (wide + 7) >> 3
    here, lower = min(wide, line_bytes - first), min(high, lines - down * high)
    one, eight, half = np.uint64(1), np.uint64(8), np.uint64(29)
    last = np.uint64((here - 1) >> 3)
    mask = np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(-8 * here & 63)
    if here < wide or lower < high:
        tile[:] = 0
    mixed = np.uint64(0)
    for a in range(planes):
        at = np.uint64(a * high * step)
        begin = np.uint64((a * lines + down * high) * line_bytes + first)
        for _ in range(lower):
            q, byte = at, begin
            while q < at + last:
                word = word_from(row, byte)
                tile[q] = word
                mixed += (word ^ (word >> half)) * keys[q]
                q += one
                byte += eight
            word = word_from(row, byte) & mask
            tile[q] = word
            mixed += (word ^ (word >> half)) * keys[q]
            at += np.uint64(step)
            begin += np.uint64(line_bytes)
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
