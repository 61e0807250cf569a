"""The processes of a data-parallel run: each has its own environments and shard of the rollout.

What crosses the network is one flat gradient per minibatch, three numbers for its advantages, and
the metrics of an iteration. Observations never do. Alone (`Ranks()`), nothing is communicated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import torch
from torch import Tensor, distributed

from frugal_rl.errors import ConfigError, RankError

T = TypeVar("T")
STATISTICS_BYTES = 3 * 8
"""Count, sum and sum of squares of a minibatch's advantages, in float64."""


@dataclass(frozen=True)
class Ranks:
    """This process's number among those that train one run together."""

    rank: int = 0
    size: int = 1

    @property
    def first(self) -> bool:
        """Whether this one evaluates, logs and saves."""
        return self.rank == 0

    def share(self, count: int, name: str) -> int:
        """This rank's part of a number that the configuration gives for all of them.

        Raises:
            ConfigError: it cannot be split evenly.
        """
        if count % self.size:
            raise ConfigError(
                f"{name}={count} cannot be split evenly over {self.size} processes; use "
                f"{name}={max(1, round(count / self.size)) * self.size}."
            )
        return count // self.size

    def average(self, tensor: Tensor) -> None:
        """Replace a tensor by its mean over the ranks."""
        if self.size > 1:
            with told():
                distributed.all_reduce(tensor)
            tensor.div_(self.size)

    def moments(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and unbiased deviation of values [B] that lie on all ranks."""
        if self.size == 1:
            return values.mean(), values.std()
        wide = values.double()
        sums = torch.stack((torch.full_like(wide[0], len(wide)), wide.sum(), wide.square().sum()))
        with told():
            distributed.all_reduce(sums)
        count, total, squares = sums
        mean = total / count
        variance = (squares - count * mean.square()) / (count - 1)
        return mean.to(values.dtype), variance.clamp(min=0).sqrt().to(values.dtype)

    def any(self, flag: bool) -> bool:
        """Whether the flag is set on any rank: all of them then do the same."""
        if self.size == 1:
            return flag
        return any(self.gathered(flag))

    def mean_of(self, metrics: Mapping[str, float]) -> dict[str, float]:
        """Each number's mean over the ranks that have it."""
        if self.size == 1:
            return dict(metrics)
        found: dict[str, list[float]] = {}
        for each in self.gathered(dict(metrics)):
            for name, value in each.items():
                found.setdefault(name, []).append(value)
        return {name: sum(values) / len(values) for name, values in found.items()}

    def gathered(self, value: T) -> list[T]:
        """The value of every rank, on every rank; small objects only."""
        if self.size == 1:
            return [value]
        values: list[Any] = [None] * self.size
        with told():
            distributed.all_gather_object(values, value)
        return values

    def at_first(self, value: T) -> list[T]:
        """The value of every rank, on the first one; empty on the others."""
        if self.size == 1:
            return [value]
        values: list[Any] | None = [None] * self.size if self.first else None
        with told():
            distributed.gather_object(value, values, 0)
        return values or []

    def from_first(self, value: T) -> T:
        """The first rank's value, on every rank."""
        return self.gathered(value)[0] if self.size > 1 else value

    def copy_from_first(self, tensor: Tensor) -> None:
        """Replace a tensor by the first rank's."""
        if self.size > 1:
            with told():
                distributed.broadcast(tensor, 0)


@contextmanager
def told() -> Iterator[None]:
    """A lost or late rank in words, with what to do.

    Raises:
        RankError: a collective failed.
    """
    try:
        yield
    except RuntimeError as error:
        said = (str(error).splitlines() or ["no reason was given"])[0]
        raise RankError(
            "Another process of this run is gone or did not answer within launch.timeout_s "
            f"({said[:160]}). Continue from the last checkpoint with resume=, or let torchrun "
            "start again with launch.restarts=1."
        ) from error


def started_by_torchrun() -> bool:
    """Whether torchrun started this process as one of several."""
    return distributed.is_available() and distributed.is_torchelastic_launched()


@contextmanager
def joined(timeout_s: float) -> Iterator[Ranks]:
    """The ranks of this run: met by torchrun's rendezvous, or this process alone."""
    if not started_by_torchrun():
        yield Ranks()
        return
    backend = "nccl" if torch.cuda.is_available() else "gloo"
    with told():
        distributed.init_process_group(backend, timeout=timedelta(seconds=timeout_s))
    try:
        yield Ranks(distributed.get_rank(), distributed.get_world_size())
    finally:
        distributed.destroy_process_group()
