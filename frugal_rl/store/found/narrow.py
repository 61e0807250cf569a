"""Whole numbers of a small range, in as many bits as that takes: flags, choices, counts, cells.

Also where they come as float32 or int64. A row that holds anything else is kept whole.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from frugal_rl.observation.found_form import WIDTHS
from frugal_rl.observation.growing_array import GrowingArray
from frugal_rl.store.columns import Column
from frugal_rl.store.found.narrow_kernels import pack_rows, unpack_rows, whole_numbers

if TYPE_CHECKING:
    from frugal_rl.store.column_spec import ColumnSpec


def range_of(rows: np.ndarray) -> tuple[int, int] | None:
    """The lowest number and its bits for rows like these; None where no width suffices.

    What a width has beyond their range lies half below it, half above.
    """
    if rows.dtype.kind not in "buif" or not rows.size:
        return None
    low, high = rows.min(), rows.max()
    if not (np.isfinite(low) and np.isfinite(high)):
        return None
    span = int(high) - int(low)
    bits = next((b for b in WIDTHS if span < 1 << b), None)
    if bits is None or bits >= 8 * rows.dtype.itemsize or not -(1 << 62) < int(low) < 1 << 62:
        return None
    return int(low) - ((1 << bits) - 1 - span) // 2, bits


def whole(rows: np.ndarray) -> np.ndarray:
    """Rows [N, M] as int64; anything where they are no whole numbers."""
    if rows.dtype.kind != "f":
        return rows.astype(np.int64)
    kind = np.float32 if rows.itemsize < 4 else rows.dtype.newbyteorder("=")
    wide = rows.astype(kind, copy=False)  # kernels know no half, and no other order of bytes
    numbers = np.empty(rows.shape, np.int64)
    whole_numbers(wide, numbers)
    return numbers


class NarrowColumn(Column):
    """T steps of N environments as codes: number - low, in `bits` bits each.

    codes   [T, N, ceil(numbers bits / 8)] uint8
    known   [2^bits]               the bits of the number that each code up to a byte stands for
    broken  [B] int64              places t N + n of rows that do not fit, in their order
    whole   [B, row bytes] uint8   those rows
    """

    def __init__(self, spec: ColumnSpec, steps: int, num_envs: int, low: int, bits: int) -> None:
        self.spec, self.num_envs, self.low, self.bits = spec, num_envs, low, bits
        self.numbers = math.prod(spec.shape)
        self.codes = np.zeros((steps, num_envs, -(-self.numbers * bits // 8)), np.uint8)
        self.raw = np.dtype(f"u{spec.dtype.itemsize}")
        count = 1 << bits if bits <= 8 else 0
        self.known = (np.arange(count) + low).astype(spec.dtype).view(self.raw)
        self.broken = GrowingArray((), np.int64)
        self.whole = GrowingArray((spec.row_bytes,), np.uint8)

    def write(self, t: int, shown: np.ndarray, age: np.ndarray | None) -> None:
        """Keep step t; step 0 forgets the rollout before."""
        if t == 0:
            self.broken.used = self.whole.used = 0
        rows = np.ascontiguousarray(shown).reshape(self.num_envs, self.numbers)
        odd = self._pack(rows, self.codes[t])
        if odd is not None:
            other = np.flatnonzero(odd)
            self.broken.append(t * self.num_envs + other)
            self.whole.append(rows.view(np.uint8)[other])

    def _pack(self, rows: np.ndarray, codes: np.ndarray) -> np.ndarray | None:
        """Rows [N, numbers] into codes [N, bytes]; which of them [N] do not fit, None for none."""
        if self.bits > 8:
            numbers = whole(rows) - self.low
            codes[:] = numbers.astype(f"<u{self.bits // 8}").view(np.uint8)
            given = rows.view(np.uint8)
            odd = (self._numbers(codes).view(np.uint8) != given).any(axis=1)
            return odd if odd.any() else None
        odd = np.empty(len(rows), np.bool_)
        raw = rows.view(self.raw)
        count = pack_rows(whole(rows), raw, self.low, self.bits, self.known, codes, odd)
        return odd if count else None

    def _numbers(self, codes: np.ndarray) -> np.ndarray:
        """Codes [B, bytes] of two bytes each, as the numbers came."""
        numbers = codes.view(f"<u{self.bits // 8}").astype(np.int64)
        return (numbers + self.low).astype(self.spec.dtype)

    def gather(
        self, t: np.ndarray, n: np.ndarray, age: np.ndarray | None, out: np.ndarray | None
    ) -> np.ndarray:
        """Rows of the samples, written into `out`."""
        at = np.asarray(t) * self.num_envs + n
        if self.bits > 8:
            rows = self._numbers(self.codes[t, n])
        else:
            rows = np.empty((len(at), self.numbers), self.spec.dtype)
            flat = self.codes.reshape(-1, self.codes.shape[2])
            unpack_rows(flat, at, self.bits, self.known, rows.view(self.raw))
        if self.broken.used:
            places = self.broken.values[: self.broken.used]
            kept = np.minimum(np.searchsorted(places, at), len(places) - 1)
            b = np.flatnonzero(places[kept] == at)
            rows.view(np.uint8)[b] = self.whole.values[kept[b]]
        rows = rows.reshape(len(rows), *self.spec.shape)
        if out is None:
            return rows
        out[...] = rows
        return out

    def trim(self, steps: int) -> None:
        """No further steps come: give back what is not used."""
        self.codes = self.codes[:steps].copy()
        self.broken.trim()
        self.whole.trim()

    def used_bytes(self, steps: int, of: int) -> float:
        """Bytes that the first `steps` of `of` steps take."""
        return self.codes.nbytes * steps / of + self.broken.used_bytes + self.whole.used_bytes

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return int(self.codes.nbytes + self.known.nbytes) + self.broken.nbytes + self.whole.nbytes
