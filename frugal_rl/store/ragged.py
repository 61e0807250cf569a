"""`ragged`: rows without the zeros at their end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit

from frugal_rl.store.pool import PooledColumn

if TYPE_CHECKING:
    from frugal_rl.store.column_spec import ColumnSpec


class RaggedColumn(PooledColumn):
    """Rows up to their last word that is not zero.

    lengths  [lead + T, N] int32   words kept of each row
    """

    def __init__(self, spec: ColumnSpec, steps: int, num_envs: int) -> None:
        super().__init__(spec, steps, num_envs)
        self.lengths = np.zeros(self.starts.shape, np.int32)

    def _begin(self, words: np.ndarray) -> None:
        pass

    def _append(self, at: int, words: np.ndarray) -> None:
        measure_ragged(words, self.lengths[at])
        self.pool.reserve(4 * int(self.lengths[at].sum()))
        self.pool.used = append_ragged(
            words, self.lengths[at], self.pool.units, self.pool.used, self.starts[at]
        )

    def _read(self, steps: np.ndarray, n: np.ndarray, out: np.ndarray) -> None:
        read_ragged(self.pool.units, self.starts, self.lengths, steps, n, out.view(np.uint16))

    def arrays(self) -> list[np.ndarray]:
        """Pool, starts and lengths."""
        return [*super().arrays(), self.lengths]


@njit(cache=True)
def measure_ragged(words: Any, lengths: Any) -> None:
    """Words of each row of words [N, W] up to the last that is not zero, into lengths [N]."""
    for n in range(words.shape[0]):
        length = words.shape[1]
        while length > 0 and words[n, length - 1] == 0:
            length -= 1
        lengths[n] = length


@njit(cache=True)
def append_ragged(words: Any, lengths: Any, units: Any, used: int, starts: Any) -> int:
    """The first lengths [N] words of words [N, W] to the end of units; starts [N] are set.

    Returns the units in use.
    """
    for n in range(words.shape[0]):
        starts[n] = used
        for w in range(lengths[n]):
            word = words[n, w]
            for q in range(4):
                units[used] = word >> np.uint64(16 * q)
                used += 1
    return used


@njit(cache=True)
def read_ragged(units: Any, starts: Any, lengths: Any, steps: Any, n: Any, out: Any) -> None:
    """Rows (steps[b, j], n[b]) and the zeros behind them into out [B, k, 4 W] uint16."""
    for b in range(steps.shape[0]):
        for j in range(steps.shape[1]):
            at = steps[b, j]
            length = 0
            if at >= 0:
                start = starts[at, n[b]]
                length = 4 * lengths[at, n[b]]
                out[b, j, :length] = units[start : start + length]
            out[b, j, length:] = 0
