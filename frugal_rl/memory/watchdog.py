"""The watchdog: stops a run with a checkpoint before the kernel kills it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from frugal_rl.invocation import command
from frugal_rl.memory.machine import find_limit
from frugal_rl.memory.meter import MemoryMeter
from frugal_rl.memory.part import human

if TYPE_CHECKING:
    from frugal_rl.memory.plan import Plan
    from frugal_rl.run.config import RunConfig


@dataclass(frozen=True)
class Watchdog:
    """Compares what the tree held with a share of the limit; call it between iterations.

    A pretended machine (`hardware.ram_gib`) limits the plan only; the watchdog guards the budget
    and the machine as it is.
    """

    meter: MemoryMeter
    limit_bytes: int
    source: str
    share: float
    planned_bytes: int = 0

    @classmethod
    def of(cls, run: RunConfig, meter: MemoryMeter, plan: Plan | None = None) -> Watchdog:
        """The watchdog of a run."""
        limit = find_limit(run.memory.budget_gib)
        planned = plan.ram_bytes if plan else 0
        return cls(meter, limit.ram_bytes, limit.ram_source, run.memory.watchdog_share, planned)

    def __call__(self) -> str:
        """Advice once the share is passed, an empty string before."""
        held = max(self.meter.peak_bytes, self.meter.held_bytes())
        if held <= self.share * self.limit_bytes:
            return ""
        growth = self.meter.growth
        why = f" It grows: {growth.verdict}." if growth.leak else ""
        return (
            f"The run held {human(held)}, {held / self.limit_bytes:.0%} of the "
            f"{human(self.limit_bytes)} of {self.source} (planned: {human(self.planned_bytes)})."
            f"{why} Run {command('plan')} with the same words for ways to fit, or raise "
            f"memory.watchdog_share={self.share:g}."
        )
