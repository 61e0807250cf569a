"""`vec=shared_memory`: worker processes that write raw fields into one shared block."""

from __future__ import annotations

import atexit
import gc
import multiprocessing
import os
import pickle
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.shared_memory import SharedMemory as Block
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from frugal_rl.errors import MemoryBudgetError, WorkerError
from frugal_rl.ranges import at_least
from frugal_rl.vec_env import worker
from frugal_rl.vec_env.backend import Backend, EnvMaker, Processes
from frugal_rl.vec_env.group import GroupEnv
from frugal_rl.vec_env.interface import env_seeds
from frugal_rl.vec_env.shares import shares
from frugal_rl.vec_env.single import Report

if TYPE_CHECKING:
    from frugal_rl.memory.profile import MemoryProfile
    from frugal_rl.observation.encoding import Encoding
    from frugal_rl.vec_env.interface import VectorEnv

PART_SECONDS = 1.0
"""Of a silence: each part is waited for anew, so that time in which nobody ran hardly counts."""

WORKER_BYTES = int(5.5 * (1 << 20))
"""What a worker holds of its own beside its environments; a fork 1.5 MiB more."""
LEFT_BEHIND_BYTES = 24 << 20
"""Pages that forks keep as they were when the main process writes them anew; their 1.5 MiB too."""
TRACKER_BYTES = int(6.4 * (1 << 20))
"""Python's process that cleans up shared blocks."""
SERVER_BYTES = 28 << 20
"""The small server's own pages; its libraries' lie in the main process as well."""
TRIAL_SECONDS = 60.0
"""How long a trial of an environment may take."""


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
    restarts: Annotated[int, at_least(0)] = 3
    """Workers that may die or fall silent in a run; each is replaced, its episodes begin anew."""
    timeout: Annotated[float, at_least(0)] = 600.0
    """Seconds after which a silent worker shows its stack and is replaced; 0 waits for ever."""

    def build(
        self, env: EnvMaker, num_envs: int, encoding: Encoding, memory: MemoryProfile
    ) -> VectorEnv:
        """Environments in worker processes."""
        workers = self._workers(num_envs)
        return SharedMemoryEnv(env, num_envs, encoding, memory, workers, self)

    def processes(self, num_envs: int, libraries_bytes: int) -> Processes:
        """Workers, and once what starts them and cleans up behind them."""
        preload = self.start is Start.preload
        shared = SERVER_BYTES + libraries_bytes if preload else LEFT_BEHIND_BYTES
        return Processes(self._workers(num_envs), WORKER_BYTES, TRACKER_BYTES + shared)

    def _workers(self, num_envs: int) -> int:
        return min(num_envs, self.workers or os.cpu_count() or 1)


