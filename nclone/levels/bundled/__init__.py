"""Levels of our own, one per skill: level bytes, the drawing they come from, inputs that win.

`python -m nclone.levels.bundled` writes the bytes anew from the drawings, and searches inputs for
levels that have none that win.
"""

from __future__ import annotations

import difflib
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nclone.errors import LevelError
from nclone.levels.level import Level, load_level
from nclone.replay.inputs import actions_of_inputs

FOLDER = Path(__file__).parent
_NAMES = (
    "walk",
    "jump",
    "fall",
    "switch_first",
    "slope",
    "mines",
    "wall_jump",
    "one_way",
    "launch_pad",
    "locked_door",
    "trap_door",
    "thwump",
    "drone",
    "death_ball",
    "bounce_block",
    "long_maze",
)


def bundled_names() -> tuple[str, ...]:
    """Names of all bundled levels, roughly from easy to hard."""
    return _NAMES


@cache
def bundled_level(name: str) -> Level:
    """A bundled level by name."""
    if name not in _NAMES:
        near = difflib.get_close_matches(name, _NAMES, 1) or [_NAMES[0]]
        raise LevelError(
            f"There is no bundled level {name!r}; did you mean {near[0]!r}? All of them: "
            f"{', '.join(_NAMES)}."
        )
    return load_level(FOLDER / f"{name}.map")


def winning_inputs(name: str) -> NDArray[np.uint8]:
    """[T] actions 0..5, one per frame, that complete a bundled level on frame T."""
    bundled_level(name)
    return actions_of_inputs((FOLDER / f"{name}.inputs").read_bytes())
