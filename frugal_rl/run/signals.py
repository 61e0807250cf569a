"""Being asked to stop: Ctrl-C, SIGTERM, and the warning of Slurm before a job's time is up."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

ASKING = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGUSR1") if hasattr(signal, name)
)
"""`#SBATCH --signal=USR1@120` warns two minutes ahead."""


@contextmanager
def asked_to_stop() -> Iterator[threading.Event]:
    """An event that the signals set; a second one ends the run at once.

    A signal that somebody else listens to already, as submitit does to SIGUSR1, is passed on.
    """
    event = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield event  # only the main thread may listen to signals
        return
    before: dict[int, Any] = {}

    def ask(number: int, frame: FrameType | None) -> None:
        theirs = before.get(number)
        if number == getattr(signal, "SIGUSR1", None):
            event.set()
            if callable(theirs):
                theirs(number, frame)
            return
        if event.is_set():
            raise KeyboardInterrupt
        event.set()

    for number in ASKING:
        before[number] = signal.signal(number, ask)
    try:
        yield event
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
