"""One line of the plan: a named part of the run's memory, its bytes and how sure they are."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

REPLAY = "replay: "
"""How the names of a replay's parts begin."""


class Confidence(Enum):
    """Where a part's bytes come from."""

    exact = "exact"
    """Arithmetic on shapes and dtypes: equals what is allocated, to the byte."""
    traced = "traced"
    """The network's operations run without memory: what their tensors would hold."""
    probed = "probed"
    """A small measurement on this machine, scaled."""
    calibrated = "calibrated"
    """A constant measured once for this kind of installation."""


class Phase(Enum):
    """The phases of a run; each has a peak of its own."""

    start = "start"
    """Until the first step: libraries and kernels load, environments and learner are built."""
    rollout = "rollout"
    update = "update"
    evaluation = "evaluation"
    checkpoint = "checkpoint"


ALL_PHASES = frozenset(Phase)
ONCE_STARTED = ALL_PHASES - {Phase.start}


class Kind(Enum):
    """What a part is, so that nobody has to know it by its name."""

    process = "process"
    environment = "environment"
    evaluation = "evaluation"
    windows = "windows"
    rollout = "rollout"
    copy = "copy"
    """What flattening holds beside the rollout."""
    minibatch = "minibatch"
    parameters = "parameters"
    gradients = "gradients"
    optimiser = "optimiser"
    activations = "activations"
    learner = "learner"
    """What else a learner holds."""
    checkpoint = "checkpoint"


@dataclass(frozen=True)
class Part:
    """A part of the run's memory.

    `formula` shows the arithmetic with its numbers; `shared` marks memory that all environments
    read; a part counts towards the peak of each phase in `phases`.
    """

    name: str
    formula: str
    ram_bytes: int = 0
    vram_bytes: int = 0
    shared: bool = False
    confidence: Confidence = Confidence.exact
    phases: frozenset[Phase] = ALL_PHASES
    kind: Kind = Kind.environment
    source: str = ""
    """Where the bytes are allocated, as `module:name`; empty where nobody said."""

    def __post_init__(self) -> None:
        for name in ("ram_bytes", "vram_bytes"):  # NumPy's numbers are not written as JSON
            object.__setattr__(self, name, int(getattr(self, name)))


def human(count: float) -> str:
    """Bytes in the unit that suits them: `1.5 GiB`."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(count) < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:,.1f} TiB"
