"""The choices of a mine environment, in the words of its configuration."""

from __future__ import annotations

from enum import Enum


class Kind(Enum):
    """Which scheduling problem is played."""

    cpit = "cpit"
    """One destination per block; earliest feasible period."""
    pcpsp = "pcpsp"
    """The action chooses the destination."""
    daily = "daily"
    """A tonnage rate per day instead of period limits."""


class Actions(Enum):
    """What one action moves."""

    column = "column"
    block = "block"
    cone = "cone"
    bench = "bench"


class Clock(Enum):
    """How a block gets its period."""

    earliest = "earliest"
    period = "period"
