"""The memory profile: every saving that the field knows, as one named switch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from frugal_rl.memory.choices import (
    Allocator,
    Buffers,
    Graphs,
    LevelData,
    LibraryPages,
    Precision,
    Rendering,
    RolloutLocation,
    Shuffle,
    Trajectories,
)
from frugal_rl.observation.choices import FrameStack, Label, Storage
from frugal_rl.ranges import SHARE, above, at_least, check_ranges


@dataclass(frozen=True)
class MemoryProfile:
    """What a run may hold at once. Composed from conf/memory/*.yaml."""

    profile: str = "custom"
    """Name of the file this was composed from."""
    label: Label = Label.lossless
    """What the profile costs: lossless, precision or capacity."""
    storage: Storage = Storage.lossless
    """How each field is stored; the network always computes in float32."""
    internal_observations: bool = False
    """True carries private fields to the buffer."""
    frame_stack: FrameStack = FrameStack.once
    """How windows of past rows are stored."""
    level_data: LevelData = LevelData.shared
    """Who owns static data."""
    buffers: Buffers = Buffers.reused
    """Whether environments reuse the arrays they hand out."""
    graphs: Graphs = Graphs.lazy
    """When graphs are built."""
    rendering: Rendering = Rendering.observed
    """What is drawn."""
    animation: bool = False
    """True keeps the full-size animation of the guide's renderer (baseline only)."""
    rollout_location: RolloutLocation = RolloutLocation.ram
    """Where the rollout lives."""
    shuffle: Shuffle = Shuffle.gather
    """How minibatches are drawn."""
    trajectories: Trajectories = Trajectories.preallocated
    """How whole trajectories are merged."""
    precision: Precision = Precision.float32
    """Arithmetic of the network."""
    micro_batch: Annotated[int, at_least(0)] = 0
    """Samples per backward pass; 0 means the whole minibatch."""
    gradient_checkpointing: bool = False
    """True recomputes activations in the backward pass."""
    allocator: Allocator = Allocator.pinned
    """Thresholds of the C allocator."""
    library_pages: LibraryPages = LibraryPages.given_back
    """What becomes of the pages of libraries that only starting up touched."""
    budget_gib: Annotated[float | None, above(0)] = None
    """Refuse to start a run that is planned above this; None means what the machine has."""
    max_hours: Annotated[float | None, above(0)] = None
    """Refuse to start a run that is planned to take longer; None means as long as it takes."""
    allow: tuple[Label, ...] = (Label.lossless, Label.precision)
    """Kinds of saving that `memory=auto` may choose."""
    watchdog_share: Annotated[float, SHARE] = 0.95
    """Share of the limit at which a run saves a checkpoint and stops with advice."""

    def __post_init__(self) -> None:
        check_ranges(self, "memory")
