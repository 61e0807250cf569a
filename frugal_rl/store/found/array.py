"""Rollout observations of any training loop: written by step, read by index, kept small."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from gymnasium import spaces

from frugal_rl.errors import ConfigError, EncodingError
from frugal_rl.store.column_spec import ColumnSpec
from frugal_rl.store.found.column import FoundColumn


class FoundArray:
    """Stands where `numpy.zeros((steps, num_envs, *shape), dtype)` or torch's stood.

    `store[step] = rows` keeps the rows [N, ...] of one step, in the order of steps; 0 begins a
    new rollout. `store[steps, envs]` and `store.flat[indices]` give new arrays of single rows, as
    they were written; `flat` counts step-major, index = step * num_envs + env.

    Args:
        steps: T.
        num_envs: N.
        space: of one environment; its shape and dtype are those of a row.
        device: torch's, on which rows are given as tensors; None gives NumPy's arrays.

    Example:
        >>> store = FoundArray(2, 3, spaces.Box(0, 1, (4,), np.uint8))
        >>> store[0] = np.ones((3, 4), np.uint8)
        >>> store.flat[[2]]
        array([[1, 1, 1, 1]], dtype=uint8)
    """

    def __init__(
        self, steps: int, num_envs: int, space: spaces.Space[Any], device: Any = None
    ) -> None:
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
        self._given: Callable[[np.ndarray], Any] = np.asarray
        if device is not None:
            self._given = partial(import_module("torch").as_tensor, device=device)

    def __setitem__(self, step: int, rows: Any) -> None:
        """Keep one step, of arrays or tensors.

        Raises:
            IndexError: another step than the next one or 0.
            EncodingError: numbers that a space of whole numbers or flags cannot hold.
        """
        if step not in (0, self._written) or step >= self.shape[0]:
            raise IndexError(
                f"Step {step} follows step {self._written - 1} in a store of {self.shape[0]} "
                "steps; write steps in their order, or 0 to begin anew."
            )
        values = self._exact(rows.numpy(force=True) if hasattr(rows, "detach") else rows)
        self.column.write(step, values.reshape(self.shape[1], *self.column.spec.shape), None)
        self._written = step + 1

    def _exact(self, rows: Any) -> np.ndarray:
        """Rows in the space's type; whole numbers are not made of what is none."""
        given = np.asarray(rows)
        with np.errstate(invalid="ignore"):
            values = given.astype(self.dtype, copy=False)
        if self.dtype.kind in "biu" and given.dtype != self.dtype and (values != given).any():
            raise EncodingError(
                f"The space says {self.dtype}, and rows came as {given.dtype} that are no such "
                "numbers. Give the FoundArray a space of the dtype in which they come."
            )
        return values

    def __getitem__(self, index: Any) -> Any:
        """Rows by step and environment, each an integer, a slice or integers."""
        index = index if isinstance(index, tuple) else (index,)
        places = np.arange(self.shape[0] * self.shape[1]).reshape(self.shape[:2])[index]
        return self.at(places)

    def at(self, places: np.ndarray) -> Any:
        """Rows by step-major places of any shape."""
        steps, envs = np.divmod(places.reshape(-1), self.shape[1])
        if steps.max(initial=-1) >= self._written:
            raise IndexError(f"Step {steps.max()} is not written yet; {self._written} steps are.")
        rows = self.column.gather(steps, envs, None, None)
        return self._given(rows.reshape(*places.shape, *self.shape[2:]))

    def reshape(self, *shape: Any) -> FlatRows:
        """`flat`, as loops in CleanRL's manner ask for it: `obs.reshape((-1, *row_shape))`.

        Raises:
            ConfigError: any other shape.
        """
        wanted = tuple(shape[0]) if len(shape) == 1 and np.ndim(shape[0]) else shape
        flat = FlatRows(self)
        if wanted not in ((-1, *self.shape[2:]), (len(flat), *self.shape[2:])):
            raise ConfigError(
                f"A FoundArray of shape {self.shape} is read by step and environment, or as rows "
                f"of shape {(-1, *self.shape[2:])}, not {wanted}."
            )
        return flat

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

    def __getitem__(self, index: Any) -> Any:
        return self.store.at(np.arange(len(self))[index])