class SharedMemoryEnv(GroupEnv):
    """N environments in equal shares, one per worker process."""

    crosses = True

    def __init__(
        self,
        env: EnvMaker,
        num_envs: int,
        encoding: Encoding,
        memory: MemoryProfile,
        workers: int,
        choice: SharedMemory,
    ) -> None:
        self._processes: list[Any] = []
        self._connections: list[Connection] = []
        self._block: Block | None = None
        self.choice, self.restarts, self._seed = choice, 0, 0
        self._ended: dict[int, str] = {}
        """Workers that were found dead or silent and are not replaced yet, and why."""
        super().__init__(env, num_envs, encoding, memory)
        self._shares = shares(num_envs, workers)
        self._env, self._context = env, _context(env, choice.start)
        self._at_exit = partial(kill, self._processes)
        atexit.register(self._at_exit)
        try:
            for share in self._shares:
                connection, process = self._started(share)
                self._connections.append(connection)
                self._processes.append(process)
        except BaseException:  # of processes or open files there are no more
            self.close()
            raise

    def _started(self, share: tuple[int, int]) -> tuple[Connection, Any]:
        """A worker of some environments, and our end of the line to it."""
        assert self._block is not None
        ours, theirs = self._context.Pipe()
        args = (theirs, self._env, self._block.name, self.layout, share, os.getpid())
        with _without_main(self._env):
            process = self._context.Process(target=worker.work, args=args, daemon=True)
            process.start()
        theirs.close()
        return ours, process

    def _tried(self) -> str:
        """In a process of its own, as it may hang or end the process that it is in."""
        ours, theirs = self._context.Pipe(duplex=False)
        with _without_main(self._env):
            args = (theirs, self._env, os.getpid())
            process = self._context.Process(target=worker.try_out, args=args, daemon=True)
            process.start()
        theirs.close()
        patience = min(self.choice.timeout or TRIAL_SECONDS, TRIAL_SECONDS)
        try:
            if not ours.poll(patience):
                return f"a trial of them gave no answer for {patience:g} s"
            return str(ours.recv_bytes(), "utf-8")
        except EOFError:
            return "a trial of them ended its process"
        finally:
            kill([process])
            process.join(1)
            ours.close()

    def _allocate(self) -> dict[str, np.ndarray]:
        size = worker.block_bytes(self.layout)
        self._block = Block(create=True, size=size)
        try:
            os.posix_fallocate(self._block._fd, 0, size)  # type: ignore[attr-defined]
        except OSError as error:
            self._block.unlink()
            raise MemoryBudgetError(
                f"The shared block of {size:,} bytes does not fit into this machine's "
                f"shared memory ({error.strerror}). Choose vec=threads, or enlarge /dev/shm."
            ) from error
        return worker.arrays_in(self._block, self.layout)

    def _reset(self, seeds: list[int]) -> list[tuple[int, Report]]:
        self._seed = seeds[0]
        for connection, (first, end) in zip(self._connections, self._shares, strict=True):
            self._send(connection, pickle.dumps(seeds[first:end]))
        return self._reports()

    def _step(self) -> list[tuple[int, Report]]:
        for connection in self._connections:
            self._send(connection, worker.STEP)
        return self._reports()

    def _states(self) -> list[Any]:
        for connection in self._connections:
            self._send(connection, worker.STATE)
        answers = [self._told(i) for i in range(len(self._shares))]  # all: none may be left over
        if not all(isinstance(answer, list) for answer in answers):
            raise NotImplementedError("A worker could not tell them.")
        return [state for answer in answers for state in answer]

    def _told(self, index: int) -> Any:
        """What a worker says of its environments' state; None of one whose place is empty.

        Between two steps no episode can be cut, so that the next step replaces it.
        """
        try:
            return pickle.loads(self._answer(index))
        except (EOFError, OSError) as gone:
            self._ended.setdefault(index, self._end(index, gone))
            return None

    def _load(self, states: list[Any]) -> list[tuple[int, Report]]:
        for connection, (first, end) in zip(self._connections, self._shares, strict=True):
            self._send(connection, worker.LOAD + pickle.dumps(states[first:end]))
        return self._reports()

    def _send(self, connection: Connection, command: bytes) -> None:
        with suppress(OSError):  # a dead worker is found out when it should answer
            connection.send_bytes(command)

    def _reports(self) -> list[tuple[int, Report]]:
        return [(first, self._receive(i)) for i, (first, _) in enumerate(self._shares)]

    def _receive(self, index: int) -> Report:
        """A worker's report, or that of the one in its place; a traceback as an error."""
        first, end = self._shares[index]
        try:
            message = self._answer(index)
        except (EOFError, OSError) as gone:
            return self._replaced(index, gone)
        report = pickle.loads(message) if message else Report()
        if isinstance(report, Report):
            return report
        raise WorkerError(
            f"The worker of environments {first} to {end - 1} failed:\n{report}"
            "Choose vec=serial to see it in this process."
        )

    def _answer(self, index: int) -> bytes:
        """What a worker says.

        Raises:
            EOFError, OSError: it is gone; a TimeoutError, an OSError too: it says nothing.
        """
        connection = self._connections[index]
        if self.choice.timeout and not self._spoke(connection):
            raise TimeoutError(f"silent for {self.choice.timeout:g} s")
        return connection.recv_bytes()

    def _spoke(self, connection: Connection) -> bool:
        """Whether a worker answers in time; a run that was stopped as a whole loses one part."""
        left = self.choice.timeout
        while left > 0:
            if connection.poll(min(left, PART_SECONDS)):
                return True
            left -= PART_SECONDS
        return False

    def _replaced(self, index: int, gone: Exception) -> Report:
        """The first report of a new worker; what the old one's environments did is cut off.

        Their episodes count as cut by a limit, valued as the new ones' beginning.
        """
        first, end = self._shares[index]
        why = self._ended.pop(index, None) or self._end(index, gone)
        self.restarts += 1
        if self.restarts > self.choice.restarts:
            raise WorkerError(
                f"The worker of environments {first} to {end - 1} {why}, after vec.restarts="
                f"{self.choice.restarts} others. Lower algo.num_envs or vec.workers, or choose "
                "vec=serial to see the error in this process."
            ) from gone
        warnings.warn(
            f"The worker of environments {first} to {end - 1} {why}. It is replaced, their "
            f"episodes begin anew (vec.restarts {self.restarts} of {self.choice.restarts}).",
            stacklevel=2,
        )
        self._connections[index], self._processes[index] = self._started((first, end))
        seeds = env_seeds(self.num_envs, self._seed + self.restarts)[first:end]
        self._send(self._connections[index], pickle.dumps(seeds))
        report = self._receive(index)
        self._take(first, report)
        part = self.places.part(first, end)
        part.reward[:], part.terminated[:], part.truncated[:] = 0, False, True
        for name, values in part.final.items():
            values[...] = part.raw[name]
        return report

    def _end(self, index: int, gone: Exception) -> str:
        """Make an end of a worker; why, in words."""
        process, silent = self._processes[index], isinstance(gone, TimeoutError)
        self._connections[index].close()
        if silent:
            with suppress(OSError):  # to standard error, by faulthandler; of a stopped one, too
                os.kill(process.pid, worker.SHOW_STACK)
                os.kill(process.pid, signal.SIGCONT)
            process.join(0.5)
            process.kill()
        process.join(1)
        if silent:
            return (
                f"gave no answer for {self.choice.timeout:g} s (its stack is above, if it had one)"
            )
        return f"died without a word (exit code {process.exitcode}; -9 usually means out of memory)"

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
        kill(self._processes)
        atexit.unregister(self._at_exit)
        self._connections.clear()
        self._processes.clear()
        if self.choice.start is Start.fork:
            gc.unfreeze()
        if self._block is not None:
            self._block.unlink()
            self._block = None


def kill(processes: list[Any]) -> None:
    """End workers that nobody closed; they do not listen to anything softer."""
    for process in processes:
        process.kill()


def _context(env: EnvMaker, start: Start) -> Any:
    if start is Start.fork:
        gc.freeze()  # a collection would write to the pages of all objects, 40 MiB of them
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
