"""Arrays that grow at their end: what the columns of a static table lie in."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

GROWTH = 1.5
"""By how much an array grows when it is full; twice would leave up to half of it unused."""


def capacity_for(need: int, capacity: int) -> int:
    """Rows that an arena of `capacity` rows has room for once it holds `need` of them."""
    return capacity if need <= capacity else max(need, int(GROWTH * capacity))


@dataclass
class GrowingArray:
    """One array that grows by half; rows [0, used) are valid.

    values   [capacity, *shape]
    version  changes when rows that were valid are no longer what they were
    """

    shape: tuple[int, ...]
    dtype: Any
    values: np.ndarray = field(init=False)
    used: int = 0
    version: int = 0

    def __post_init__(self) -> None:
        self.values = np.zeros((0, *self.shape), self.dtype)

    def append(self, rows: np.ndarray) -> None:
        """Add rows [n, *shape] at the end; the array may move."""
        need = self.used + len(rows)
        self._grow_to(capacity_for(need, len(self.values)))
        self.values[self.used : need] = rows
        self.used = need

    def reserve(self, rows: int) -> None:
        """Take room for that many more rows now."""
        self._grow_to(self.used + rows)

    def _grow_to(self, capacity: int) -> None:
        """Let the array have at least so many rows."""
        if capacity > len(self.values):
            grown = np.zeros((capacity, *self.shape), self.dtype)
            grown[: self.used] = self.values[: self.used]
            self.values = grown

    def read(self, first: int, end: int) -> np.ndarray:
        """Rows [end - first, *shape]; a view."""
        return self.values[first:end]

    def select(self, index: np.ndarray) -> None:
        """Keep the rows at these places, in this order, and give the rest of the memory back."""
        self.values = self.values[index]
        self.used = len(index)
        self.version += 1

    def clear(self) -> None:
        """Forget all rows and give the memory back."""
        self.select(np.zeros(0, np.int64))

    def trim(self) -> None:
        """Give back the memory that no valid row takes."""
        self.values = self.values[: self.used].copy()

    def allocated_with(self, rows: int) -> int:
        """Bytes allocated once that many more rows are in."""
        return capacity_for(self.used + rows, len(self.values)) * self.row_bytes

    def content_bytes(self, rows: int) -> int:
        """Bytes that this many of the valid rows take."""
        return rows * self.row_bytes

    @property
    def used_bytes(self) -> int:
        """Bytes of valid rows."""
        return self.content_bytes(self.used)

    @property
    def row_bytes(self) -> int:
        """Bytes of one row."""
        return math.prod(self.shape) * int(np.dtype(self.dtype).itemsize)

    @property
    def nbytes(self) -> int:
        """Bytes allocated, unused capacity included."""
        return int(self.values.nbytes)
