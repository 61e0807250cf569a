"""Kernels of a kind of run that is new here, compiled while its plan measures other things."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from frugal_rl.errors import ConfigError
from frugal_rl.memory.child import ask_child, busy
from frugal_rl.memory.kernels import mostly_ready
from frugal_rl.memory.machine import GIB, find_limit

if TYPE_CHECKING:
    from frugal_rl.run.config import RunConfig

ROOM_BYTES = 3 * GIB
"""Of the main job's first minute the whole tree held 1,050 MiB; other environments are larger."""
HEARS_SECONDS = 0.2
"""A wait without an end is not interrupted by a signal that another thread has met."""
ALL_KERNELS, OBSERVING = "frugal_rl.run.dry_run", "frugal_rl.run.observe_once"


@contextmanager
def compiled_meanwhile(run: RunConfig, start: Callable[[str], None]) -> Iterator[None]:
    """Let processes of their own compile a run's kernels while the block measures its learner.

    One goes through a tiny run; another through what a reset calls, where the environment says how
    that can be had without what its steps call (`EnvConfig.observed`). Both are over when the block
    is, and one that fails leaves the word to the run. On one core, where memory is short, or where
    another kind of run has compiled most of it, the block runs alone: what is missing is compiled
    later, one kernel after the other.

    `start` lets a child begin that is asked afterwards: the tiny run that is measured, as soon as
    one of the two cores is free.
    """
    limit = find_limit()
    small = limit.cores < 2 or min(limit.ram_bytes, limit.free_ram_bytes) < ROOM_BYTES
    if small or mostly_ready(run):
        yield
        return
    stop = threading.Event()
    modules = [ALL_KERNELS] + ([OBSERVING] if hasattr(run.env, "observed") else [])

    def compiled(module: str) -> None:
        with suppress(ConfigError):
            ask_child(module, run, "Compiling", aloud=module is ALL_KERNELS, stop=stop)
        if module is OBSERVING and not stop.is_set():
            start(ALL_KERNELS)

    with ThreadPoolExecutor(len(modules), "compiling") as pool, busy() as over:
        left = [pool.submit(compiled, module) for module in modules]
        for each in left:
            each.add_done_callback(lambda _: over() if all(e.done() for e in left) else None)
        try:
            yield
            while wait(left, HEARS_SECONDS).not_done:
                pass  # a signal that the kernel gave to another thread is heard here
        except BaseException:
            stop.set()
            raise
