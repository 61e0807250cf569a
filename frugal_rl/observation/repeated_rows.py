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


class DistinctRows(GrowingArray):
    """Rows that all differ by their bits, and where each is found."""

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        super().__init__(shape, dtype)
        self.slots = np.full(FEWEST_SLOTS, EMPTY, np.int32)

    def number(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Contiguous rows [n, *shape]: [n] int32 numbers by first sight, [new] int64 whose are new.

        Those are appended. Sums over rows by their number are the same for the same rows.
        """
        self._make_room(self.used + len(rows))
        codes, fresh = np.empty(len(rows), np.int32), np.empty(len(rows), np.int64)
        words, known = _words(rows), _words(self.values)
        count = _kernels().number_rows(words, known, self.used, self.slots, codes, fresh)
        self.append(rows[fresh[:count]])
        return codes, fresh[:count]

    def forget(self) -> None:
        """Number from 0 again, in the same memory."""
        self.used = 0
        self.slots.fill(EMPTY)

    def select(self, index: np.ndarray) -> None:
        """Keep the rows at these places, in this order, under new numbers."""
        super().select(index)
        self._find_again(_slots_for(len(index), FEWEST_SLOTS))

    def allocated_with(self, rows: int) -> int:
        """Bytes allocated once that many rows are in, if none of them is known."""
        slots = _slots_for(self.used + rows, len(self.slots))
        return super().allocated_with(rows) + 4 * slots

    @property
    def nbytes(self) -> int:
        """Bytes allocated: rows, and where they are found."""
        return super().nbytes + int(self.slots.nbytes)

    def _make_room(self, most: int) -> None:
        slots = _slots_for(most, len(self.slots))
        if slots > len(self.slots):
            self._find_again(slots)

    def _find_again(self, slots: int) -> None:
        self.slots = np.full(slots, EMPTY, np.int32)
        _kernels().find_slots(_words(self.values), self.used, self.slots)


class RepeatedRows(GrowingArray):
    """`codes` [capacity] int32 name rows of `book` [distinct, *shape]; `values` are the codes."""

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        super().__init__((), np.int32)
        self.book = DistinctRows(shape, dtype)

    def append(self, rows: np.ndarray) -> None:
        """Add rows [n, *shape] at the end."""
        codes, _ = self.book.number(np.ascontiguousarray(rows, self.book.dtype))
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

    def allocated_with(self, rows: int) -> int:
        """Bytes allocated once that many rows are in, if none of them is known."""
        return super().allocated_with(rows) + self.book.allocated_with(rows)

    def content_bytes(self, rows: int) -> int:
        """Bytes that this many of the valid rows take, with their share of what all name."""
        shared = self.book.used_bytes + int(self.book.slots.nbytes)
        return super().content_bytes(rows) + shared * rows // max(1, self.used)

    @property
    def nbytes(self) -> int:
        """Bytes allocated: codes, distinct rows, and where those are found."""
        return super().nbytes + self.book.nbytes


class RowNumbers(DistinctRows):
    """Numbers of rows that lie in several arrays."""

    def __init__(self, row_bytes: int) -> None:
        super().__init__((-(-row_bytes // WORD_BYTES),), np.uint64)

    def of(self, *columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows [B, ...] of several arrays: [B] int32 numbers, [D] int64 the places of new ones."""
        words = np.zeros((len(columns[0]), *self.shape), np.uint64)
        rows, at = words.view(np.uint8), 0
        for column in columns:
            flat = np.ascontiguousarray(column).reshape(len(column), math.prod(column.shape[1:]))
            part = flat.view(np.uint8)
            rows[:, at : at + part.shape[1]] = part
            at += part.shape[1]
        return self.number(words)


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
