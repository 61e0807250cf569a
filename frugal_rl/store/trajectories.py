"""Trajectories of varying length from several workers, merged for the learner.

A trajectory is a tuple of tensors [steps, ...], one per item, item 1 being the reward. Workers may
write into `slots`, which lie in the merged tensors themselves: then merging copies nothing, or only
closes the gaps that shorter trajectories leave. Imports torch.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from frugal_rl.errors import ConfigError, MemoryBudgetError
from frugal_rl.memory.choices import Trajectories

Trajectory = tuple[Tensor, ...]
REWARD = 1
"""Place of the rewards among the items."""


@dataclass(frozen=True)
class Item:
    """Shape and dtype of one item of a single step."""

    shape: tuple[int, ...]
    dtype: torch.dtype


class TrajectoryBuffer(Sequence[Tensor]):
    """Merged trajectories: one tensor [steps of all workers, ...] per item.

    Strategies (the guide's names):
        list: transposes lists and concatenates anew at every update; the "before".
        preallocated: tensors for `max_buffer_size` steps, allocated once, gaps closed in place.
        views: as they lie, without a copy, where trajectories lie one behind the other; else
            as `preallocated`.
        streaming: takes trajectories from an iterator, `chunk_size` steps at a time, so that only
            one source needs to exist.
        hybrid: `views` where they lie right, else `streaming` into preallocated tensors.

    On a CUDA device slots are pinned, transfers asynchronous and the device tensors reused.
    """

    def __init__(
        self,
        strategy: Trajectories,
        device: Any = "cpu",
        chunk_size: int = 256,
        max_buffer_size: int = 4096,
    ) -> None:
        if chunk_size < 1 or max_buffer_size < 1:
            raise ConfigError(
                f"chunk_size is {chunk_size} and max_buffer_size {max_buffer_size}; "
                "both must be positive."
            )
        self.strategy = strategy
        self.device = torch.device(device)
        self.chunk_size = chunk_size
        self.max_buffer_size = max_buffer_size
        self.items: list[Tensor] = []
        self._stores: list[Tensor] = []
        self._staging: list[Tensor] = []

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: Any) -> Any:
        return self.items[index]

    def slots(self, workers: int, steps: int, items: Sequence[Item]) -> list[Trajectory]:
        """Where each worker writes up to `steps` steps; valid until the next update is done.

        With `list` they are new tensors, as the guide's workers make them.
        """
        if self.strategy is Trajectories.list:
            new = [[torch.empty((steps, *i.shape), dtype=i.dtype) for i in items]]
            new += [[torch.empty_like(t) for t in new[0]] for _ in range(workers - 1)]
            return [tuple(trajectory) for trajectory in new]
        self._check(workers * steps)
        self._prepare(items)
        if self.device.type == "cpu":
            rows = self._stores
        else:
            rows = self._staging = self._staging or self._allocate(items, "cpu")
        return [tuple(r[w * steps : (w + 1) * steps] for r in rows) for w in range(workers)]

    def update(self, trajectories: Iterable[Trajectory]) -> tuple[int, float]:
        """Merge; returns the number of steps and the mean reward."""
        if self.strategy is Trajectories.list:
            self._concatenate(list(trajectories))
        elif self.strategy is Trajectories.streaming:
            self._stream(trajectories)
        else:
            sources = list(trajectories)
            viewed = self.strategy is not Trajectories.preallocated and self._view(sources)
            if not viewed:
                self._stream(sources)
        if not self.items:
            return 0, 0.0
        steps = len(self.items[REWARD])
        return steps, float(self.items[REWARD].mean()) if steps else 0.0

    def _concatenate(self, trajectories: list[Trajectory]) -> None:
        """What the guide found: lists of lists, then one new tensor per item."""
        columns = list(map(list, zip(*trajectories, strict=True)))
        self.items.clear()
        self.items[:] = [torch.cat(column, dim=0).to(self.device) for column in columns]

    def _view(self, trajectories: list[Trajectory]) -> bool:
        """Show adjacent trajectories as they lie; False if they are not adjacent on the device."""
        if not trajectories or self.device.type != "cpu":
            return False
        columns = list(zip(*trajectories, strict=True))
        if not all(adjacent(column) for column in columns):
            return False
        self.items = [joined(column) for column in columns]
        return True

    def _stream(self, trajectories: Iterable[Trajectory]) -> None:
        """Copy one trajectory after the other, each let go before the next is asked for."""
        self.items = []
        offset = 0
        for trajectory in trajectories:
            if not self._stores:
                items = [Item(tuple(t.shape[1:]), t.dtype) for t in trajectory]
                self._prepare(items)
            length = len(trajectory[REWARD])
            self._check(offset + length)
            for store, source in zip(self._stores, trajectory, strict=True):
                self._place(store, offset, source)
            offset += length
            del trajectory
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        self.items = [store[:offset] for store in self._stores]

    def _place(self, store: Tensor, offset: int, source: Tensor) -> None:
        """Rows of a source to [offset, offset + length), nothing where they lie there already."""
        target = store[offset : offset + len(source)]
        if target.data_ptr() == source.data_ptr():
            return
        if source.device == store.device and shares_memory(store, source):
            if source.data_ptr() < target.data_ptr():
                raise ConfigError("Slots must be merged in the order in which they were given.")
            ctypes.memmove(target.data_ptr(), source.data_ptr(), target.nbytes)
            return
        for first in range(0, len(source), self.chunk_size):
            end = first + self.chunk_size
            target[first:end].copy_(source[first:end], non_blocking=True)

    def _prepare(self, items: Sequence[Item]) -> None:
        if not self._stores:
            self._stores = self._allocate(items, self.device.type)
        held = [Item(tuple(s.shape[1:]), s.dtype) for s in self._stores]
        if held != list(items):
            raise ConfigError(
                f"The trajectory buffer holds items {held}, but was given {list(items)}. "
                "Make a new buffer for trajectories of another kind."
            )

    def _allocate(self, items: Sequence[Item], device: str) -> list[Tensor]:
        pinned = device == "cpu" and self.device.type == "cuda"
        return [
            torch.empty(
                (self.max_buffer_size, *i.shape),
                dtype=i.dtype,
                device=self.device if device != "cpu" else "cpu",
                pin_memory=pinned,
            )
            for i in items
        ]

    def _check(self, steps: int) -> None:
        if steps > self.max_buffer_size:
            raise MemoryBudgetError(
                f"Trajectories of {steps} steps do not fit max_buffer_size={self.max_buffer_size}. "
                "Raise it, or collect fewer steps per update."
            )

    @property
    def held(self) -> list[Tensor]:
        """The tensors that merged steps lie in: those allocated once, or the last update's."""
        return self._stores or self.items

    @property
    def nbytes(self) -> int:
        """Bytes allocated for merged steps and for pinned slots."""
        return sum(t.nbytes for t in self._stores + self._staging)


def shares_memory(store: Tensor, source: Tensor) -> bool:
    """Whether a source lies inside a store."""
    return store.data_ptr() <= source.data_ptr() < store.data_ptr() + store.nbytes


def adjacent(pieces: Sequence[Tensor]) -> bool:
    """Whether pieces of one allocation lie one behind the other."""
    one_memory = len({p.untyped_storage().data_ptr() for p in pieces}) == 1
    follow = all(a.data_ptr() + a.nbytes == b.data_ptr() for a, b in pairwise(pieces))
    return one_memory and follow and all(p.is_contiguous() for p in pieces)


def joined(pieces: Sequence[Tensor]) -> Tensor:
    """Adjacent pieces as one tensor, without a copy."""
    first = pieces[0]
    steps = sum(len(p) for p in pieces)
    return first.as_strided((steps, *first.shape[1:]), first.stride())


def as_blocks(slots: Sequence[Trajectory]) -> Trajectory:
    """Adjacent slots of equal length as one tensor [workers, steps, ...] per item; no copy."""
    columns = list(zip(*slots, strict=True))
    return tuple(joined(c).view(len(slots), *c[0].shape) for c in columns)


def trimmed(slots: Sequence[Trajectory], lengths: Sequence[int]) -> Iterator[Trajectory]:
    """Slots cut to the steps that were written."""
    for slot, length in zip(slots, lengths, strict=True):
        yield tuple(item[:length] for item in slot)
