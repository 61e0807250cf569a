"""Seconds that a run spends in each phase."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from frugal_rl.memory.part import Phase


class Stopwatch:
    """Times phases; the first time of each counts only while there is no other: it loads much."""

    def __init__(self, phase: Callable[[Phase], AbstractContextManager[Any]]) -> None:
        """`phase` is entered as well: the meter's."""
        self.inner = phase
        self.took: dict[Phase, list[float]] = {}

    @contextmanager
    def phase(self, phase: Phase) -> Iterator[None]:
        """Time what happens inside."""
        began = time.perf_counter()
        with self.inner(phase):
            yield
        self.took.setdefault(phase, []).append(time.perf_counter() - began)

    def last(self, phase: Phase) -> float:
        """Seconds of the last time; 0.0 if there was none."""
        return self.took.get(phase, [0.0])[-1]

    def mean(self, phase: Phase) -> float:
        """Seconds of a phase on average, without the first; 0.0 if there was none."""
        times = self.took.get(phase, [0.0])
        counted = times[1:] or times
        return sum(counted) / len(counted)
