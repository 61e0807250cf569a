"""What a throw-away process found: the learner's bytes, and those of a bare process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from frugal_rl.run.config import RunConfig


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


ProbeUpdate = Callable[["RunConfig"], Probe]
