"""Being asked to stop: Ctrl-C, SIGTERM, a closed terminal, Slurm's warning ahead of a job's end."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing import parent_process
from types import FrameType
from typing import Any

from frugal_rl.vec_env.following import once_gone

ASKING = tuple(
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGUSR1", "SIGHUP", "SIGXCPU")
    if hasattr(signal, name)
)
"""`#SBATCH --signal=USR1@120` warns two minutes ahead; SIGHUP comes when a terminal closes, SIGXCPU
each second once `ulimit -S -t` is used up."""
HUNG_UP = getattr(signal, "SIGHUP", None)

WARNED = getattr(signal, "SIGUSR1", None)
REPEATED = (WARNED, getattr(signal, "SIGXCPU", None))
"""Signals that may come again without meaning: at once."""

STOPS_WITH = "--stops-with="
"""Before the process whose end asks a command to stop, however it came: a sweep's, of its jobs."""


class StopAsked(KeyboardInterrupt):
    """A signal asked to stop where nothing is there that could be saved; ends like Ctrl-C."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


def stop_now(number: int, frame: FrameType | None) -> None:
    """The listener of a command that has not begun to train."""
    raise StopAsked(number)


def stop_in_words() -> None:
    """Let requests to stop end a command as Ctrl-C does: in words, with nothing left behind.

    A run that trains listens itself; who listened before, as submitit does, goes on to.
    """
    for number in asking():
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, stop_now)


def stop_with(process: int) -> None:
    """Be asked to stop when a process ends, however it ends."""
    once_gone(process, partial(os.kill, os.getpid(), signal.SIGTERM))


def stops_with_this() -> list[str]:
    """Words that let a command stop with this process, or the one that it works for."""
    work_for = parent_process()  # joblib's workers outlive a sweep while their job trains
    followed = [os.getpid(), *([work_for.pid] if work_for and work_for.pid else [])]
    return [f"{STOPS_WITH}{process}" for process in followed]


def stop_where_told(words: list[str]) -> None:
    """Be asked to stop with the processes that words name, and take those words away."""
    for word in [w for w in words if w.startswith(STOPS_WITH)]:
        words.remove(word)
        stop_with(int(word.removeprefix(STOPS_WITH)))


@contextmanager
def asked_to_stop() -> Iterator[threading.Event]:
    """An event that the signals set; a second one ends the run at once.

    A warning that somebody else listens to already, as submitit does to SIGUSR1, is passed on once
    the block has ended: what submitit does with it ends the process, and the run saves first.
    """
    event = threading.Event()

    def ask(number: int, frame: FrameType | None) -> None:
        if event.is_set() and number not in REPEATED:
            raise KeyboardInterrupt
        event.set()

    with listening(ask):
        yield event


@contextmanager
def passing_on(children: Callable[[], Iterable[int]]) -> Iterator[list[int]]:
    """Hand every request to stop on to the processes that train; holds those that came.

    They get SIGUSR1, which may come twice: a cluster or a terminal may have told them already.
    """
    asked: list[int] = []

    def hand_on(number: int, frame: FrameType | None) -> None:
        if asked and number not in REPEATED:
            raise KeyboardInterrupt
        asked.append(number)
        for pid in children():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGUSR1)

    with listening(hand_on):
        yield asked


def asking() -> tuple[int, ...]:
    """The signals to listen to: `nohup` and its like ignore SIGHUP, so that the run goes on."""
    return tuple(n for n in ASKING if n != HUNG_UP or signal.getsignal(n) != signal.SIG_IGN)


@contextmanager
def listening(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Listen to all requests to stop; who listened before gets a warning that came, afterwards."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may listen to signals
        return
    came: list[int] = []

    def hear(number: int, frame: FrameType | None) -> None:
        came.append(number)
        handler(number, frame)

    before: dict[int, Any] = {number: signal.signal(number, hear) for number in asking()}
    try:
        yield
    finally:
        for number, theirs in before.items():
            signal.signal(number, theirs)
    theirs = before.get(WARNED) if WARNED is not None else None
    if WARNED in came and callable(theirs) and theirs is not stop_now:
        theirs(WARNED, None)
