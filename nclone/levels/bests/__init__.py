"""The fastest known wins: replays of the bundled levels, kept here, and stored solutions of others.

`python -m nclone.levels.bests [rounds] [level ...]` searches for faster ones and prints
the table; `python scripts/record.py env=nclone verify=nclone/levels/bests` plays them again.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from frugal_rl.errors import ConfigError
from frugal_rl.invocation import command
from nclone.levels.bundled import bundled_level, bundled_names, winning_inputs
from nclone.levels.sources import open_levels, winning_actions
from nclone.replay.files import COMPACT, read_replay

if TYPE_CHECKING:
    from nclone.levels.level import Level

FOLDER = Path(__file__).parent


@cache
def best_actions(name: str) -> np.ndarray:
    """[T] actions 0..5 per frame: the fastest known win of a bundled level."""
    path, stored = FOLDER / f"{name}{COMPACT}", np.asarray(winning_inputs(name))
    if not path.is_file():
        return stored
    found = read_replay(path).actions
    return found if len(found) < len(stored) else stored


@cache
def _bundled() -> dict[str, int]:
    """Frames of the best win by level key."""
    return {bundled_level(name).key: len(best_actions(name)) for name in bundled_names()}


def best_frames(levels: Sequence[Level], named: Sequence[tuple[str, str]]) -> np.ndarray:
    """[levels] int64: frames of the best known win of each.

    Args:
        levels: what is played.
        named: names, with the split, that together stand for these levels.

    Raises:
        ConfigError: a level without a known win.
    """
    known: dict[str, int] = {}
    for name, split in dict.fromkeys(named):
        actions = winning_actions(name, split)
        for level, won in zip(
            open_levels([name], split), actions or (), strict=actions is not None
        ):
            known[level.key] = min(len(won), known.get(level.key, len(won)))
    known |= {key: min(frames, known.get(key, frames)) for key, frames in _bundled().items()}
    unknown = [level.name for level in levels if level.key not in known]
    if unknown:
        raise ConfigError(
            f"env.reward=speedrun compares with the best known win, and {len(unknown)} levels have "
            f"none ({', '.join(unknown[:3])}). Search some by {command('record', 'env=nclone')} "
            "solve=FOLDER solved=WON, then train on env.levels=[WON]."
        )
    return np.array([known[level.key] for level in levels], np.int64)
