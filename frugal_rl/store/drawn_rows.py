"""A minibatch whose observations are gathered when they are read, or not at all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from frugal_rl.store.columns import ArrayColumn
from frugal_rl.store.kernels import draw

if TYPE_CHECKING:
    from torch import Tensor

    from frugal_rl.store.rollout import RolloutBuffer


SAMPLE_BYTES, ACTION_BYTES = 24, 4
"""Of a drawn sample's place and four numbers, and of each number of its action."""


class DrawnRows(Mapping[str, Any]):
    """Rows [B, ...] of the samples at `at` [B] int64 of T * N, in policy form, by name.

    Whoever can read rows where they lie asks for `stored` and spares the copy.
    """

    def __init__(self, rollout: RolloutBuffer, at: np.ndarray) -> None:
        self._rollout, self.at = rollout, at
        self._gathered: dict[str, Tensor] = {}

    @cached_property
    def _when(self) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Step, environment and, where ages are kept, steps since the episode began."""
        t, n = np.divmod(self.at, self._rollout.n_envs)
        return t, n, self._rollout.ages_at(t, n)

    def stored(self, name: str) -> np.ndarray | None:
        """All rows [T * N, *shape] of a column, where each sample shows one of them; else None."""
        column = self._rollout.columns[name]
        if not isinstance(column, ArrayColumn) or column.flattened or column.spec.window != 1:
            return None
        return column.values.reshape(-1, *column.spec.shape)

    def __getitem__(self, name: str) -> Tensor:
        if name not in self._gathered:
            self._gathered[name] = self._rollout.gathered(name, *self._when)
        return self._gathered[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rollout.columns)

    def __len__(self) -> int:
        return len(self._rollout.columns)


class DrawnSamples(NamedTuple):
    """What is learned from.

    observations  rows [B, ...] by name
    actions       [B, a] float32
    scalars       [4, B] float32: old log-probabilities and values, advantages, returns
    """

    observations: Mapping[str, Any]
    actions: np.ndarray
    scalars: np.ndarray


@dataclass(frozen=True)
class DrawnTogether:
    """M minibatches of B samples each.

    at       [M, B] int64: places among T * N; rows [M * B, ...] by name are those of all
    actions  [M, B, a] float32
    scalars  [M, 4, B] float32: as those of `DrawnSamples`
    """

    rollout: RolloutBuffer
    at: np.ndarray
    actions: np.ndarray
    scalars: np.ndarray

    @property
    def rows(self) -> DrawnRows:
        """Of all samples, the first minibatch's first."""
        return DrawnRows(self.rollout, self.at.reshape(-1))

    def apart(self) -> Iterator[DrawnSamples]:
        """One after the other; none keeps what another one gathered."""
        rows = (DrawnRows(self.rollout, places) for places in self.at)
        return map(DrawnSamples, rows, self.actions, self.scalars)


def drawn_together(rollout: RolloutBuffer, indices: np.ndarray) -> DrawnTogether:
    """Minibatches by env-major indices [M, B], index = n * T + t."""
    count, size = indices.shape
    at, scalars = np.empty((count, size), np.int64), np.empty((count, 4, size), np.float32)
    actions = np.empty((count, size, rollout.action_dim), np.float32)
    kept = (rollout.log_probs, rollout.values, rollout.advantages, rollout.returns)
    draw(indices, *kept, rollout.actions, at, scalars, actions)
    return DrawnTogether(rollout, at, actions, scalars)
