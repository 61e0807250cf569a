"""Where levels come from, as a user names them: bundled names, categories, level files."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from nclone.errors import LevelError
from nclone.levels.bundled import bundled_level, bundled_names
from nclone.levels.generators import CATEGORIES
from nclone.levels.level import Level, load_level
from nclone.levels.pool import Split, load_pool


def open_levels(wanted: Sequence[str], split: str = "train") -> list[Level]:
    """Levels by name, category or path, in the order given.

    A category such as `simplest` stands for its proved levels in the bundled pool: those of the
    training set, or with `split` "eval" those of the test set, which share no content.

    Raises:
        LevelError: a name that is neither bundled nor a file; the nearest bundled name is given.
    """
    return [level for name in wanted for level in _open(name, split)]


def _open(name: str, split: str) -> list[Level]:
    if name in bundled_names():
        return [bundled_level(name)]
    if name in CATEGORIES:
        part = Split.test if split == "eval" else Split.train
        return load_pool().of([name], part).make_levels()
    if Path(name).is_file():
        return [load_level(Path(name))]
    near = get_close_matches(name, [*bundled_names(), *CATEGORIES], 1, 0.0)
    hint = f" Did you mean '{near[0]}'?" if near else ""
    raise LevelError(
        f"env.levels names '{name}', which is no bundled level, category or file.{hint} "
        f"Bundled: {', '.join(bundled_names())}. Categories: {', '.join(CATEGORIES)}."
    )
