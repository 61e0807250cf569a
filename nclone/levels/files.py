"""Levels in files: level bytes, drawings, and the levels inside replays."""

from __future__ import annotations

from pathlib import Path

from frugal_rl.errors import DataError
from frugal_rl.untrusted.files import read_bytes
from nclone.errors import LevelError
from nclone.files import write_whole
from nclone.levels.ascii import draw_level, parse_drawing
from nclone.levels.level import MOST_BYTES, Level, load_level
from nclone.replay.files import REPLAYS, read_replay

DRAWING = ".txt"


def read_level(path: Path) -> Level:
    """A level from a drawing (`.txt`), a replay that holds its level, or level bytes.

    Raises:
        LevelError: the file cannot be read; names the file, the place in it and the remedy.
        ReplayError: the same, for a replay.
    """
    if path.suffix in REPLAYS:
        replay = read_replay(path)
        if replay.map_data is None:
            raise LevelError(
                f"The replay {path} holds inputs only, no level; name the level file itself."
            )
        return load_level(replay.map_data, path)
    if path.suffix != DRAWING:
        return load_level(path)
    try:
        text = read_bytes(path, MOST_BYTES).decode()
    except UnicodeDecodeError as error:
        raise LevelError(
            f"The drawing {path} is not text (byte {error.start}); name level bytes without .txt."
        ) from error
    except DataError as error:
        raise LevelError(f"The drawing {error}") from error
    try:
        return load_level(parse_drawing(text))
    except LevelError as error:
        raise LevelError(f"{path}: {error}") from None


def write_level(path: Path, level: Level) -> None:
    """Write a level as a drawing (`.txt`) or as level bytes (any other suffix), whole or not."""
    if path.suffix in REPLAYS:
        raise LevelError(f"{path} would be a replay; a level goes to .txt or .map.")
    drawing = path.suffix == DRAWING
    write_whole(path, draw_level(level).encode("utf-8") if drawing else level.map_data)
