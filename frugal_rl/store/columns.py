"""Stored arrays of a rollout: written row by row, read as minibatches."""

from __future__ import annotations

import math
import os
import shutil
import tempfile
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from frugal_rl.errors import ConfigError, MemoryBudgetError
from frugal_rl.memory.choices import RolloutLocation
from frugal_rl.observation.fields import EPISODE, Padding
from frugal_rl.store.kernels import carry_episodes, gather_episodes, gather_windows

if TYPE_CHECKING:
    from frugal_rl.store.column_spec import ColumnSpec


class Column(ABC):
    """One row type of T steps of N environments."""

    spec: ColumnSpec
    fills: ClassVar[bool] = True
    """Whether `gather` writes into the array that it is given."""

    @abstractmethod
    def write(self, t: int, shown: np.ndarray, age: np.ndarray | None) -> None:
        """Keep step t from its policy form [N, ...]; at t = 0 also the past that windows need."""

    @abstractmethod
    def gather(self, t: np.ndarray, n: np.ndarray, age: np.ndarray | None, out: Any) -> Any:
        """Samples (t[b], n[b]) in policy form [B, ...], written into `out` where it is used."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes allocated."""

    @property
    def most_bytes(self) -> int:
        """Bytes of its largest rollout; most columns take as many for each."""
        return self.nbytes


def newest(spec: ColumnSpec, shown: np.ndarray, age: np.ndarray | None) -> np.ndarray:
    """The newest row [N, *shape] of a policy form."""
    if spec.window == 1:
        return shown
    if spec.window == EPISODE:
        assert age is not None
        rows: np.ndarray = shown[np.arange(len(shown)), age]
        return rows
    return shown[:, -1]


def words(array: np.ndarray, keep: int) -> np.ndarray:
    """View a contiguous array as machine words, the first `keep` axes unchanged."""
    row_bytes = math.prod(array.shape[keep:]) * array.itemsize
    word = next(w for w in (8, 4, 2, 1) if row_bytes % w == 0)
    flat = array.reshape(*array.shape[:keep], -1)
    return flat.view(np.uint8).view(f"u{word}")


class ArrayColumn(Column):
    """A NumPy array in memory, in pinned memory or in a mapped file."""

    def __init__(
        self, spec: ColumnSpec, steps: int, num_envs: int, location: RolloutLocation, folder: str
    ) -> None:
        self.spec = spec
        self.steps = steps
        self.num_envs = num_envs
        shape = (spec.lead + steps, num_envs, *spec.shape)
        self.values = allocate(shape, spec.dtype, location, folder)
        self.flattened = False

    def write(self, t: int, shown: np.ndarray, age: np.ndarray | None) -> None:
        """Copy the newest row to step t."""
        if t == 0:
            self._begin(shown, age)
        self.values[self.spec.lead + t] = newest(self.spec, shown, age)

    def _begin(self, shown: np.ndarray, age: np.ndarray | None) -> None:
        if self.flattened:
            self.values = self.values.reshape(self.steps, self.num_envs, *self.spec.shape)
            self.flattened = False
        lead = self.spec.lead
        if self.spec.window == EPISODE:
            windows = words(np.ascontiguousarray(shown), 2)
            carry_episodes(windows, age, lead, words(self.values, 2))
        elif lead:
            self.values[:lead] = np.moveaxis(shown[:, :lead], 0, 1)

    def flatten(self) -> None:
        """Copy to [N * T, ...], as SB3 does before the first minibatch (`shuffle=copy`)."""
        if not self.flattened and not self.spec.lead:
            flat = np.ascontiguousarray(self.values.swapaxes(0, 1))
            self.values = flat.reshape(self.steps * self.num_envs, *self.spec.shape)
            self.flattened = True

    def gather(
        self, t: np.ndarray, n: np.ndarray, age: np.ndarray | None, out: np.ndarray | None
    ) -> np.ndarray:
        """Rows or windows of the samples, written into `out`."""
        if out is None:
            out = np.empty((len(t), *self.spec.shown()), self.spec.dtype)
        if self.spec.window != 1:
            self._gather_past(t, n, age, out)
            return out
        flat = self.values.reshape(self.steps * self.num_envs, *self.spec.shape)
        index = n * self.steps + t if self.flattened else t * self.num_envs + n
        flat.take(index, axis=0, out=out, mode="clip")
        return out

    def _gather_past(
        self, t: np.ndarray, n: np.ndarray, age: np.ndarray | None, out: np.ndarray
    ) -> None:
        store = words(self.values, 2)
        into = words(out, 2)
        if self.spec.window == EPISODE:
            gather_episodes(store, self.spec.lead, t, n, age, into)
        else:
            repeat = self.spec.padding is Padding.repeat
            gather_windows(store, self.spec.lead, t, n, age, repeat, into)

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return int(self.values.nbytes)


def allocate(
    shape: tuple[int, ...], dtype: np.dtype[Any], location: RolloutLocation, folder: str
) -> np.ndarray:
    """Zeros in RAM, in memory that a CUDA device reads directly, or in an unnamed mapped file."""
    if location is RolloutLocation.memmap:
        return _mapped(shape, dtype, folder)
    if location is RolloutLocation.pinned:
        return _pinned(shape, dtype)
    return np.zeros(shape, dtype)


def _mapped(shape: tuple[int, ...], dtype: np.dtype[Any], folder: str) -> np.ndarray:
    """The file has no name from the start, so that nothing is left behind whatever happens."""
    size = max(1, math.prod(shape) * dtype.itemsize)
    where = Path(folder or tempfile.gettempdir())
    free = shutil.disk_usage(where).free
    if size > free:
        raise MemoryBudgetError(
            f"The rollout needs {size / 2**30:.1f} GiB in {where}, which has {free / 2**30:.1f} "
            "free. Choose another run_dir, a smaller algo.n_steps or memory.rollout_location=ram."
        )
    with tempfile.TemporaryFile(dir=where) as file:
        os.posix_fallocate(file.fileno(), 0, size)
        return np.memmap(file, dtype, "r+", shape=shape)


def _pinned(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    import torch

    if not torch.cuda.is_available():
        raise ConfigError(
            "memory.rollout_location=pinned needs a CUDA device; none is here. "
            "Choose memory.rollout_location=ram."
        )
    size = math.prod(shape) * dtype.itemsize
    memory = torch.zeros(size, dtype=torch.uint8, pin_memory=True).numpy()
    return np.asarray(memory.view(dtype).reshape(shape))
