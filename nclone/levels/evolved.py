"""Levels that were evolved while a policy learned, as its checkpoint keeps them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from frugal_rl.late import Late
from nclone.errors import LevelError
from nclone.levels.level import Level, load_level

checkpoints = Late("frugal_rl.run.checkpoints")
"""Loads torch, which a list of levels does not need."""
EVOLVED = "evolved:"
"""Before a run folder or checkpoint: the levels that it evolved."""


def levels_in(state: Mapping[str, Any]) -> list[Level]:
    """The levels of a `LevelEvolution.state`, in the order in which they joined.

    Raises:
        LevelError: bytes that are no level.
    """
    data, first, levels = bytes(np.asarray(state["evolved"], np.uint8)), 0, []
    for end in state["ends"]:
        levels.append(load_level(data[first : int(end)], "a level of the checkpoint"))
        first = int(end)
    return levels


def evolved_levels(run: str) -> list[Level]:
    """What a run evolved: its folder, or one of its checkpoints.

    Raises:
        CheckpointError: there is no sound checkpoint.
        LevelError: the run evolved none.
    """
    found: Any = checkpoints.load_checkpoint(run)
    for name in ("learner", "collector", "common"):
        found = found.get(name) if isinstance(found, Mapping) else None
    levels = levels_in(found) if isinstance(found, Mapping) and "evolved" in found else []
    if not levels:
        raise LevelError(
            f"{run} evolved no levels; train with env.evolved=512 for some, or name another run "
            f"as {EVOLVED}RUN."
        )
    return levels
