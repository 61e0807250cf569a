"""A worker process: some environments that write into a shared block. Imports no torch."""

from __future__ import annotations

import faulthandler
import os
import pickle
import signal
import traceback
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.shared_memory import SharedMemory
from typing import TYPE_CHECKING, Any

import numpy as np

from frugal_rl.vec_env.following import once_gone
from frugal_rl.vec_env.group import Layout, places_of, singles_of, trial

if TYPE_CHECKING:
    from frugal_rl.vec_env.backend import EnvMaker
    from frugal_rl.vec_env.single import Report

STEP, CLOSE, STATE, LOAD = b"s", b"c", b"t", b"l"
"""Commands, `LOAD` followed by pickled states; anything else is a pickled list of seeds, and means:
start all episodes."""
SHOW_STACK = signal.SIGUSR1
"""The signal upon which a worker writes its stack to standard error."""
ALIGN_BYTES = 64


def block_bytes(layout: Layout) -> int:
    """Bytes of all arrays of a layout, each beginning on a cache line."""
    return max(1, sum(_padded(shape, dtype) for shape, dtype in layout.values()))


def _padded(shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
    size = int(np.prod(shape)) * dtype.itemsize
    return -(-size // ALIGN_BYTES) * ALIGN_BYTES


def arrays_in(block: SharedMemory, layout: Layout) -> dict[str, np.ndarray]:
    """The arrays of a layout as views of a shared block."""
    arrays, at = {}, 0
    for name, (shape, dtype) in layout.items():
        arrays[name] = np.ndarray(shape, dtype, block.buf, at)
        at += _padded(shape, dtype)
    return arrays


def work(
    connection: Connection,
    env: EnvMaker,
    block_name: str,
    layout: Layout,
    share: tuple[int, int],
    run: int,
) -> None:
    """Serve environments [first, end) of `share` until told to close or the other side is gone.

    `run` is the process that trains.
    """
    once_gone(run, _end)
    # Ctrl-C, Slurm's SIGTERM and a closed terminal reach the whole group: the main process
    # decides when we end.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    faulthandler.register(SHOW_STACK, all_threads=True)
    block = SharedMemory(block_name)
    try:
        _serve(connection, env, arrays_in(block, layout), *share)
    except EOFError:
        return
    except BaseException:
        with suppress(OSError):  # the other side has given this worker up
            connection.send_bytes(pickle.dumps(traceback.format_exc()))


def try_out(connection: Connection, env: EnvMaker, run: int) -> None:
    """Tell why environments cannot be continued from their state, if that is so, and end."""
    once_gone(run, _end)
    connection.send_bytes(trial(env).encode())


def _end() -> None:
    """At once: an environment that never comes back would not see that nobody listens any more."""
    os._exit(1)


def _serve(
    connection: Connection, env: EnvMaker, arrays: dict[str, np.ndarray], first: int, end: int
) -> None:
    places = places_of(arrays).part(first, end)
    singles = singles_of(env, end - first, places, first)
    while (command := connection.recv_bytes()) != CLOSE:
        if command == STATE:
            connection.send_bytes(pickle.dumps(singles.state()))
            continue
        if command.startswith(LOAD):
            report = singles.load(pickle.loads(command[len(LOAD) :]))
        else:
            report = singles.step() if command == STEP else singles.reset(pickle.loads(command))
        connection.send_bytes(_packed(report))
    singles.close()


def _packed(report: Report) -> bytes:
    return pickle.dumps(report) if report else b""
