"""Rollout observations of any training loop: written by step, read by index, kept small."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from frugal_rl.errors import ConfigError
from frugal_rl.store.column_spec import ColumnSpec
from frugal_rl.store.found.column import FoundColumn


class FoundArray:
    """Stands where `numpy.zeros((steps, num_envs, *shape), dtype)` stood.

    `store[step] = rows` keeps the rows [N, ...] of one step, in the order of steps; 0 begins a
    new rollout. `store[steps, envs]` and `store.flat[indices]` give new arrays of single rows, as
    they were written; `flat` counts step-major, index = step * num_envs + env.

    Example:
        >>> store = FoundArray(2, 3, spaces.Box(0, 1, (4,), np.uint8))
        >>> store[0] = np.ones((3, 4), np.uint8)
        >>> store.flat[[2]]
        array([[1, 1, 1, 1]], dtype=uint8)
    """

    def __init__(self, steps: int, num_envs: int, space: spaces.Space[Any]) -> None:
        if not isinstance(space, spaces.Box | spaces.MultiBinary | spaces.MultiDiscrete):
            raise ConfigError(
                f"A FoundArray keeps arrays of one shape, not a {type(space).__name__} space. "
                "Make one for each entry of a Dict."
            )
        self.shape = (steps, num_envs, *(space.shape or ()))
        self.dtype = np.dtype(space.dtype)
        spec = ColumnSpec("obs", self.shape[2:] or (1,), self.dtype)
        self.column = FoundColumn(spec, steps, num_envs)
        self._written = 0

    def __setitem__(self, step: int, rows: Any) -> None:
        """Keep one step."""
        if step not in (0, self._written) or step >= self.shape[0]:
            raise IndexError(
                f"Step {step} follows step {self._written - 1} in a store of {self.shape[0]} "
                "steps; write steps in their order, or 0 to begin anew."
            )
        values = np.asarray(rows, self.dtype)
        self.column.write(step, values.reshape(self.shape[1], *self.column.spec.shape), None)
        self._written = step + 1

    def __getitem__(self, index: Any) -> np.ndarray:
        """Rows by step and environment, each an integer, a slice or integers."""
        index = index if isinstance(index, tuple) else (index,)
        places = np.arange(self.shape[0] * self.shape[1]).reshape(self.shape[:2])[index]
        return self.at(places)

    def at(self, places: np.ndarray) -> np.ndarray:
        """Rows by step-major places of any shape."""
        steps, envs = np.divmod(places.reshape(-1), self.shape[1])
        if steps.max(initial=-1) >= self._written:
            raise IndexError(f"Step {steps.max()} is not written yet; {self._written} steps are.")
        rows = self.column.gather(steps, envs, None, None)
        return rows.reshape(*places.shape, *self.shape[2:])

    @property
    def flat(self) -> FlatRows:
        """Rows [steps * num_envs, *shape] by one index."""
        return FlatRows(self)

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return self.column.nbytes


class FlatRows:
    """A store seen as rows one behind the other."""

    def __init__(self, store: FoundArray) -> None:
        self.store = store

    def __len__(self) -> int:
        return self.store.shape[0] * self.store.shape[1]

    def __getitem__(self, index: Any) -> np.ndarray:
        return self.store.at(np.arange(len(self))[index])
