"""`vec=threads`: single environments on a fixed pool of threads, in this process."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated

from frugal_rl.ranges import at_least
from frugal_rl.vec_env.backend import Backend, EnvMaker
from frugal_rl.vec_env.serial import SerialEnv

if TYPE_CHECKING:
    from frugal_rl.memory.profile import MemoryProfile
    from frugal_rl.observation.encoding import Encoding
    from frugal_rl.vec_env.interface import VectorEnv
    from frugal_rl.vec_env.single import Report


@dataclass(frozen=True)
class Threads(Backend):
    """Choose it for simulators that release the interpreter's lock, as PyBoy's `tick` does."""

    threads: Annotated[int, at_least(0)] = 0
    """Threads of the pool; 0 takes one per core."""

    def build(
        self, env: EnvMaker, num_envs: int, encoding: Encoding, memory: MemoryProfile
    ) -> VectorEnv:
        """Environments in this process, on threads."""
        threads = min(num_envs, self.threads or os.cpu_count() or 1)
        return ThreadedEnv(env, num_envs, encoding, memory, threads)


class ThreadedEnv(SerialEnv):
    """N environments in equal shares, one per thread."""

    def __init__(
        self,
        env: EnvMaker,
        num_envs: int,
        encoding: Encoding,
        memory: MemoryProfile,
        threads: int,
    ) -> None:
        super().__init__(env, num_envs, encoding, memory)
        # The calling thread takes the first share itself: one thread less to wake per step.
        self._pool = ThreadPoolExecutor(max(threads - 1, 1), "environments")
        self._shares = shares(num_envs, threads)

    def _step(self) -> list[tuple[int, Report]]:
        own, *others = self._shares
        steps = [self._pool.submit(self.singles.step, a, b) for a, b in others]
        first = self.singles.step(*own)
        return [(0, report) for report in (first, *(step.result() for step in steps))]

    def close(self) -> None:
        """Stop the threads, close all environments."""
        self._pool.shutdown()
        super().close()


def shares(num_envs: int, workers: int) -> list[tuple[int, int]]:
    """Environments [first, end) of each worker, as equal as possible."""
    bounds = [num_envs * w // workers for w in range(workers + 1)]
    return list(pairwise(bounds))
