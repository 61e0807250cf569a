"""Rows of varying length, one behind the other, in memory that is kept between rollouts."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from frugal_rl.observation.aligned import WORD_BYTES
from frugal_rl.observation.fields import EPISODE, Padding
from frugal_rl.store.columns import Column, newest

if TYPE_CHECKING:
    from frugal_rl.store.column_spec import ColumnSpec

UNIT = np.dtype(np.uint16)
"""Pools count in units of two bytes: one line of an 8 x 8 tile in 2-bit pixels."""
GROWTH = 1.25


class Pool:
    """Units [capacity]; the first `used` belong to rows."""

    def __init__(self, capacity: int) -> None:
        self.units = np.zeros(capacity, UNIT)
        self.used = 0

    def reserve(self, units: int) -> None:
        """Make room for some more units; grows in place where the allocator can."""
        need = self.used + units
        if need > len(self.units):
            wanted = max(need, int(len(self.units) * GROWTH))
            self.units.resize(-(-wanted // 4) * 4, refcheck=False)

    @property
    def words(self) -> np.ndarray:
        """The same memory as 64-bit words."""
        return self.units.view(np.uint64)


class PooledColumn(Column):
    """A column whose rows have a length of their own.

    starts  [lead + T, N] int64   where each row begins in the pool
    """

    def __init__(self, spec: ColumnSpec, steps: int, num_envs: int) -> None:
        self.spec = spec
        self.num_envs = num_envs
        self.pool = Pool(spec.pool_units(steps, num_envs))
        self.starts = np.zeros((spec.lead + steps, num_envs), np.int64)
        self._row_bytes = spec.padded_bytes

    def write(self, t: int, shown: np.ndarray, age: np.ndarray | None) -> None:
        """Append the newest rows; step 0 begins the pool anew, with the past that windows need."""
        lead = self.spec.lead
        if t == 0:
            self.pool.used = 0
            self._begin(self._words(newest(self.spec, shown, age)))
            for back in range(lead, 0, -1):
                self._append(lead - back, self._words(self._past(shown, age, back)))
        self._append(lead + t, self._words(newest(self.spec, shown, age)))

    def _past(self, shown: np.ndarray, age: np.ndarray | None, back: int) -> np.ndarray:
        """The rows [N, *shape] that are `back` steps older than the newest."""
        if self.spec.window != EPISODE:
            return np.asarray(shown[:, -1 - back])
        assert age is not None
        return np.asarray(shown[np.arange(self.num_envs), np.maximum(age - back, 0)])

    def _words(self, rows: np.ndarray) -> np.ndarray:
        """Rows [N, *shape] as 64-bit words [N, W]; copied only if they are not whole words."""
        flat = np.ascontiguousarray(rows).reshape(len(rows), -1).view(np.uint8)
        missing = self._row_bytes - flat.shape[1]
        return (np.pad(flat, ((0, 0), (0, missing))) if missing else flat).view(np.uint64)

    def gather(
        self, t: np.ndarray, n: np.ndarray, age: np.ndarray | None, out: np.ndarray | None
    ) -> np.ndarray:
        """Rows or windows of the samples at their full size, written into `out`."""
        spec = self.spec
        if out is None:
            out = np.empty((len(t), *spec.shown()), spec.dtype)
        windows = len(t), spec.lead + 1
        steps = self.steps_of(t, age)
        if spec.row_bytes == self._row_bytes:
            self._read(steps, n, out.reshape(*windows, -1).view(np.uint64))
            return out
        words = np.empty((*windows, self._row_bytes // WORD_BYTES), np.uint64)
        self._read(steps, n, words)
        flat = words.view(np.uint8)[..., : spec.row_bytes]
        out.reshape(*windows, -1).view(np.uint8)[...] = flat
        return out

    def steps_of(self, t: np.ndarray, age: np.ndarray | None) -> np.ndarray:
        """[B, k] the stored step of each row of a window, -1 where it shows zeros."""
        spec = self.spec
        last = spec.lead + np.asarray(t)[:, None]
        if spec.window == 1:
            return last
        assert age is not None
        back, ages = np.arange(spec.lead, -1, -1), np.asarray(age)[:, None]
        if spec.window == EPISODE:
            at = last - ages + np.arange(spec.lead + 1)
            return np.where(at <= last, at, -1)
        if spec.padding is Padding.repeat:
            return np.asarray(last - np.minimum(back, ages))
        return np.where(back <= ages, last - back, -1)

    @abstractmethod
    def _begin(self, words: np.ndarray) -> None:
        """A rollout begins; `words` [N, W] are its first rows."""

    @abstractmethod
    def _append(self, at: int, words: np.ndarray) -> None:
        """Add rows [N, W] as step `at` of `starts`."""

    @abstractmethod
    def _read(self, steps: np.ndarray, n: np.ndarray, out: np.ndarray) -> None:
        """Rows (steps[b, j], n[b]) into out [B, k, W]."""

    @property
    def nbytes(self) -> int:
        """Bytes allocated, unused room in the pool included."""
        return sum(int(a.nbytes) for a in self.arrays())

    def arrays(self) -> list[np.ndarray]:
        """All arrays of the column."""
        return [self.pool.units, self.starts]
