"""Kernels of rows as differences: which units differ from another row, packed behind bitmaps.

A row is exclusive-or-ed with its reference, and only the units of two bytes that are not zero are
kept, behind two levels of bitmaps that say where they belong:

    top      ceil(M / 64) x 64 bits   bit i: bitmap i has a bit set
    bitmaps  64 bits each             bit j of bitmap i: unit 64 i + j differs
    units    16 bits each             the differences

with M = ceil(units per row / 64). Rows begin on whole words.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import intrinsic


@njit(cache=True)
def append_delta(
    words: Any,
    references: Any,
    current: Any,
    scratch: Any,
    units: Any,
    pool_words: Any,
    used: int,
    starts: Any,
    sizes: Any,
    first: int,
) -> tuple[int, int]:
    """Differences of words [first:, W] to the end of units; starts and sizes [N] are set.

    scratch [M] uint64 is overwritten; pool_words is the memory of units as uint64. Returns the
    rows that found room, N or fewer, and the units in use.
    """
    tops = (scratch.shape[0] + 63) // 64
    worst = most_units(words.shape[1], scratch.shape[0])
    for n in range(first, words.shape[0]):
        starts[n] = used
        row, reference = words[n], references[current[n]]
        mark_differences(row, reference, scratch)
        free = units.shape[0] - used
        if free < worst and free < units_needed(scratch, tops):
            return n, used
        at = used // 4 + tops
        for top in range(tops):
            bits = np.uint64(0)
            for i in range(64 * top, min(64 * top + 64, scratch.shape[0])):
                if scratch[i] != 0:
                    bits |= np.uint64(1) << np.uint64(i - 64 * top)
                    pool_words[at] = scratch[i]
                    at += 1
            pool_words[used // 4 + top] = bits
        at *= 4
        for i in range(scratch.shape[0]):
            if scratch[i] != 0:
                at = put_differences(row, reference, i, units, at)
        sizes[n] = at - used
        used = (at + 3) // 4 * 4
    return words.shape[0], used


@njit(cache=True)
def most_units(row_words: int, bitmaps: int) -> int:
    """Units of two bytes of a row in which everything differs."""
    return 4 * (row_words + bitmaps + (bitmaps + 63) // 64)


@njit(cache=True)
def units_needed(bitmaps: Any, tops: int) -> int:
    """Units of two bytes of a row with these bitmaps [M], filled up to whole words."""
    count, differing = tops, 0
    for bits in bitmaps:
        count += bits != 0
        while bits != 0:
            bits &= bits - np.uint64(1)
            differing += 1
    return 4 * count + (differing + 3) // 4 * 4


@njit(cache=True)
def mark_differences(row: Any, reference: Any, bitmaps: Any) -> None:
    """Bit j of bitmaps[i]: unit 64 i + j of the row [W] differs from the reference's."""
    for i in range(bitmaps.shape[0]):
        bits = np.uint64(0)
        for w in range(16 * i, min(16 * i + 16, row.shape[0])):
            x = row[w] ^ reference[w]
            if x != 0:
                for q in range(4):
                    if (x >> np.uint64(16 * q)) & np.uint64(0xFFFF) != 0:
                        bits |= np.uint64(1) << np.uint64(4 * (w - 16 * i) + q)
        bitmaps[i] = bits


@njit(cache=True)
def put_differences(row: Any, reference: Any, i: int, units: Any, at: int) -> int:
    """The differing units under bitmap i, in order; returns the end."""
    for w in range(16 * i, min(16 * i + 16, row.shape[0])):
        x = row[w] ^ reference[w]
        if x != 0:
            for q in range(4):
                unit = (x >> np.uint64(16 * q)) & np.uint64(0xFFFF)
                if unit != 0:
                    units[at] = unit
                    at += 1
    return at


def _count_trailing_zeros(typing: Any, bits: Any) -> Any:
    """Position of the lowest set bit of a 64-bit word that is not zero: one instruction."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], context.get_constant(types.boolean, True))

    return types.int64(types.uint64), emit


lowest_bit: Any = intrinsic(_count_trailing_zeros)


@njit(cache=True)
def first_places(pool_words: Any, start: int, tops: int) -> tuple[int, int]:
    """Where a row's bitmaps begin, in words, and its units, in units of two bytes."""
    count = 0
    for top in range(tops):
        bits = pool_words[start // 4 + top]
        while bits != 0:
            count += 1
            bits &= bits - np.uint64(1)
    bitmap_at = start // 4 + tops
    return bitmap_at, 4 * (bitmap_at + count)


@njit(cache=True)
def add_differences(units: Any, pool_words: Any, start: int, bitmaps: int, out: Any) -> None:
    """Exclusive-or the differences of one row into out [4 W] uint16, which holds its reference."""
    one = np.uint64(1)
    tops = (bitmaps + 63) // 64
    bitmap_at, at = first_places(pool_words, start, tops)
    for top in range(tops):
        which = pool_words[start // 4 + top]
        while which != 0:
            first = 64 * (64 * top + lowest_bit(which))
            which &= which - one
            bits = pool_words[bitmap_at]
            bitmap_at += 1
            while bits != 0:
                out[first + lowest_bit(bits)] ^= units[at]
                bits &= bits - one
                at += 1


@njit(cache=True)
def read_delta(
    units: Any,
    pool_words: Any,
    starts: Any,
    reference_of: Any,
    references: Any,
    bitmaps: int,
    steps: Any,
    n: Any,
    out: Any,
    out_units: Any,
) -> None:
    """Rows (steps[b, j], n[b]) into out [B, k, W] uint64; out_units is that memory as uint16."""
    for b in range(steps.shape[0]):
        for j in range(steps.shape[1]):
            at = steps[b, j]
            if at < 0:
                out[b, j] = 0
            else:
                out[b, j] = references[reference_of[at, n[b]]]
                start = starts[at, n[b]]
                add_differences(units, pool_words, start, bitmaps, out_units[b, j])
