"""Seconds that a run spends in each phase: by the clock, and of the processor.

What other programs take of the machine is in neither: the time that this thread was ready to run
and had no core is counted apart, where the kernel tells it.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from frugal_rl.memory.waiting import waited_seconds

if TYPE_CHECKING:
    from frugal_rl.memory.part import Phase


@dataclass
class Times:
    """How often something was done, and the seconds of the first and the last time and of all."""

    count: int = 0
    first: float = 0.0
    last: float = 0.0
    total: float = 0.0

    def add(self, seconds: float) -> None:
        """It was done once more."""
        self.first = self.first if self.count else seconds
        self.last = seconds
        self.count += 1
        self.total += seconds

    @property
    def mean(self) -> float:
        """Seconds on average, without the first time where there are others."""
        return (self.total - self.first) / (self.count - 1) if self.count > 1 else self.first


class Stopwatch:
    """Times phases; the first time of each counts only while there is no other: it loads much."""

    def __init__(self, phase: Callable[[Phase], AbstractContextManager[Any]]) -> None:
        """`phase` is entered as well: the meter's."""
        self.inner = phase
        self.times: defaultdict[Phase, Times] = defaultdict(Times)
        self.alone: defaultdict[Phase, Times] = defaultdict(Times)
        """The same without waiting for a core: what the clock shows on a machine of its own."""
        self.processor: defaultdict[Phase, Times] = defaultdict(Times)
        """Of this process, all threads together; worker processes are not in it."""

    @contextmanager
    def phase(self, phase: Phase) -> Iterator[None]:
        """Time what happens inside."""
        began, used, waited = time.perf_counter(), time.process_time(), waited_seconds()
        with self.inner(phase):
            yield
        took = time.perf_counter() - began
        self.times[phase].add(took)
        self.alone[phase].add(max(0.0, took - (waited_seconds() - waited)))
        self.processor[phase].add(time.process_time() - used)
