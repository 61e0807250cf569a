"""The memory guide's optimisations of an N++ environment, one switch each.

`memory=baseline` turns all of them off, by the profile's general switches; `env.guide.<name>`
turns one on or off alone. The eleventh, half-precision state, is `env.fields.game_state=half`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

from frugal_rl.memory.choices import Buffers, Graphs, LevelData, Rendering

if TYPE_CHECKING:
    from frugal_rl.memory.profile import MemoryProfile


@dataclass(frozen=True)
class Guide:
    """True is the optimised side, false the guide's "before", None what the profile says."""

    views: bool | None = None
    """Observations are views, not copies (memory.buffers)."""
    buffer_reuse: bool | None = None
    """Frames are written into arrays that exist (memory.buffers)."""
    frame_cache: bool | None = None
    """The converted screen is kept until it changes (memory.rendering)."""
    single_conversion: bool | None = None
    """The screen is converted once per observation, not once per frame (memory.rendering)."""
    sparse_entities: bool | None = None
    """Entity states are cut early, and inactive ones left out (memory.buffers)."""
    shared_levels: bool | None = None
    """One copy of level data for all environments (memory.level_data)."""
    lazy_graphs: bool | None = None
    """Graphs are built only where they are observed (memory.graphs)."""
    small_surface: bool | None = None
    """Nothing but the observed arrays is drawn (memory.rendering)."""
    no_animation: bool | None = None
    """No table of animation frames (memory.animation)."""
    reachability_cache: bool | None = None
    """Reachability features are kept in a least-recently-used table (memory.graphs)."""

    @property
    def is_before(self) -> bool:
        """Whether any optimisation is off."""
        return any(getattr(self, f.name) is False for f in fields(self))


def switches(guide: Guide, memory: MemoryProfile) -> Guide:
    """Every switch decided: as named, else as the memory profile says.

    A profile that only hands out new arrays (`memory.buffers=new`) keeps the native batch, which
    knows that switch itself.
    """
    drawn = memory.rendering is Rendering.observed
    lazy = memory.graphs is Graphs.lazy
    shared = memory.level_data is LevelData.shared
    reused = memory.buffers is Buffers.reused or (
        drawn and lazy and shared and not memory.animation
    )
    profile = {
        "views": reused,
        "buffer_reuse": reused,
        "sparse_entities": reused,
        "frame_cache": drawn,
        "single_conversion": drawn,
        "small_surface": drawn,
        "shared_levels": shared,
        "lazy_graphs": lazy,
        "reachability_cache": lazy,
        "no_animation": not memory.animation,
    }
    named = {f.name: getattr(guide, f.name) for f in fields(guide)}
    return replace(guide, **{n: profile[n] if v is None else v for n, v in named.items()})
