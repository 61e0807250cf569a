"""Observations of a minibatch that are gathered when they are read, or not at all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from frugal_rl.store.columns import ArrayColumn

if TYPE_CHECKING:
    from torch import Tensor

    from frugal_rl.store.rollout import RolloutBuffer


class DrawnRows(Mapping[str, Any]):
    """Rows [B, ...] of samples (t[b], n[b]) in policy form, by name.

    Whoever can read rows where they lie asks for `stored` and spares the copy.
    """

    def __init__(self, rollout: RolloutBuffer, t: np.ndarray, n: np.ndarray) -> None:
        self._rollout, self._t, self._n = rollout, t, n
        self._age = rollout.ages_at(t, n)
        self._gathered: dict[str, Tensor] = {}

    @cached_property
    def at(self) -> np.ndarray:
        """[B] int64: the places of the samples' rows in `stored`."""
        at: np.ndarray = self._t * self._rollout.n_envs + self._n
        return at

    def stored(self, name: str) -> np.ndarray | None:
        """All rows [T * N, *shape] of a column, where each sample shows one of them; else None."""
        column = self._rollout.columns[name]
        if not isinstance(column, ArrayColumn) or column.flattened or column.spec.window != 1:
            return None
        return column.values.reshape(-1, *column.spec.shape)

    def __getitem__(self, name: str) -> Tensor:
        if name not in self._gathered:
            self._gathered[name] = self._rollout.gathered(name, self._t, self._n, self._age)
        return self._gathered[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rollout.columns)

    def __len__(self) -> int:
        return len(self._rollout.columns)
