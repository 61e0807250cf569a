"""Where levels come from, as a user names them: bundled names and paths of level files."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from nclone.errors import LevelError
from nclone.levels.bundled import bundled_level, bundled_names
from nclone.levels.level import Level, load_level


def open_levels(wanted: Sequence[str]) -> list[Level]:
    """Levels by name or path, in the order given.

    Raises:
        LevelError: a name that is neither bundled nor a file; the nearest bundled name is given.
    """
    return [_open(name) for name in wanted]


def _open(name: str) -> Level:
    if name in bundled_names():
        return bundled_level(name)
    if Path(name).is_file():
        return load_level(Path(name))
    near = get_close_matches(name, bundled_names(), 1, 0.0)
    hint = f" Did you mean '{near[0]}'?" if near else ""
    raise LevelError(
        f"env.levels names '{name}', which is neither a bundled level nor a file.{hint} "
        f"Bundled: {', '.join(bundled_names())}."
    )
