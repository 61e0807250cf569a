"""Ranks in threads of one process: what several processes compute together, without a network."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from frugal_rl.learn.ranks import Moments, Ranks

T = TypeVar("T")


class Meeting:
    """Where threads exchange values, as processes do over the network."""

    def __init__(self, size: int) -> None:
        self.barrier = threading.Barrier(size)
        self.values: list[Any] = [None] * size

    def exchange(self, rank: int, value: Any) -> list[Any]:
        """The values of all ranks, in their order."""
        self.values[rank] = value
        self.barrier.wait()
        values = list(self.values)
        self.barrier.wait()
        return values


@dataclass(frozen=True)
class ThreadRanks(Ranks):
    """One of the ranks that meet in one process."""

    meeting: Meeting = field(default_factory=lambda: Meeting(1))

    def average(self, tensor: Tensor) -> None:
        """As over the network."""
        given = self.meeting.exchange(self.rank, tensor.clone())
        tensor.copy_(torch.stack(given).mean(0))

    def moments(self, minibatches: Sequence[Tensor]) -> list[Moments]:
        """As over the network, from all values at once."""
        told = self.meeting.exchange(self.rank, minibatches)
        whole = [torch.cat(parts) for parts in zip(*told, strict=True)]
        return [(values.mean(), values.std()) for values in whole]

    def summed(self, values: np.ndarray) -> np.ndarray:
        """As over the network."""
        return np.asarray(np.sum(self.meeting.exchange(self.rank, values), axis=0))

    def gathered(self, value: T) -> list[T]:
        """As over the network."""
        return self.meeting.exchange(self.rank, value)

    def copy_from_first(self, tensor: Tensor) -> None:
        """As over the network."""
        tensor.copy_(self.meeting.exchange(self.rank, tensor.clone())[0])


def together(size: int, work: Callable[[Ranks], T]) -> list[T]:
    """What each rank returns; where one fails, all do."""
    meeting = Meeting(size)

    def one(rank: int) -> T:
        try:
            return work(ThreadRanks(rank, size, meeting=meeting))
        except BaseException:
            meeting.barrier.abort()  # else the others would wait for ever
            raise

    with ThreadPoolExecutor(size) as pool:
        jobs = [pool.submit(one, rank) for rank in range(size)]
    failed = [error for job in jobs if (error := job.exception()) is not None]
    for error in failed:
        if not isinstance(error, threading.BrokenBarrierError):
            raise error
    return [job.result() for job in jobs]
