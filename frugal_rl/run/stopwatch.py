"""Seconds that a run spends in each phase."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

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

    @contextmanager
    def phase(self, phase: Phase) -> Iterator[None]:
        """Time what happens inside."""
        began = time.perf_counter()
        with self.inner(phase):
            yield
        self.times[phase].add(time.perf_counter() - began)
