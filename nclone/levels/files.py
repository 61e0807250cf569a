"""Levels in files: level bytes, drawings, and the levels inside replays."""

from __future__ import annotations

from pathlib import Path

from nclone.errors import LevelError
from nclone.files import write_whole
from nclone.levels.ascii import draw_level, parse_drawing
from nclone.levels.level import Level, load_level
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
        return load_level(replay.map_data)
    if path.suffix != DRAWING:
        return load_level(path)
    try:
        return load_level(parse_drawing(path.read_text(encoding="utf-8")))
    except LevelError as error:
        raise LevelError(f"{path}: {error}") from None
    except UnicodeDecodeError as error:
        raise LevelError(
            f"The drawing {path} is not text (byte {error.start}); name level bytes without .txt."
        ) from error
    except OSError as error:
        raise LevelError(f"The drawing {path} cannot be read: {error.strerror}.") from error


def write_level(path: Path, level: Level) -> None:
    """Write a level as a drawing (`.txt`) or as level bytes (any other suffix), whole or not."""
    if path.suffix in REPLAYS:
        raise LevelError(f"{path} would be a replay; a level goes to .txt or .map.")
    drawing = path.suffix == DRAWING
    write_whole(path, draw_level(level).encode("utf-8") if drawing else level.map_data)
