"""`depth` and `log`: flags that fill each column from its beginning, by counts or by history.

An open pit is the example: blocks [Z, Y, X] are dug from the top of each column, one block per
step, so that depths [Y, X] tell all of it, and so does the list of columns in order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numba import njit

from frugal_rl.errors import EncodingError
from frugal_rl.observation.codecs.codec import Codec
from frugal_rl.observation.codecs.quantised import smallest_integer
from frugal_rl.observation.spec import EPISODE


@dataclass(frozen=True)
class DepthCodec(Codec):
    """Flags [length, *columns], each column set from its beginning: how many are. Lossless."""

    length: int
    columns: tuple[int, ...]
    name: ClassVar[str] = "depth"
    twin: ClassVar[str] = "frugal_rl.observation.codecs.torch_halves:depth"

    def stored(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[tuple[int, ...], Any]:
        """[length, *columns] becomes [*columns] of the smallest type."""
        return self.columns, smallest_integer(0, self.length)

    def encode(self, values: np.ndarray) -> np.ndarray:
        """[..., length, *columns] bool or 0/1 -> counts [..., *columns]; refuses gaps."""
        axis = values.ndim - len(self.columns) - 1
        counts = values.sum(axis, dtype=smallest_integer(0, self.length))
        if not np.array_equal(self.decode(counts), values.astype(np.bool_, copy=False)):
            raise EncodingError(
                "A column of flags is not filled from its beginning, so that its count does not "
                "tell it. Keep this field as bits."
            )
        return np.asarray(counts)

    def decode(self, stored: np.ndarray) -> np.ndarray:
        """Counts [..., *columns] -> [..., length, *columns] bool."""
        level = np.arange(self.length).reshape(-1, *(1 for _ in self.columns))
        axis = stored.ndim - len(self.columns)
        return np.asarray(level < np.expand_dims(stored, axis))


@dataclass(frozen=True)
class LogCodec(Codec):
    """Counts [*columns] by the list of columns that grew, one per step. Lossless.

    The stored row is the number of the column that this step added one to, plus 1; 0 where none
    grew. Decoding counts them over the episode. With `length`, flags [length, *columns] are
    decoded as `DepthCodec` does.
    """

    columns: tuple[int, ...]
    length: int = 0
    name: ClassVar[str] = "log"
    twin: ClassVar[str] = "frugal_rl.observation.codecs.torch_halves:log"
    window: ClassVar[int] = EPISODE

    def stored(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[tuple[int, ...], Any]:
        """One number per step, of the smallest type."""
        return (1,), smallest_integer(0, math.prod(self.columns))

    def encode(self, values: np.ndarray) -> np.ndarray:
        """Column numbers [...] (-1 where none grew) -> rows [..., 1]."""
        _, dtype = self.stored((), np.dtype(np.int64))
        return (values[..., None].astype(np.int64) + 1).astype(dtype)

    def decode(self, stored: np.ndarray) -> np.ndarray:
        """The episode's rows [..., S, 1] -> [..., *columns], or [..., length, *columns] flags."""
        batch = stored.shape[:-2]
        log = np.ascontiguousarray(stored).reshape(-1, stored.shape[-2])
        kind = smallest_integer(0, self.length or stored.shape[-2])
        counts = np.zeros((len(log), math.prod(self.columns)), kind)
        count_columns(log, counts)
        counts = counts.reshape(*batch, *self.columns)
        return DepthCodec(self.length, self.columns).decode(counts) if self.length else counts


@njit(cache=True)
def count_columns(log: Any, counts: Any) -> None:
    """Count log [M, S], column + 1, zeros aside; counts [M, C] are added to."""
    for m in range(log.shape[0]):
        for s in range(log.shape[1]):
            if log[m, s] > 0:
                counts[m, log[m, s] - 1] += 1
