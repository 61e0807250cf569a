"""`delta`: rows as what differs from a reference row, with random access; see `delta_kernels`.

An environment's reference is its first row; where a row differs in more than a quarter, it becomes
the reference of those after it.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np

from frugal_rl.observation.growing_array import GrowingArray
from frugal_rl.store.delta_kernels import append_delta, most_units, read_delta
from frugal_rl.store.pool import PooledColumn

if TYPE_CHECKING:
    from frugal_rl.store.column_spec import ColumnSpec

NEW_REFERENCE_SHARE = 0.25


class DeltaColumn(PooledColumn):
    """Rows against interned references.

    references    [R, W] uint64
    reference_of  [lead + T, N] int32
    rollout       counts the rollouts, as references are forgotten between them
    """

    def __init__(self, spec: ColumnSpec, steps: int, num_envs: int) -> None:
        super().__init__(spec, steps, num_envs)
        self.reference_of = np.zeros(self.starts.shape, np.int32)
        self.references = GrowingArray((self._row_bytes // 8,), np.uint64)
        self.references.append(np.zeros((num_envs, self._row_bytes // 8), np.uint64))
        self.rollout = 0
        self._current = np.zeros(num_envs, np.int32)
        self._ids: dict[bytes, int] = {}
        bitmaps = -(-self._row_bytes // 2 // 64)
        self._scratch = np.zeros(bitmaps, np.uint64)
        self._sizes = np.zeros(num_envs, np.int64)

    def _begin(self, words: np.ndarray) -> None:
        """Forget all references but those in use; at first, take each environment's first row."""
        kept = self.references.values[self._current] if self._ids else words
        self._ids = {}
        self.references.used = 0
        self.rollout += 1
        for n, row in enumerate(kept.copy()):
            self._current[n] = self._intern(row)

    def _intern(self, row: np.ndarray) -> int:
        key = blake2b(row.data, digest_size=16).digest()
        if key not in self._ids:
            self._ids[key] = self.references.used
            self.references.append(row[None])
        return self._ids[key]

    def _append(self, at: int, words: np.ndarray) -> None:
        self.reference_of[at] = self._current
        done = 0
        while done < self.num_envs:
            done, self.pool.used = append_delta(
                words,
                self.references.values,
                self._current,
                self._scratch,
                self.pool.units,
                self.pool.words,
                self.pool.used,
                self.starts[at],
                self._sizes,
                done,
            )
            if done < self.num_envs:  # full: room for the worst that the rest may need
                worst = most_units(words.shape[1], len(self._scratch))
                self.pool.reserve((self.num_envs - done) * worst)
        for n in np.flatnonzero(self._sizes > NEW_REFERENCE_SHARE * words.shape[1] * 4):
            self._current[n] = self._intern(words[n].copy())

    def _read(self, steps: np.ndarray, n: np.ndarray, out: np.ndarray) -> None:
        read_delta(
            self.pool.units,
            self.pool.words,
            self.starts,
            self.reference_of,
            self.references.values,
            len(self._scratch),
            steps,
            n,
            out,
            out.view(np.uint16),
        )

    @property
    def bitmaps(self) -> int:
        """Bitmaps of 64 units that a row has room for."""
        return len(self._scratch)

    def arrays(self) -> list[np.ndarray]:
        """Pool, starts, references."""
        return [*super().arrays(), self.reference_of, self.references.values]
