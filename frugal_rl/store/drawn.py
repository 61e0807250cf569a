"""What is kept in a small form, read as the arrays that SB3 expects."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from frugal_rl.store.columns import Column
    from frugal_rl.store.replay import ReplayBuffer
    from frugal_rl.store.rollout import RolloutBuffer

Draw = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""Rows [B, *shape] of steps [B] and environments [B]."""


class AsArray(ABC):
    """What scripts ask of an array beside its values."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @abstractmethod
    def __getitem__(self, at: Any) -> np.ndarray:
        """A copy of what NumPy would index."""

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        values = self[:]
        return values if dtype is None else values.astype(dtype, copy=False)


class Cast(AsArray):
    """An array in a small type that is read in the type that SB3 keeps it in."""

    def __init__(self, array: np.ndarray, dtype: np.dtype[Any]) -> None:
        self.array, self.dtype = array, dtype
        self.shape, self.nbytes = array.shape, array.nbytes

    def __getitem__(self, at: Any) -> np.ndarray:
        values: np.ndarray = np.asarray(self.array[at]).astype(self.dtype)
        return values

    def __setitem__(self, at: Any, values: Any) -> None:
        self.array[at] = values


class DrawnRows(AsArray):
    """Rows [T, N, *shape] of a store, rebuilt where they are read; `_at` tells how."""

    def __getitem__(self, at: Any) -> np.ndarray:
        """As NumPy indexes; of the axes behind the second, by whole numbers and slices."""
        own, rest = self._split(at if isinstance(at, tuple) else (at,))
        size, num_envs = self.shape[:2]
        if len(own) == 2 and all(isinstance(x, np.ndarray) and x.dtype.kind == "i" for x in own):
            places, n = np.broadcast_arrays(own[0], np.arange(num_envs)[own[1]])
            if places.size and not -size <= places.min() <= places.max() < size:
                raise IndexError(f"a place of {own[0]} lies outside of {size}")
        else:
            every = np.arange(size)[:, None], np.arange(num_envs)
            places, n = (np.broadcast_to(x, (size, num_envs))[own] for x in every)
        drawn = self._at(np.array(places).reshape(-1), np.array(n).reshape(-1))
        values: np.ndarray = drawn.reshape(*places.shape, *drawn.shape[1:])
        return values[(slice(None),) * places.ndim + rest] if rest else values

    def _split(self, at: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The indices of places and environments, and those of the axes behind them."""
        for i, index in enumerate(at):
            if index is Ellipsis:
                missing = self.ndim - (len(at) - 1)
                at = at[:i] + (slice(None),) * missing + at[i + 1 :]
                break
        axes = 0
        for i, index in enumerate(at):
            if axes == 2:
                return at[:i], at[i:]
            mask = isinstance(index, np.ndarray) and index.dtype == np.bool_
            axes += index.ndim if mask else 1
        return at, ()

    @abstractmethod
    def _at(self, places: np.ndarray, n: np.ndarray) -> np.ndarray:
        """Rows [B, *shape] at places [B], which may count from the end, of environments [B]."""

    def _held_at(
        self, held: np.ndarray, steps: np.ndarray, n: np.ndarray, draw: Draw
    ) -> np.ndarray:
        """[B, *shape]; zeros where nothing was added yet, as an array would have."""
        if held.all() and len(steps):
            return draw(steps, n)
        values = np.zeros((len(steps), *self.shape[2:]), self.dtype)
        if held.any():
            values[held] = draw(steps[held], n[held])
        return values


class Drawn(DrawnRows):
    """Observations [T, N, *shape] of the places in a replay's ring."""

    def __init__(self, buffer: ReplayBuffer, name: str, which: int) -> None:
        self.buffer, self.which = buffer, which
        self.column = buffer.columns[name]
        self.shape = (buffer.buffer_size, buffer.n_envs, *self.column.shape)
        self.dtype = self.column.dtype

    def _at(self, places: np.ndarray, n: np.ndarray) -> np.ndarray:
        steps = self.buffer.steps_at(places)
        return self._held_at(steps >= 0, steps, n, lambda s, e: self.column.draw(s, e)[self.which])


class RolloutRows(DrawnRows):
    """Observations [T, N, *shape] of a rollout, whether it was drawn from or not."""

    def __init__(self, buffer: RolloutBuffer, column: Column) -> None:
        self.buffer, self.column = buffer, column
        self.shape = (buffer.buffer_size, buffer.n_envs, *column.spec.shown())
        self.dtype = column.spec.dtype

    def _at(self, places: np.ndarray, n: np.ndarray) -> np.ndarray:
        t = np.where(places < 0, places + self.shape[0], places)

        def draw(steps: np.ndarray, envs: np.ndarray) -> np.ndarray:
            rows: np.ndarray = self.column.gather(steps, envs, None, None)
            return rows

        return self._held_at(t < self.buffer.pos, t, n, draw)
