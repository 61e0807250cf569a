"""What a throw-away process found: the learner's bytes, and those of a bare process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from frugal_rl.memory.duration import Line, Pace

if TYPE_CHECKING:
    from frugal_rl.run.config import RunConfig


class Planning(Enum):
    """Where a plan's numbers come from that no shape tells."""

    arithmetic = "arithmetic"
    """Operations traced without memory, and libraries measured once per installation."""
    probe = "probe"
    """A tiny run and real updates of this very run, in processes of their own."""


@dataclass(frozen=True)
class Probe:
    """An update on B samples peaks at `fixed_bytes + bytes_per_sample * B` above a bare process.

    Parameters, gradients and optimiser are counted apart, and so is the minibatch in stored form.
    On an accelerator these are device bytes. In memory `fixed_bytes` is part of what a tiny run
    holds, and not counted twice.
    """

    fixed_bytes: int
    bytes_per_sample: float
    parameter_bytes: int
    gradient_bytes: int
    optimizer_bytes: int
    forward_bytes_per_sample: float = 0.0
    """Acting on one observation, without gradients."""
    traced: bool = False
    """Whether it is arithmetic on shapes, or was measured."""
    step_bytes: int = 0
    """What the optimiser's step makes; the activations are gone by then."""
    heap_bytes_per_sample: float = 0.0
    """Free blocks in the heap that updates leave to later ones; 0 where no trace shows it."""
    first_bytes: int = 0
    """What a first small update holds that a tiny run of the same network holds as well."""
    pace: Pace | None = None
    """Seconds of its update and its acting on this machine."""

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    @classmethod
    def of_json(cls, values: dict[str, Any]) -> Probe:
        """From `as_json()`."""
        pace = values.get("pace")
        lines = {name: Line(**line) for name, line in pace.items()} if pace else None
        return cls(**{**values, "pace": Pace(**lines) if lines else None})


ProbeUpdate = Callable[["RunConfig"], Probe]
