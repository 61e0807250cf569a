"""How long a thread waited for a core: what other programs take of a machine is no run's time."""

from __future__ import annotations

SCHEDULE = "/proc/thread-self/schedstat"
"""Nanoseconds on a core, nanoseconds in the queue for one, turns."""


def waited_seconds() -> float:
    """How long the calling thread was ready and had to wait for a core; 0 where nobody knows."""
    try:
        with open(SCHEDULE, "rb", buffering=0) as file:
            return int(file.read(96).split()[1]) * 1e-9
    except (OSError, IndexError):
        return 0.0
