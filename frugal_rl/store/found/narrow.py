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


class NarrowColumn(Column):
    """T steps of N environments as codes: number - low, in `bits` bits each.

    codes   [T, N, ceil(numbers bits / 8)] uint8
    broken  [B] int64              places t N + n of rows that do not fit, in their order
    whole   [B, row bytes] uint8   those rows
    """

    def __init__(self, spec: ColumnSpec, steps: int, num_envs: int, low: int, bits: int) -> None:
        self.spec, self.num_envs, self.low, self.bits = spec, num_envs, low, bits
        self.numbers = math.prod(spec.shape)
        self.codes = np.zeros((steps, num_envs, -(-self.numbers * bits // 8)), np.uint8)
        self.broken = GrowingArray((), np.int64)
        self.whole = GrowingArray((spec.row_bytes,), np.uint8)

    def write(self, t: int, shown: np.ndarray, age: np.ndarray | None) -> None:
        """Keep step t; step 0 forgets the rollout before."""
        if t == 0:
            self.broken.used = self.whole.used = 0
        rows = np.ascontiguousarray(shown).reshape(self.num_envs, self.numbers)
        with np.errstate(invalid="ignore"):  # what is no number is found by comparing
            codes = rows.astype(np.int64) - self.low
        codes &= (1 << self.bits) - 1
        self.codes[t] = self._packed(codes)
        kept, given = self._numbers(codes).view(np.uint8), rows.view(np.uint8)
        if kept.tobytes() != given.tobytes():
            other = np.flatnonzero((kept != given).any(axis=1))
            self.broken.append(t * self.num_envs + other)
            self.whole.append(given[other])

    def _numbers(self, codes: np.ndarray) -> np.ndarray:
        """Codes [B, numbers] int64 as they came."""
        return (codes + self.low).astype(self.spec.dtype)

    def _packed(self, codes: np.ndarray) -> np.ndarray:
        """Codes [B, numbers] int64 -> [B, bytes] uint8."""
        if self.bits >= 8:
            return codes.astype(f"<u{self.bits // 8}").view(np.uint8)
        if self.bits == 1:
            return np.packbits(codes.astype(np.bool_), axis=1)
        per = 8 // self.bits
        packed = np.zeros((len(codes), -(-self.numbers // per)), np.uint8)
        for place in range(per):
            part = codes[:, place::per].astype(np.uint8)
            packed[:, : part.shape[1]] |= part << np.uint8(place * self.bits)
        return packed

    def _unpacked(self, packed: np.ndarray) -> np.ndarray:
        """Bytes [B, bytes] uint8 -> codes [B, numbers] int64."""
        if self.bits >= 8:
            return packed.view(f"<u{self.bits // 8}").astype(np.int64)
        if self.bits == 1:
            return np.unpackbits(packed, axis=1, count=self.numbers).astype(np.int64)
        shifts = np.arange(8 // self.bits, dtype=np.uint8) * self.bits
        codes = (packed[:, :, None] >> shifts) & np.uint8((1 << self.bits) - 1)
        flat = codes.reshape(len(packed), packed.shape[1] * len(shifts))  # of no rows as well
        return flat[:, : self.numbers].astype(np.int64)

    def gather(
        self, t: np.ndarray, n: np.ndarray, age: np.ndarray | None, out: np.ndarray | None
    ) -> np.ndarray:
        """Rows of the samples, written into `out`."""
        rows = self._numbers(self._unpacked(self.codes[t, n]))
        if self.broken.used:
            places = self.broken.values[: self.broken.used]
            at = np.asarray(t) * self.num_envs + n
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

    def used_bytes(self, steps: int, of: int) -> float:
        """Bytes that the first `steps` of `of` steps take."""
        return self.codes.nbytes * steps / of + self.broken.used_bytes + self.whole.used_bytes

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return int(self.codes.nbytes) + self.broken.nbytes + self.whole.nbytes
