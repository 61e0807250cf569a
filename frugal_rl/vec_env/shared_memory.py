"""`vec=shared_memory`: worker processes that write raw fields into one shared block."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from multiprocessing.connection import Connection
from multiprocessing.shared_memory import SharedMemory as Block
from types import ModuleType
from typing import Annotated, Any

import numpy as np

from frugal_rl.errors import MemoryBudgetError, WorkerError
from frugal_rl.memory.profile import MemoryProfile
from frugal_rl.observation.encoding import Encoding
from frugal_rl.ranges import at_least
from frugal_rl.vec_env import worker
from frugal_rl.vec_env.backend import Backend, EnvMaker
from frugal_rl.vec_env.group import GroupEnv
from frugal_rl.vec_env.interface import VectorEnv
from frugal_rl.vec_env.single import Report
from frugal_rl.vec_env.threads import shares


class Start(Enum):
    """How a worker begins: from a small server that has the environment loaded, or as a fork."""

    preload = "preload"
    fork = "fork"


@dataclass(frozen=True)
class SharedMemory(Backend):
    """Choose it on many cores. Workers hold the environment and NumPy, no torch."""

    workers: Annotated[int, at_least(0)] = 0
    """Worker processes; 0 takes one per core."""
    start: Start = Start.preload
    """How a worker begins."""

    def build(
        self, env: EnvMaker, num_envs: int, encoding: Encoding, memory: MemoryProfile
    ) -> VectorEnv:
        """Environments in worker processes."""
        workers = min(num_envs, self.workers or os.cpu_count() or 1)
        return SharedMemoryEnv(env, num_envs, encoding, memory, workers, self.start)


class SharedMemoryEnv(GroupEnv):
    """N environments in equal shares, one per worker process."""

    def __init__(
        self,
        env: EnvMaker,
        num_envs: int,
        encoding: Encoding,
        memory: MemoryProfile,
        workers: int,
        start: Start,
    ) -> None:
        self._processes: list[Any] = []
        self._connections: list[Connection] = []
        self._block: Block | None = None
        super().__init__(env, num_envs, encoding, memory)
        self._shares = shares(num_envs, workers)
        assert self._block is not None
        context = _context(env, start)
        with _without_main(env):
            for first, end in self._shares:
                ours, theirs = context.Pipe()
                args = (theirs, env, self._block.name, self.layout, first, end)
                process = context.Process(target=worker.work, args=args, daemon=True)
                process.start()
                theirs.close()
                self._processes.append(process)
                self._connections.append(ours)

    def _allocate(self) -> dict[str, np.ndarray]:
        size = worker.block_bytes(self.layout)
        self._block = Block(create=True, size=size)
        try:
            os.posix_fallocate(self._block._fd, 0, size)  # type: ignore[attr-defined]
        except OSError as error:
            self._block.unlink()
            raise MemoryBudgetError(
                f"The shared block of {size / 2**20:.1f} MiB does not fit into this machine's "
                f"shared memory ({error.strerror}). Choose vec=threads, or enlarge /dev/shm."
            ) from error
        return worker.arrays_in(self._block, self.layout)

    def _reset(self, seeds: list[int]) -> list[tuple[int, Report]]:
        for connection, (first, end) in zip(self._connections, self._shares, strict=True):
            self._send(connection, pickle.dumps(seeds[first:end]))
        return self._reports()

    def _step(self) -> list[tuple[int, Report]]:
        for connection in self._connections:
            self._send(connection, worker.STEP)
        return self._reports()

    def _send(self, connection: Connection, command: bytes) -> None:
        try:
            connection.send_bytes(command)
        except OSError:
            self._receive(self._connections.index(connection))

    def _reports(self) -> list[tuple[int, Report]]:
        return [(first, self._receive(i)) for i, (first, _) in enumerate(self._shares)]

    def _receive(self, index: int) -> Report:
        """A worker's report; its traceback, or the way it died, as an error."""
        first, end = self._shares[index]
        try:
            message = self._connections[index].recv_bytes()
        except (EOFError, OSError) as gone:
            process = self._processes[index]
            process.join(1)
            raise WorkerError(
                f"The worker of environments {first} to {end - 1} died without a word (exit code "
                f"{process.exitcode}; -9 usually means out of memory). Lower algo.num_envs or "
                "vec.workers, or choose vec=serial to see the error in this process."
            ) from gone
        report = pickle.loads(message) if message else Report()
        if isinstance(report, Report):
            return report
        raise WorkerError(
            f"The worker of environments {first} to {end - 1} failed:\n{report}"
            "Choose vec=serial to see it in this process."
        )

    def close(self) -> None:
        """Stop the workers and free the shared block."""
        for connection in self._connections:
            try:
                connection.send_bytes(worker.CLOSE)
            except OSError:
                continue  # this worker is gone already
            finally:
                connection.close()
        for process in self._processes:
            process.join(5)
            process.kill()
        self._connections, self._processes = [], []
        if self._block is not None:
            self._block.unlink()
            self._block = None


def _context(env: EnvMaker, start: Start) -> Any:
    if start is Start.fork:
        return multiprocessing.get_context("fork")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([worker.__name__, type(env).__module__])
    return context


@contextmanager
def _without_main(env: EnvMaker) -> Iterator[None]:
    """Keep workers from importing the main script again, and torch with it.

    multiprocessing re-runs the main module in each worker unless it has no file.
    """
    main = sys.modules["__main__"]
    if type(env).__module__ != "__main__":
        sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main
