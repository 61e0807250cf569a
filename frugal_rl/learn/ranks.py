"""The processes of a data-parallel run: each has its own environments and shard of the rollout.

What crosses the network is one flat gradient per minibatch, once per epoch three numbers for the
advantages of each of its minibatches, and the metrics of an iteration. Observations never do. A
message costs more than the few numbers that it carries. Alone (`Ranks()`), nothing is communicated.
"""

from __future__ import annotations

import math
import os
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar, TypeVarTuple

import numpy as np
import torch
from torch import Tensor, distributed
from torch.distributed.distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous

from frugal_rl.errors import ConfigError, RankError
from frugal_rl.learn.pairs import Pair
from frugal_rl.learn.silence import end_silent_connections
from frugal_rl.meanwhile import meanwhile

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
Moments = tuple[Tensor, Tensor]
"""Mean and unbiased deviation of what lies on all ranks."""
STATISTICS_BYTES = 3 * 8
"""Count, sum and sum of squares of a minibatch's advantages, in float64."""
BEATS = "beats"
BEAT_SECONDS, LOOK_SECONDS = 1.0, 0.1
"""Between two signs of life of a process that works for all, and between two looks for them."""
ANSWER_SECONDS = 5.0
"""How long a process that could not reach the others looks which of them say the same."""


class RollCall:
    """Who still answers, asked in the launcher's own store: that outlives a lost process."""

    def __init__(self, store: Store, rank: int, size: int, limit_s: float = math.inf) -> None:
        self.store, self.rank, self.size, self.limit_s = store, rank, size, limit_s
        self.blocks = 0
        store.set(f"who/{rank}", f"process {rank} of {size} (pid {os.getpid()} on {_host()})")

    def missing(self, wait_s: float = ANSWER_SECONDS) -> list[str]:
        """The processes that do not say within the time that they miss somebody, too."""
        end_silent_connections(wait_s)  # the store itself may be out of reach
        try:
            self.store.set(f"here/{self.rank}", "1")
            until = time.monotonic() + wait_s
            while (gone := self._absent()) and time.monotonic() < until:
                time.sleep(0.1)
            return [self.store.get(f"who/{rank}").decode() for rank in gone]
        except RuntimeError:  # the launcher is gone with its store
            return []

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Show the others that this process lives while it works for all of them."""
        self.blocks += 1
        gone = RuntimeError  # the launcher, with its store
        with meanwhile(lambda: self.store.add(BEATS, 1), BEAT_SECONDS, "pulse", gone):
            yield
        self.store.set(f"done/{self.blocks}", "1")

    def wait(self) -> None:
        """Wait for the first process, however long it works, unless it falls silent.

        Raises:
            RuntimeError: nothing came from it for longer than the limit.
        """
        self.blocks += 1
        beats, heard = -1, time.monotonic()
        while not self.store.check([f"done/{self.blocks}"]):
            now = self.store.add(BEATS, 0)
            if now != beats:
                beats, heard = now, time.monotonic()
            elif time.monotonic() - heard > self.limit_s:
                raise RuntimeError("the first process is silent")
            time.sleep(LOOK_SECONDS)

    def _absent(self) -> list[int]:
        return [rank for rank in range(self.size) if not self.store.check([f"here/{rank}"])]


def _host() -> str:
    return socket.gethostname()


@dataclass(frozen=True)
class Ranks:
    """This process's number among those that train one run together."""

    rank: int = 0
    size: int = 1
    roll: RollCall | None = None
    """Names those who are missing when the others wait in vain."""
    pair: Pair | None = None
    """How two processes add small tensors."""

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
            self._add_up(tensor)
            tensor.div_(self.size)

    def _add_up(self, tensor: Tensor) -> None:
        """Replace a tensor by its sum over the ranks."""
        with self.told():
            if self.pair is not None and self.pair.takes(tensor):
                self.pair.add(tensor)
            else:
                distributed.all_reduce(tensor)

    def moments(self, minibatches: Sequence[Tensor]) -> list[Moments]:
        """Those of each minibatch's values [B] that lie on all ranks, by one message for all."""
        if self.size == 1:
            return [(values.mean(), values.std()) for values in minibatches]
        sums = torch.stack([_sums(values.double()) for values in minibatches])
        self._add_up(sums)
        count, total, squares = sums.unbind(1)
        mean = total / count
        deviation = ((squares - count * mean.square()) / (count - 1)).clamp(min=0).sqrt()
        kind = minibatches[0].dtype
        return list(zip(mean.to(kind), deviation.to(kind), strict=True))

    @contextmanager
    def led(self) -> Iterator[None]:
        """What the first rank does alone in the block takes its time; the others wait before it."""
        if self.roll is None:
            yield
        elif self.first:
            with self.roll.at_work():
                yield
        else:
            with self.told():
                self.roll.wait()
            yield

    def any(self, *flags: bool) -> tuple[bool, ...]:
        """Whether each flag is set on any rank: all of them then do the same."""
        return tuple((self.summed(np.array(flags)) > 0).tolist())

    def summed(self, values: np.ndarray) -> np.ndarray:
        """The sum over the ranks, equal to the bit on all of them."""
        total = np.array(values, np.float64)
        if self.size > 1:
            self._add_up(torch.from_numpy(total))
        return total

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
        with self.told():
            distributed.all_gather_object(values, value)
        return values

    def in_order(self, events: Sequence[tuple[int, *Ts]]) -> list[tuple[int, *Ts]]:
        """Events of all ranks, each with the step of its rank: by step, then by rank."""
        told = [
            (event[0], rank, event)
            for rank, own in enumerate(self.gathered(list(events)))
            for event in own
        ]
        return [event for _, _, event in sorted(told, key=lambda e: e[:2])]

    def at_first(self, value: T) -> list[T]:
        """The value of every rank, on the first one; empty on the others."""
        if self.size == 1:
            return [value]
        values: list[Any] | None = [None] * self.size if self.first else None
        with self.told():
            distributed.gather_object(value, values, 0)
        return values or []

    def from_first(self, value: T) -> T:
        """The first rank's value, on every rank."""
        return self.gathered(value)[0] if self.size > 1 else value

    def copy_from_first(self, tensor: Tensor) -> None:
        """Replace a tensor by the first rank's."""
        if self.size > 1:
            with self.told():
                distributed.broadcast(tensor, 0)

    @contextmanager
    def told(self) -> Iterator[None]:
        """A lost or late process in words, with its number.

        Raises:
            RankError: a collective failed.
        """
        try:
            yield
        except RuntimeError as error:
            raise RankError(_words(error, self.roll.missing() if self.roll else [])) from error


