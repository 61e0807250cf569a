"""The engine's own order of the parameters: each matrix that is multiplied lies in one piece."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from torch import Tensor

from frugal_rl.learn.compiled import tiles
from frugal_rl.learn.optimizer import ALIGNMENT

ALL = slice(None)
NOWHERE = -1
FROM, TO, LENGTH = range(3)
"""Columns of runs: places in the flat and in the packed parameters, and how many follow."""
OWN, OUTPUTS, INPUTS, PLACE = range(4)
"""Columns of turns: a matrix's place in the packed parameters, its sizes, its place turned."""
Weights = tuple[np.ndarray, np.ndarray]
"""Parameters [P] float32 in the engine's order, and [W] those of turned matrices."""


class Packing:
    """Gives places in the packed parameters; `places` has the starts in the flat ones, by id.

    runs    int64 [r, 3] of parameters that follow each other
    turns   int64 [m, 4] of matrices that are kept as [inputs, outputs] as well, for tiles
    sizes   P and W
    """

    def __init__(self, places: dict[int, int]) -> None:
        self.places = places
        self._runs: list[tuple[int, int, int]] = []
        self._turns: list[tuple[int, int, int, int]] = []
        self.sizes = [0, 0]

    @property
    def runs(self) -> np.ndarray:
        """Of all that were given places."""
        return np.array(self._runs, np.int64).reshape(-1, 3)

    @property
    def turns(self) -> np.ndarray:
        """Of all matrices whose products are computed in tiles."""
        return np.array(self._turns, np.int64).reshape(-1, 4)

    def matrix(self, weight: Tensor, columns: slice = ALL) -> tuple[int, int]:
        """Some columns of a weight [outputs, inputs]; where they begin, and turned, or -1."""
        return self.stacked([weight], columns)

    def stacked(self, weights: Sequence[Tensor], columns: slice) -> tuple[int, int]:
        """The same columns of several weights, one below the other."""
        matrix = np.concatenate([self._of(w)[:, columns] for w in weights])
        own, (outputs, inputs) = self._own(matrix.ravel()), matrix.shape
        if not tiles.suit(outputs, inputs):
            return own, NOWHERE
        turned = self._room(1, matrix.size)
        self._turns.append((own, outputs, inputs, turned))
        return own, turned

    def vector(self, parameter: Tensor) -> int:
        """All of a parameter; where it begins."""
        return self._own(self._of(parameter).ravel())

    def zeros(self, count: int) -> int:
        """Zeros that nothing changes; where they begin."""
        return self._room(0, count)

    def _of(self, parameter: Tensor) -> np.ndarray:
        count = parameter.numel()
        return (self.places[id(parameter)] + np.arange(count)).reshape(parameter.shape)

    def _own(self, piece: np.ndarray) -> int:
        """Room for the parameters at these places in the flat ones."""
        start = self._room(0, len(piece))
        ends = np.flatnonzero(np.diff(piece) != 1) + 1
        for run in np.split(np.arange(len(piece)), ends):
            if len(run):
                self._runs.append((int(piece[run[0]]), start + int(run[0]), len(run)))
        return start

    def _room(self, which: int, count: int) -> int:
        """The next cache lines."""
        start = self.sizes[which]
        self.sizes[which] += count + -count % ALIGNMENT
        return start
