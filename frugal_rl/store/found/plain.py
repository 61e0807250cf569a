"""Rows as they are: the parts of a stack in which nothing else repeats."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from frugal_rl.store.found.rows import Rows

GROWTH = 1.08


class Plain(Rows):
    """Rows [capacity, W] uint64, one behind the other; handles are places."""

    name = "as they are"

    def __init__(self, num_envs: int, words: int) -> None:
        self.rows = np.zeros((0, words), np.uint64)
        self.used = 0

    def append(self, rows: np.ndarray, env: np.ndarray, handles: np.ndarray) -> None:
        """Copy rows to the end."""
        self.reserve(len(rows))
        end = self.used + len(rows)
        self.rows[self.used : end] = rows
        handles[:] = np.arange(self.used, end)
        self.used = end

    def reserve(self, rows: int) -> None:
        """Make room for some more rows."""
        end = self.used + rows
        if end > len(self.rows):
            wanted = max(end, int(GROWTH * len(self.rows)))
            self.rows.resize((wanted, self.rows.shape[1]), refcheck=False)

    def read(self, handles: np.ndarray, out: np.ndarray, env: np.ndarray | None = None) -> None:
        """Rows by their place."""
        copy_rows(self.rows, handles, out)

    def clear(self) -> None:
        """Forget all rows."""
        self.used = 0

    def trim(self) -> None:
        """Give unused rows back."""
        self.rows.resize((self.used, self.rows.shape[1]), refcheck=False)

    @property
    def end(self) -> int:
        """A number above every handle."""
        return self.used

    @property
    def used_bytes(self) -> int:
        """Bytes of the rows."""
        return int(self.used * self.rows.shape[1] * self.rows.itemsize)

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return int(self.rows.nbytes)


@njit(cache=True)
def copy_rows(table: Any, handles: Any, out: Any) -> None:
    """Rows of handles [B, k] into out [B, k, W]; zeros where a handle is -1."""
    for b in range(handles.shape[0]):
        for j in range(handles.shape[1]):
            if handles[b, j] < 0:
                out[b, j] = 0
            else:
                out[b, j] = table[handles[b, j]]
