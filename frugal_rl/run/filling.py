"""A replay that will not fit, told while it fills and not once the budget is met."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from frugal_rl.memory import usage
from frugal_rl.memory.choices import RolloutLocation
from frugal_rl.memory.machine import find_limit
from frugal_rl.memory.part import human

if TYPE_CHECKING:
    from frugal_rl.run.config import RunConfig


@dataclass
class Filling:
    """Judges a run by what its replay will take; warns once."""

    most_bytes: int
    """Where the watchdog ends the run."""
    source: str
    said: bool = False

    @classmethod
    def of(cls, run: RunConfig) -> Filling:
        """Of a run; a mapped replay lies on the disk."""
        limit = find_limit(run.memory.budget_gib)
        mapped = run.memory.rollout_location is RolloutLocation.memmap
        most = int(run.memory.watchdog_share * limit.ram_bytes)
        return cls(most, limit.ram_source, said=mapped)

    def note(self, metrics: Mapping[str, float]) -> list[str]:
        """What there is to say after one iteration."""
        full = metrics.get("memory/replay_full_bytes")
        if full is None or self.said:
            return []
        coming = int(full - metrics["memory/replay_bytes"])
        whole = usage.resident_bytes() + coming
        if whole <= self.most_bytes:
            return []
        self.said = True
        return [
            f"at {human(int(full))} once it is full, the replay is {human(coming)} larger than "
            f"now, and the run will hold {human(whole)}: it is saved and ended at "
            f"{human(self.most_bytes)} ({self.source}). memory.rollout_location=memmap keeps the "
            "replay's rows in a file; this run can be resumed with it."
        ]
