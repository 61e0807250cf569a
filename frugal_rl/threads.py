"""How threads wait for each other.

OpenMP's threads spin at the end of each parallel loop. Beside busy processes the one that is
waited for does not run while the others spin on its core: an update on two threads took thirty
times as long as with threads that soon sleep. Threads that sleep at once cost a fifth of the speed
of a quiet machine; a short spin costs nothing on either.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

SPINS = "3000"
"""Some microseconds; libgomp's own is 300,000 or without end."""
SET_BY_USERS = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")


def sleep_while_waiting() -> None:
    """Let OpenMP's threads soon sleep, unless the user said otherwise; before torch is imported."""
    if not any(name in os.environ for name in SET_BY_USERS):
        os.environ["GOMP_SPINCOUNT"] = SPINS


KERNELS = "NUMBA_NUM_THREADS"
"""Threads that Numba starts in a process, read when it is loaded."""


@contextmanager
def cores_shared(processes: int) -> Iterator[None]:
    """Let kernels of processes that start in the block have their part of this machine's cores.

    As many threads as cores in each of them would wait for each other at the end of every loop.
    """
    if processes == 1 or KERNELS in os.environ:
        yield
        return
    os.environ[KERNELS] = str(max(1, (os.cpu_count() or 1) // processes))
    try:
        yield
    finally:
        del os.environ[KERNELS]
