"""Rows that come again: each distinct one once, found by its content."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from frugal_rl.store.found.plain import Plain
from frugal_rl.store.found.row_kernels import same_words

FIRST_SLOTS = 64


class Interned(Plain):
    """A table of distinct rows; handles are places in it.

    slots  [S] int32   open addressing by content: 1 + a place in `rows`, 0 where free; S > 2 R
    """

    name = "distinct rows"

    def __init__(self, num_envs: int, words: int) -> None:
        super().__init__(num_envs, words)
        self.slots = np.zeros(FIRST_SLOTS, np.int32)

    def append(self, rows: np.ndarray, env: np.ndarray, handles: np.ndarray) -> None:
        """Look rows up; add those that are new."""
        self.reserve(len(rows))
        if 2 * (self.used + len(rows)) >= len(self.slots):
            self._widen(self.used + len(rows))
        self.used = intern_rows(rows, self.rows, self.used, self.slots, handles)

    def _widen(self, need: int) -> None:
        """More slots, with every row put in anew."""
        self.slots = np.zeros(1 << (3 * need).bit_length(), np.int32)
        known = self.rows[: self.used]
        intern_rows(known, known, 0, self.slots, np.zeros(len(known), np.int64))

    def clear(self) -> None:
        """Forget all rows."""
        self.used = 0
        self.slots[:] = 0

    @property
    def used_bytes(self) -> int:
        """Bytes of the distinct rows and of their part of the slots."""
        return super().used_bytes + 12 * self.used

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return super().nbytes + int(self.slots.nbytes)


@njit(cache=True)
def intern_rows(rows: Any, table: Any, used: int, slots: Any, handles: Any) -> int:
    """Places of rows [B, W] in the table, which has room for all; returns the rows in use."""
    mask = np.uint64(slots.shape[0] - 1)
    for b in range(rows.shape[0]):
        slot = row_hash(rows[b]) & mask
        while slots[slot] != 0 and not same_words(table[slots[slot] - 1], rows[b]):
            slot = (slot + np.uint64(1)) & mask
        if slots[slot] == 0:
            table[used] = rows[b]
            used += 1
            slots[slot] = used
        handles[b] = slots[slot] - 1
    return used


@njit(cache=True)
def row_hash(row: Any) -> Any:
    """64 bits that depend on every bit of a row [W] uint64."""
    found = np.uint64(0x9E3779B97F4A7C15)
    for word in row:
        found = (found ^ word) * np.uint64(0xD6E8FEB86659FD93)
        found ^= found >> np.uint64(32)
    return found
