"""Rows by handle: what a found column keeps its rows, or the newest parts of its stacks, in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from frugal_rl.observation.aligned import WORD_BYTES
from frugal_rl.store.found.row_kernels import turn_pictures

TURNED_BYTES = 1 << 18
"""Bytes of pictures that are turned at once."""
MOST_ROOM = 1.5
"""A full rollout's rows may lie in the room of one that was so many times as large."""


class Rows(ABC):
    """Rows of W 64-bit words, each given back bit for bit under the handle that `append` told."""

    name: str
    weight = 1.0
    """By how much its bytes count more than those of a faster form."""
    largest_bytes = 0
    """Used by the largest full rollout since room was given back."""

    @abstractmethod
    def __init__(self, num_envs: int, words: int) -> None: ...

    def __setstate__(self, kept: dict[str, Any]) -> None:
        for name, value in kept.items():
            borrows = isinstance(value, np.ndarray) and not value.flags.owndata
            setattr(self, name, value.copy() if borrows else value)  # a pickle's cannot grow

    @abstractmethod
    def append(self, rows: np.ndarray, env: np.ndarray, handles: np.ndarray) -> None:
        """Keep rows [B, W] uint64 of environments [B]; handles [B] int64 are set."""

    @abstractmethod
    def read(self, handles: np.ndarray, out: np.ndarray, env: np.ndarray | None = None) -> None:
        """Rows of handles [B, k] into contiguous out [B, k, W] uint64; zeros where one is -1.

        env [B] tells whose rows they are: those that rest on each other are read together.
        """

    def read_turned(self, handles: np.ndarray, env: np.ndarray, out: np.ndarray) -> None:
        """Pictures of P pixels of three bytes, of handles [B, 1], as planes out [B, 3, P] uint8.

        A few at a time, so that they are turned while they lie in the cache.
        """
        words = row_words(3 * out.shape[2])
        at_once = max(1, TURNED_BYTES // (WORD_BYTES * words))
        lying = np.empty((min(at_once, len(out)), 1, words), np.uint64)
        for first in range(0, len(out), at_once):
            here = slice(first, first + at_once)
            rows = lying[: len(out[here])]
            self.read(handles[here], rows, env[here])
            turn_pictures(rows[:, 0].view(np.uint8), out[here])

    @abstractmethod
    def clear(self) -> None:
        """Forget all rows; memory is kept."""

    def rest(self) -> None:  # noqa: B027 - most keep nothing of that kind
        """No row comes before `clear`: give back what only adding needs."""

    def end_rollout(self) -> None:
        """No row comes before `clear`: room that a larger rollout took is given back as well."""
        self.rest()
        used = self.used_bytes
        if self.largest_bytes > MOST_ROOM * used:
            self.trim()
            self.largest_bytes = 0
        self.largest_bytes = max(self.largest_bytes, used)

    @abstractmethod
    def trim(self) -> None:
        """Give back the memory that no row of now takes."""

    @property
    @abstractmethod
    def end(self) -> int:
        """A number above every handle that was told since `clear`."""

    @property
    @abstractmethod
    def used_bytes(self) -> int:
        """Bytes that the rows of now take."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes allocated."""


def reading_order(handles: np.ndarray, env: np.ndarray | None, end: int) -> np.ndarray:
    """Places of handles [B, k] below `end`, flattened: by environment, each one's as they came."""
    if env is None:
        return np.arange(handles.size)
    keys = handles + (env * (end + 1))[:, None]  # -1 is a handle, too
    order: np.ndarray = keys.argsort(axis=None)
    return order


class Handles:
    """Integers [T, N] in the smallest unsigned type of at least 16 bits that holds them."""

    def __init__(self, steps: int, num_envs: int) -> None:
        self.values = np.zeros((steps, num_envs), np.uint16)

        self._most = 1 << 16

    def put(self, t: int, handles: np.ndarray, end: int) -> None:
        """Keep step t, after a change to the next wider type where numbers below `end` need it."""
        if end > self._most:
            self.values = self.values.astype(np.min_scalar_type(end - 1))
            self._most = 1 << 8 * self.values.itemsize
        self.values[t] = handles

    def trim(self, steps: int) -> None:
        """Keep the first steps only."""
        self.values = self.values[:steps].copy()

    def at(self, t: np.ndarray, n: np.ndarray) -> np.ndarray:
        """Handles [B] int64."""
        handles: np.ndarray = self.values[t, n].astype(np.int64)
        return handles

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return int(self.values.nbytes)


def row_words(row_bytes: int) -> int:
    """Words of a row, filled up to whole ones."""
    return -(-row_bytes // WORD_BYTES)
