"""The words in which a user chooses the switches of the memory profile."""

from __future__ import annotations

from enum import Enum

AUTO = "auto"
"""The profile that stands for the cheapest savings that fit."""


class LevelData(Enum):
    """Who owns the static data of a level, mine or cartridge."""

    per_env = "per_env"
    shared = "shared"


class Buffers(Enum):
    """Whether an environment hands out fresh arrays or views into reused ones."""

    new = "new"
    reused = "reused"


class Graphs(Enum):
    """Whether graphs are built always, or only where a field needs them."""

    always = "always"
    lazy = "lazy"


class Rendering(Enum):
    """Whether a full-size surface is drawn, or only the arrays that are observed."""

    full = "full"
    observed = "observed"


class RolloutLocation(Enum):
    """Where the rollout lives."""

    ram = "ram"
    pinned = "pinned"
    device = "device"
    memmap = "memmap"


class Shuffle(Enum):
    """How a minibatch is drawn: from a flattened copy, or by index."""

    copy = "copy"
    gather = "gather"


class Trajectories(Enum):
    """How whole trajectories of several workers are merged."""

    list = "list"
    preallocated = "preallocated"
    views = "views"
    streaming = "streaming"
    hybrid = "hybrid"


class Precision(Enum):
    """Arithmetic of the network."""

    float32 = "float32"
    bf16 = "bf16"


class Allocator(Enum):
    """The C allocator's thresholds: the library's, or pinned at start-up."""

    default = "default"
    pinned = "pinned"


class LibraryPages(Enum):
    """Resident pages of libraries that only starting up touched: kept, or given back."""

    kept = "kept"
    given_back = "given_back"