def _sums(values: Tensor) -> Tensor:
    """Count, sum and sum of squares of values [B]."""
    return torch.stack(
        (torch.full_like(values[0], len(values)), values.sum(), values.square().sum())
    )


def _words(error: RuntimeError, missing: list[str]) -> str:
    said = (str(error).splitlines() or ["no reason was given"])[0]
    who = ", ".join(missing) or "another process of this run"
    return f"No answer from {who}: gone, or silent for longer than launch.timeout_s ({said[:160]})."


def started_by_torchrun() -> bool:
    """Whether torchrun started this process as one of several."""
    return distributed.is_available() and distributed.is_torchelastic_launched()


def without_preemption() -> None:
    """Threads of this process that wake up take no core from one that is at work (Linux).

    A gloo thread that is woken while the one at work holds its lock asks the kernel for news again
    and again until its time is over.
    """
    if hasattr(os, "SCHED_BATCH"):
        with suppress(OSError):  # a sandbox may forbid it: slower, not wrong
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


@contextmanager
def joined(timeout_s: float, gpu: bool = False) -> Iterator[Ranks]:
    """The ranks of this run: met by torchrun's rendezvous, or this process alone.

    Args:
        timeout_s: how long they wait for each other.
        gpu: each computes on a GPU of its own.

    Raises:
        RankError: the others did not come within the time.
    """
    if not started_by_torchrun():
        yield Ranks()
        return
    limit = timedelta(seconds=timeout_s)
    backend = "gloo"
    if gpu:
        backend = "cpu:gloo,cuda:nccl"  # flags and sums lie on the processor everywhere
        torch.cuda.set_device(distributed.get_node_local_rank())
    without_preemption()
    with Ranks().told():
        store, rank, size = next(rendezvous("env://", timeout=limit))
        distributed.init_process_group(
            backend, store=store, rank=rank, world_size=size, timeout=limit
        )
    end_silent_connections(timeout_s)
    roll = RollCall(PrefixStore("roll", store), rank, size, timeout_s)
    world = distributed.group.WORLD
    pair = Pair(world, 1 - rank) if world is not None and size == 2 else None
    yield Ranks(rank, size, roll, pair)
    distributed.destroy_process_group()  # not after an error: it would wait for those who are gone
