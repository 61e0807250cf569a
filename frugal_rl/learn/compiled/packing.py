"""The engine's own order of the parameters: each matrix that is multiplied lies in one piece."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from torch import Tensor

from frugal_rl.learn.optimizer import ALIGNMENT

ALL = slice(None)


class Packing:
    """Gives places in the packed parameters; `places` has the starts in the flat ones, by id."""

    def __init__(self, places: dict[int, int]) -> None:
        self.places = places
        self.pieces: list[np.ndarray] = []
        self.size = 0

    def matrix(self, weight: Tensor, columns: slice = ALL) -> int:
        """Some columns of a weight [outputs, inputs]; where they begin."""
        return self.stacked([weight], columns)

    def stacked(self, weights: Sequence[Tensor], columns: slice) -> int:
        """The same columns of several weights, one below the other."""
        return self._add(np.concatenate([self._of(w)[:, columns].ravel() for w in weights]))

    def vector(self, parameter: Tensor) -> int:
        """All of a parameter; where it begins."""
        return self._add(self._of(parameter).ravel())

    def zeros(self, count: int) -> int:
        """Zeros that nothing changes; where they begin."""
        return self._add(np.full(count, -1))

    def order(self) -> np.ndarray:
        """[P] int64 the place of each in the flat parameters, -1 for none."""
        return np.concatenate(self.pieces).astype(np.int64)

    def _of(self, parameter: Tensor) -> np.ndarray:
        count = parameter.numel()
        return (self.places[id(parameter)] + np.arange(count)).reshape(parameter.shape)

    def _add(self, piece: np.ndarray) -> int:
        start = self.size
        self.pieces += [piece, np.full(-len(piece) % ALIGNMENT, -1)]
        self.size += len(piece) + len(self.pieces[-1])
        return start
