"""Winning inputs of training levels: stored with them, or found by a search."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from frugal_rl.errors import DataError
from nclone.levels.bundled import bundled_names, winning_inputs
from nclone.levels.sources import MIRRORED, open_levels, pool_members
from nclone.search.proof import Prover

if TYPE_CHECKING:
    from nclone.config import NppConfig


def solutions(config: NppConfig) -> list[np.ndarray]:
    """Winning actions, one per step, for each training level of a configuration.

    Levels from files are searched; those that the search does not win have no actions.
    """
    found: list[np.ndarray] = []
    for name in config.levels:
        members = pool_members(name)
        if members is not None:
            found += [m.inputs.per_step(config.frame_skip) for m in members]
        elif name in bundled_names():
            found.append(bundled_actions(name, config.frame_skip))
        else:
            found += searched(name, _stamp(name), config.skip_unreadable, config.frame_skip)
    return found


@lru_cache(maxsize=64)
def searched(
    name: str, stamp: int, skip_unreadable: bool, frame_skip: int
) -> tuple[np.ndarray, ...]:
    """[steps] uint8 for each level of a file or folder: what a search finds, or nothing.

    `stamp` tells contents apart that were found under the same name.
    """
    prover, found = Prover(), []
    levels = open_levels([name], "train", skip_unreadable)
    for level in levels:
        inputs = prover.solution(level)
        found.append(np.zeros(0, np.uint8) if inputs is None else inputs.per_step(frame_skip))
    if not any(len(actions) for actions in found):
        raise DataError(
            f"The search wins none of the {len(levels)} levels of {name}, so there is nothing to "
            "imitate; use algo=ppo, or add levels that it can win."
        )
    return tuple(found)


def _stamp(name: str) -> int:
    """When the youngest file of a name was changed."""
    path = Path(name.removeprefix(MIRRORED))
    files = [path, *path.iterdir()] if path.is_dir() else [path]
    return max((file.stat().st_mtime_ns for file in files if file.exists()), default=0)


def bundled_actions(name: str, frame_skip: int) -> np.ndarray:
    """[steps] uint8: the inputs of a bundled level, which change with any frame.

    Raises:
        DataError: they change inside a step of `frame_skip` frames.
    """
    frames = np.asarray(winning_inputs(name))
    steps = frames[::frame_skip]
    if not np.array_equal(np.repeat(steps, frame_skip)[: len(frames)], frames):
        raise DataError(
            f"The winning inputs of '{name}' change inside a step of {frame_skip} frames; "
            "clone it with env.frame_skip=1."
        )
    return steps
