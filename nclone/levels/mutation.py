"""Levels made from others by a few small changes; whether they can be won a search has to say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.ndimage import binary_dilation, label

from nclone.errors import LevelError
from nclone.geometry import TILE_PX, TILE_TYPES
from nclone.levels import format as fmt
from nclone.levels.entity_types import SWITCH_OF, EntityType
from nclone.levels.level import load_level

if TYPE_CHECKING:
    from nclone.levels.generators.dice import Dice
    from nclone.levels.level import Level

MOST_CHANGES = 3
TRIES = 8
"""Changes of rock that nobody comes to are made up to so often anew."""
UNITS = 4
"""Quarter tiles, in which records count, per tile."""
NEAR_TILES, FAR_TILES = 2, 8
"""How far things are moved at most: dangers and gold; where one begins and must get to."""
WALL_TILES, HOLE_TILES = 4, 3
SOLID = 1
GOALS = (EntityType.NINJA, EntityType.EXIT, EntityType.EXIT_SWITCH)
KEPT = (*GOALS, *SWITCH_OF, *SWITCH_OF.values())
"""Never taken away: a level needs the first three, and a door its switch."""
CHANGED = " changed"
"""Behind the name of the level that it was made from."""


def mutated(level: Level, dice: Dice) -> Level | None:
    """A level with one to three changes that a player can meet; None where none came about."""
    known = _met(level)
    for _ in range(TRIES):
        made = _changed(level, dice)
        if made is not None and _met(made) != known:
            return made
    return None


def _met(level: Level) -> bytes:
    """What can be met: the spawn, open tiles around it, their walls, the things among them."""
    column, row = (int(place // TILE_PX) for place in level.spawn)
    rooms, _ = label(level.tiles != SOLID)
    near = binary_dilation(rooms == rooms[row, column], np.ones((3, 3), bool))
    columns, rows = (level.entities[:, 1:3] // TILE_PX).astype(np.int64).T
    met = (level.spawn, np.where(near, level.tiles, SOLID), level.entities[near[rows, columns]])
    return b"".join(np.asarray(part).tobytes() for part in met)


def _changed(level: Level, dice: Dice) -> Level | None:
    """A level with one to three changes; None where they give no level at all."""
    tiles, records = _opened(level)
    for _ in range(dice.between(1, MOST_CHANGES)):
        records = dice.pick(CHANGES)(tiles, records, dice)
    try:
        name = level.name.removesuffix(CHANGED)[: fmt.TITLE_BYTES - len(CHANGED)]
        return load_level(fmt.pack_level(tiles, records, name + CHANGED))
    except LevelError:
        return None


def _opened(level: Level) -> tuple[np.ndarray, np.ndarray]:
    """Tiles [23, 42] uint8 and records [K, 5] int64: type, x, y, orientation, mode."""
    whole = len(level.map_data) - (len(level.map_data) - fmt.RECORDS_AT) % fmt.RECORD_BYTES
    data = np.frombuffer(level.map_data[fmt.RECORDS_AT : whole], np.uint8)
    return level.tiles[1:-1, 1:-1].copy(), data.reshape(-1, fmt.RECORD_BYTES).astype(np.int64)


def _wall(tiles: np.ndarray, records: np.ndarray, dice: Dice) -> np.ndarray:
    """A row or column of solid tiles, or of one other kind."""
    length = dice.between(1, WALL_TILES)
    tile = SOLID if dice.chance(0.5) else dice.between(2, TILE_TYPES - 1)
    return _painted(tiles, records, dice, (length, 1) if dice.chance(0.5) else (1, length), tile)


def _hole(tiles: np.ndarray, records: np.ndarray, dice: Dice) -> np.ndarray:
    """A rectangle of empty tiles."""
    size = (dice.between(1, HOLE_TILES), dice.between(1, HOLE_TILES))
    return _painted(tiles, records, dice, size, 0)


def _painted(
    tiles: np.ndarray, records: np.ndarray, dice: Dice, size: tuple[int, int], tile: int
) -> np.ndarray:
    """Beside something that counts: most of a map's rock is never met."""
    x, y = _place(records[dice.between(0, len(records) - 1)])
    row = int(np.clip(y // UNITS - 1 + _away(dice, FAR_TILES), 0, len(tiles) - 1))
    column = int(np.clip(x // UNITS - 1 + _away(dice, FAR_TILES), 0, tiles.shape[1] - 1))
    tiles[row : row + size[0], column : column + size[1]] = tile
    return records


def _mine(tiles: np.ndarray, records: np.ndarray, dice: Dice) -> np.ndarray:
    """A mine, or one that a touch arms, near the way between two places that count."""
    one, other = (_place(records[dice.between(0, len(records) - 1)]) for _ in range(2))
    x, y = ((a + b) // 2 + _away(dice, UNITS * NEAR_TILES) for a, b in zip(one, other, strict=True))
    kind = EntityType.MINE if dice.chance(0.7) else EntityType.TOGGLE_MINE
    return np.vstack([records, _inside([kind, x, y, 0, 0])])


def _moved(tiles: np.ndarray, records: np.ndarray, dice: Dice) -> np.ndarray:
    """Anything stands elsewhere: goals go farther than dangers."""
    k = dice.between(0, len(records) - 1)
    reach = UNITS * (FAR_TILES if records[k, 0] in GOALS else NEAR_TILES)
    records[k, 1:3] += _away(dice, reach), _away(dice, reach)
    records[k] = _inside(records[k])
    return records


def _goal_moved(tiles: np.ndarray, records: np.ndarray, dice: Dice) -> np.ndarray:
    """Spawn, exit or its switch stand elsewhere."""
    goals = np.flatnonzero(np.isin(records[:, 0], GOALS))
    k = int(goals[dice.between(0, len(goals) - 1)])
    reach = UNITS * FAR_TILES
    records[k, 1:3] += _away(dice, reach), _away(dice, reach)
    records[k] = _inside(records[k])
    return records


def _taken_away(tiles: np.ndarray, records: np.ndarray, dice: Dice) -> np.ndarray:
    """One danger, machine or piece of gold less."""
    free = np.flatnonzero(~np.isin(records[:, 0], KEPT))
    return np.delete(records, int(dice.pick(free)), axis=0) if len(free) else records


CHANGES = (_wall, _hole, _mine, _moved, _goal_moved, _taken_away)


def _away(dice: Dice, most: int) -> int:
    return dice.between(-most, most)


def _place(record: np.ndarray) -> tuple[int, int]:
    return int(record[1]), int(record[2])


def _inside(record: np.ndarray | list[int]) -> np.ndarray:
    """The record with its place inside the playable part."""
    kind, x, y, *rest = (int(value) for value in record)
    most_x, most_y = fmt.PLAYABLE_COLUMNS * UNITS, fmt.PLAYABLE_ROWS * UNITS
    return np.array([kind, min(max(x, UNITS), most_x), min(max(y, UNITS), most_y), *rest])
