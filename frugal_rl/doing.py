"""What goes on at this moment, in words: told where it happens, read by whoever shows it.

    with doing("updating", 96, "minibatches") as work:
        for batch in batches:
            ...
            work.done += 1

Costs an addition per tick. Nobody need listen: without a terminal nothing is printed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class Work:
    """One thing that is being done; `of` is 0 where its end is not known."""

    words: str
    of: int = 0
    unit: str = ""
    done: int = 0
    since: float = field(default_factory=time.monotonic)

    def __str__(self) -> str:
        """As in "evaluating the policy, 40 of 64 episodes"."""
        if not self.of:
            return self.words
        return f"{self.words}, {min(self.done, self.of):,} of {self.of:,} {self.unit}".rstrip()

    def timed(self) -> str:
        """The same, with the seconds since it began."""
        return f"{self}, {time.monotonic() - self.since:.0f} s"


_NOW: list[Work] = []
_HUSHED: list[bool] = []


@contextmanager
def hushed() -> Iterator[None]:
    """Inside the block nobody wants to hear what goes on, not even of a process that is asked."""
    _HUSHED.append(True)
    try:
        yield
    finally:
        _HUSHED.pop()


def may_speak() -> bool:
    """Whether somebody wants to hear what goes on."""
    return not _HUSHED


@contextmanager
def doing(words: str, of: int = 0, unit: str = "") -> Iterator[Work]:
    """Say what goes on inside the block; what is said inside it again is more exact."""
    work = Work(words, of, unit)
    _NOW.append(work)
    try:
        yield work
    finally:
        _NOW.remove(work)


def now() -> Work | None:
    """The most exact thing that is being done; None where nobody said anything."""
    return _NOW[-1] if _NOW else None
