"""Counts what torch operations hold, on the device without memory or on any other.

Every tensor that an operation makes is counted while somebody refers to it, as an allocator would.
Kernels hold more than dispatch shows: convolutions on a CPU lay out what they read anew.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

CONVOLUTIONS = ("convolution", "convolution_backward")


class Held(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the bytes of all storages that are alive.

    peak       the most there were at once
    heap_peak  the most of those that an allocator takes from its heap
    sizes      what storages there ever were, by their bytes
    """

    def __init__(
        self, distinct: int = 1, mapped_from: int = 0, apart: frozenset[int] = frozenset()
    ) -> None:
        """Prepare to count.

        Args:
            distinct: number of static rows that a minibatch is taken to show.
            mapped_from: bytes from which on a block is mapped on its own.
            apart: sizes of blocks that leave no holes, as the same ones are made every time.
        """
        super().__init__()  # type: ignore[no-untyped-call]
        self.held, self.peak, self.distinct = 0, 0, distinct
        self.heap, self.heap_peak, self.mapped_from = 0, 0, mapped_from
        self.apart = apart
        self.sizes: set[int] = set()
        self._alive: set[int] = set()

    def leave_out(self, tensors: Iterable[Tensor]) -> None:
        """Tensors that are there already: views of them, and what is added in place, are none."""
        self._alive.update(t.untyped_storage()._cdata for t in tensors)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        unknown = name == "_unique2" and args[0].is_meta
        out = self._unique(args[0]) if unknown else func(*args, **(kwargs or {}))
        for tensor in _tensors(out):
            self._count(tensor)
        if name in CONVOLUTIONS:
            inside = sum(t.nbytes for t in (*_tensors(args), *_tensors(out)) if t.ndim > 3)
            self.peak = max(self.peak, self.held + inside)
        return out

    def _unique(self, ids: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """What torch.unique gives for ids of static rows."""
        return ids.new_empty(min(self.distinct, len(ids))), torch.empty_like(ids), ids.new_empty(0)

    def _count(self, tensor: Tensor) -> None:
        storage = tensor.untyped_storage()
        key, size = storage._cdata, storage.nbytes()
        if key in self._alive:
            return
        self._alive.add(key)
        self.sizes.add(size)
        self._grow(size)
        weakref.finalize(storage, self._release, key, size)

    def _release(self, key: int, size: int) -> None:
        self._alive.discard(key)
        self._grow(-size)

    def _grow(self, size: int) -> None:
        self.held += size
        self.peak = max(self.peak, self.held)
        if abs(size) < self.mapped_from and abs(size) not in self.apart:
            self.heap += size
            self.heap_peak = max(self.heap_peak, self.heap)


def _tensors(values: Any) -> Iterator[Tensor]:
    if isinstance(values, Tensor):
        yield values
    elif isinstance(values, list | tuple):
        for value in values:
            yield from _tensors(value)
