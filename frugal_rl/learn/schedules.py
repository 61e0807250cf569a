"""Values that change while a run goes on: constant, linear, warm-up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Protocol, runtime_checkable

from frugal_rl.ranges import Range, above, at_least, check_ranges

End = Annotated[float, at_least(0)]
"""A rate or a range may begin or end at nothing, not below."""


@runtime_checkable
class Schedule(Protocol):
    """A value as a function of the share of the run that is done."""

    def at(self, done: float) -> float:
        """The value when `done` in [0, 1] of all steps are taken."""


@dataclass(frozen=True)
class Constant:
    """The same value throughout."""

    value: Annotated[float, above(0)]

    def at(self, done: float) -> float:
        """The value."""
        return self.value


@dataclass(frozen=True)
class Linear:
    """From `start` to `end` in a straight line."""

    start: Annotated[float, above(0)]
    end: End = 0.0

    def at(self, done: float) -> float:
        """The value at a share of the run."""
        return self.start + done * (self.end - self.start)


@dataclass(frozen=True)
class WarmUp:
    """From `start` up to `peak` over the first `warm` of the run, then in a line to `end`."""

    peak: Annotated[float, above(0)]
    start: End
    end: End
    warm: Annotated[float, Range(0, 1, open_low=True, open_high=True)] = 0.25

    def __post_init__(self) -> None:
        check_ranges(self)

    def at(self, done: float) -> float:
        """The value at a share of the run."""
        if done < self.warm:
            return self.start + (self.peak - self.start) * done / self.warm
        return self.peak + (self.end - self.peak) * (done - self.warm) / (1.0 - self.warm)


def value_at(value: float | Schedule, done: float) -> float:
    """A plain number, or a schedule's value."""
    return value.at(done) if isinstance(value, Schedule) else float(value)
