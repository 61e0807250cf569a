"""An arena whose rows repeat: each distinct row once, and its number wherever it occurs.

A navigation graph's edges have 14 features of 56 bytes, but few distinct combinations of them; a
number takes 4 bytes. Rows are compared by their bits, so what is read is what was written.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from frugal_rl.observation.aligned import WORD_BYTES
from frugal_rl.observation.growing_array import GrowingArray

EMPTY = -1
FEWEST_SLOTS = 64


class RepeatedRows(GrowingArray):
    """`codes` [capacity] int32 name rows of `book` [distinct, *shape]; `values` are the codes."""

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        super().__init__((), np.int32)
        self.book = GrowingArray(shape, dtype)
        self._slots = np.full(FEWEST_SLOTS, EMPTY, np.int32)

    def append(self, rows: np.ndarray) -> None:
        """Add rows [n, *shape] at the end."""
        rows = np.ascontiguousarray(rows, self.book.dtype)
        self._make_room(self.book.used + len(rows))
        codes = np.empty(len(rows), np.int32)
        fresh = np.empty(len(rows), np.int64)
        words, known = _words(rows), _words(self.book.values)
        count = _kernels().number_rows(words, known, self.book.used, self._slots, codes, fresh)
        self.book.append(rows[fresh[:count]])
        super().append(codes)

    def read(self, first: int, end: int) -> np.ndarray:
        """Rows [end - first, *shape], a copy."""
        rows: np.ndarray = self.book.values[self.values[first:end]]
        return rows

    def select(self, index: np.ndarray) -> None:
        """Keep the rows at these places, in this order, and what they name."""
        super().select(index)
        kept = np.unique(self.values)
        self.values = np.searchsorted(kept, self.values).astype(np.int32)
        self.book.select(kept)
        self._number_again(_slots_for(len(kept), FEWEST_SLOTS))

    def allocated_with(self, rows: int) -> int:
        """Bytes allocated once that many rows are in, if none of them is known."""
        slots = _slots_for(self.book.used + rows, len(self._slots))
        return super().allocated_with(rows) + self.book.allocated_with(rows) + 4 * slots

    def content_bytes(self, rows: int) -> int:
        """Bytes that this many of the valid rows take, with their share of what all name."""
        shared = self.book.used_bytes + int(self._slots.nbytes)
        return super().content_bytes(rows) + shared * rows // max(1, self.used)

    @property
    def nbytes(self) -> int:
        """Bytes allocated: codes, distinct rows, and where those are found."""
        return super().nbytes + self.book.nbytes + int(self._slots.nbytes)

    def _make_room(self, most: int) -> None:
        slots = _slots_for(most, len(self._slots))
        if slots > len(self._slots):
            self._number_again(slots)

    def _number_again(self, slots: int) -> None:
        self._slots = np.full(slots, EMPTY, np.int32)
        _kernels().find_slots(_words(self.book.values), self.book.used, self._slots)


class RowNumbers:
    """Numbers of rows that lie in several arrays, by first sight, until they are forgotten.

    Sums over rows are therefore the same for the same rows.
    """

    def __init__(self, row_bytes: int) -> None:
        self.row_bytes = row_bytes
        self.known = GrowingArray((-(-row_bytes // WORD_BYTES),), np.uint64)
        self._slots = np.full(FEWEST_SLOTS, EMPTY, np.int32)

    def forget(self) -> None:
        """Number from 0 again."""
        self.known.used = 0
        self._slots.fill(EMPTY)

    def of(self, *columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows [B, ...] of several arrays: [D] int64 the places of new ones, [B] int32 numbers."""
        count = len(columns[-1])
        words = np.zeros((count, *self.known.values.shape[1:]), np.uint64)
        rows, at = words.view(np.uint8), 0
        for column in columns:
            flat = np.ascontiguousarray(column).reshape(len(column), math.prod(column.shape[1:]))
            part = flat.view(np.uint8)
            rows[:, at : at + part.shape[1]] = part
            at += part.shape[1]
        self._make_room(self.known.used + count)
        numbers, firsts = np.empty(count, np.int32), np.empty(count, np.int64)
        known = self.known
        found = _kernels().number_rows(
            words, known.values, known.used, self._slots, numbers, firsts
        )
        known.append(words[firsts[:found]])
        return firsts[:found], numbers

    def _make_room(self, most: int) -> None:
        slots = _slots_for(most, len(self._slots))
        if slots > len(self._slots):
            self._slots = np.full(slots, EMPTY, np.int32)
            _kernels().find_slots(self.known.values, self.known.used, self._slots)

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return self.known.nbytes + int(self._slots.nbytes)


def _slots_for(rows: int, slots: int) -> int:
    """A power of two of which `rows` take at most half."""
    return max(slots, 1 << (2 * rows - 1).bit_length()) if rows else slots


def _words(rows: np.ndarray) -> np.ndarray:
    """Contiguous rows [n, *shape] as unsigned words [n, w] with the same bits."""
    flat = rows.reshape(len(rows), math.prod(rows.shape[1:]))
    size = math.gcd(flat.shape[1] * flat.itemsize, 8)
    return flat.view(f"u{size}")


def _kernels() -> Any:
    """The compiled half, which brings the compiler: needed once rows are there, not for a plan."""
    from frugal_rl.observation import row_numbers

    return row_numbers
