"""`delta`: rows as what differs from a reference row, with random access.

A row is exclusive-or-ed with its reference, and only the units of two bytes that are not zero are
kept, behind two levels of bitmaps that say where they belong:

    top      ceil(M / 64) x 64 bits   bit i: bitmap i has a bit set
    bitmaps  64 bits each             bit j of bitmap i: unit 64 i + j differs
    units    16 bits each             the differences

with M = ceil(units per row / 64). An environment's reference is its first row; where a row differs
in more than a quarter, it becomes the reference of those that follow.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np
from numba import njit

from frugal_rl.observation.tables import Arena
from frugal_rl.rollout.layout import ColumnSpec
from frugal_rl.rollout.pool import PooledColumn

NEW_REFERENCE_SHARE = 0.25


class DeltaColumn(PooledColumn):
    """Rows against interned references.

    references    [R, W] uint64
    reference_of  [lead + T, N] int32
    """

    def __init__(self, spec: ColumnSpec, steps: int, num_envs: int) -> None:
        super().__init__(spec, steps, num_envs)
        self.reference_of = np.zeros(self.starts.shape, np.int32)
        self._current = np.zeros(num_envs, np.int32)
        self._references = Arena((self._row_bytes // 8,), np.uint64)
        self._references.append(np.zeros((num_envs, self._row_bytes // 8), np.uint64))
        self._ids: dict[bytes, int] = {}
        bitmaps = -(-self._row_bytes // 2 // 64)
        self._scratch = np.zeros(bitmaps, np.uint64)
        self._sizes = np.zeros(num_envs, np.int64)

    def _begin(self, words: np.ndarray) -> None:
        """Forget all references but those in use; at first, take each environment's first row."""
        kept = self._references.values[self._current] if self._ids else words
        self._ids = {}
        self._references.used = 0
        for n, row in enumerate(kept.copy()):
            self._current[n] = self._intern(row)

    def _intern(self, row: np.ndarray) -> int:
        key = blake2b(row.data, digest_size=16).digest()
        if key not in self._ids:
            self._ids[key] = self._references.used
            self._references.append(row[None])
        return self._ids[key]

    def _append(self, at: int, words: np.ndarray) -> None:
        worst = words.shape[1] * 4 + 4 * (len(self._scratch) + -(-len(self._scratch) // 64))
        self.pool.reserve(len(words) * worst)
        self.reference_of[at] = self._current
        self.starts[at], used = self.pool.used, self.pool.used
        self.pool.used = append_delta(
            words, self._references.values, self._current, self._scratch,
            self.pool.units, used, self.starts[at], self._sizes,
        )  # fmt: skip
        for n in np.flatnonzero(self._sizes > NEW_REFERENCE_SHARE * words.shape[1] * 4):
            self._current[n] = self._intern(words[n].copy())

    def _read(self, steps: np.ndarray, n: np.ndarray, out: np.ndarray) -> None:
        read_delta(
            self.pool.units, self.starts, self.reference_of, self._references.values,
            len(self._scratch), steps, n, out, out.view(np.uint16),
        )  # fmt: skip

    def arrays(self) -> list[np.ndarray]:
        """Pool, starts, references."""
        return [*super().arrays(), self.reference_of, self._references.values]


@njit(cache=True)
def append_delta(
    words: Any, references: Any, current: Any, scratch: Any,
    units: Any, used: int, starts: Any, sizes: Any,
) -> int:  # fmt: skip
    """Differences of words [N, W] to the end of units [capacity]; starts and sizes [N] are set.

    scratch [M] uint64 is overwritten. Returns the units in use.
    """
    tops = (scratch.shape[0] + 63) // 64
    for n in range(words.shape[0]):
        starts[n] = used
        row, reference = words[n], references[current[n]]
        mark_differences(row, reference, scratch)
        at = used + 4 * tops
        for top in range(tops):
            bits = np.uint64(0)
            for i in range(64 * top, min(64 * top + 64, scratch.shape[0])):
                if scratch[i] != 0:
                    bits |= np.uint64(1) << np.uint64(i - 64 * top)
                    put(units, at, scratch[i])
                    at += 4
            put(units, used + 4 * top, bits)
        for i in range(scratch.shape[0]):
            if scratch[i] != 0:
                at = put_differences(row, reference, i, units, at)
        sizes[n] = at - used
        used = at
    return used


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
def put(units: Any, at: int, word: Any) -> None:
    """A 64-bit word as four units."""
    for q in range(4):
        units[at + q] = word >> np.uint64(16 * q)


@njit(cache=True)
def take(units: Any, at: int) -> Any:
    """Four units as a 64-bit word."""
    word = np.uint64(0)
    for q in range(4):
        word |= np.uint64(units[at + q]) << np.uint64(16 * q)
    return word


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


@njit(cache=True)
def lowest_bit(bits: Any) -> int:
    """Position of the lowest set bit of a 64-bit word that is not zero."""
    position = 0
    if bits & np.uint64(0xFFFFFFFF) == 0:
        bits >>= np.uint64(32)
        position += 32
    if bits & np.uint64(0xFFFF) == 0:
        bits >>= np.uint64(16)
        position += 16
    if bits & np.uint64(0xFF) == 0:
        bits >>= np.uint64(8)
        position += 8
    if bits & np.uint64(0xF) == 0:
        bits >>= np.uint64(4)
        position += 4
    if bits & np.uint64(0x3) == 0:
        bits >>= np.uint64(2)
        position += 2
    if bits & np.uint64(0x1) == 0:
        position += 1
    return position


@njit(cache=True)
def add_differences(units: Any, start: int, bitmaps: int, out: Any) -> None:
    """Exclusive-or the differences of one row into out [4 W] uint16, which holds its reference."""
    one = np.uint64(1)
    tops = (bitmaps + 63) // 64
    count = 0
    for top in range(tops):
        bits = take(units, start + 4 * top)
        while bits != 0:
            count += 1
            bits &= bits - one
    bitmap_at = start + 4 * tops
    at = bitmap_at + 4 * count
    for top in range(tops):
        which = take(units, start + 4 * top)
        while which != 0:
            first = 64 * (64 * top + lowest_bit(which))
            which &= which - one
            bits = take(units, bitmap_at)
            bitmap_at += 4
            while bits != 0:
                out[first + lowest_bit(bits)] ^= units[at]
                bits &= bits - one
                at += 1


@njit(cache=True)
def read_delta(
    units: Any, starts: Any, reference_of: Any, references: Any, bitmaps: int,
    steps: Any, n: Any, out: Any, out_units: Any,
) -> None:  # fmt: skip
    """Rows (steps[b, j], n[b]) into out [B, k, W] uint64; out_units is that memory as uint16."""
    for b in range(steps.shape[0]):
        for j in range(steps.shape[1]):
            at = steps[b, j]
            if at < 0:
                out[b, j] = 0
            else:
                out[b, j] = references[reference_of[at, n[b]]]
                add_differences(units, starts[at, n[b]], bitmaps, out_units[b, j])
