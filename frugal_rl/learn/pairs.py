"""Sums over two processes, each of which waits for the other's numbers before it has its own.

An all-reduce of gloo wakes two threads of its own on each side and two messages one after the
other; on a machine whose cores are all at work they cost several times what they carry. Two
processes send the same bytes when each gives the other all that it has, at once.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.distributed import ProcessGroup, Work

LARGEST_BYTES = 1 << 20
"""Of a tensor that is exchanged whole: its room on both sides is kept."""
FIRST_TAG = 1 << 16


class Exchange:
    """Tensors of one size and type; the room for the other's is announced ahead."""

    def __init__(self, group: ProcessGroup, other: int, tag: int, like: Tensor) -> None:
        self.group, self.other, self.tag = group, other, tag
        self.theirs = torch.empty_like(like)
        self.coming: Work | None = None

    def add(self, own: Tensor) -> None:
        """Add the other's numbers in place: equal to the bit on both sides.

        Raises:
            RuntimeError: the other is gone, or silent for longer than the group's limit.
        """
        coming = self.coming or self._ask()
        going = self.group.send([own], self.other, self.tag)
        coming.wait()
        going.wait()
        own.add_(self.theirs)
        self.coming = None
        with suppress(RuntimeError):  # the other may be done; whoever asks for more is told then
            self.coming = self._ask()

    def _ask(self) -> Work:
        return self.group.recv([self.theirs], self.other, self.tag)


@dataclass
class Pair:
    """This process and the one other of the run."""

    group: ProcessGroup
    other: int
    known: dict[tuple[torch.Size, torch.dtype], Exchange] = field(default_factory=dict)

    def takes(self, tensor: Tensor) -> bool:
        """Whether it may be exchanged whole."""
        return tensor.device.type == "cpu" and tensor.nbytes <= LARGEST_BYTES

    def add(self, tensor: Tensor) -> None:
        """Add the other's; both ask for the same sizes in the same order."""
        kind = tensor.shape, tensor.dtype
        if kind not in self.known:
            tag = FIRST_TAG + len(self.known)
            self.known[kind] = Exchange(self.group, self.other, tag, tensor)
        self.known[kind].add(tensor)
