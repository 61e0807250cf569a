"""What a path can lead to: the static places of a level, as plain arrays for the kernels."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from nclone.geometry import COLUMNS, HALF_PX, ROWS, TILE_PX
from nclone.graph.goals import EXIT_DOOR, EXIT_SWITCH, MAX_DOORS

if TYPE_CHECKING:
    from nclone.levels.level import Level

MINE_TYPES = (1, 21)
EXIT_TYPE, EXIT_SWITCH_TYPE, LOCKED_DOOR_TYPE = 3, 4, 6


@dataclass(frozen=True)
class Landmarks:
    """Spawn, exit, locked doors and mines of one level, in level coordinates (px).

    Attributes:
        key: Content key of the level.
        tiles: [25, 44] uint8, border included.
        spawn: x, y of the ninja at reset.
        goals: Goal number (see `nclone.graph.distance`) to its x, y.
        door_cells: [D, 2] int64, column and row of the tile that each locked door covers.
        mines_xy: [M, 2] float64, mines of both kinds in entity order.
        mines_deadly: [M] bool, deadly at reset (type 1).
        mine_entities: [M] int64, their places in the entity table.
        door_entities: [D] int64, likewise for the locked doors.
        exit_entities: the places of exit door and exit switch, -1 without an exit.
    """

    key: str
    tiles: np.ndarray
    spawn: tuple[float, float]
    goals: dict[int, tuple[float, float]]
    door_cells: np.ndarray = field(default_factory=lambda: np.zeros((0, 2), np.int64))
    mines_xy: np.ndarray = field(default_factory=lambda: np.zeros((0, 2)))
    mines_deadly: np.ndarray = field(default_factory=lambda: np.zeros(0, np.bool_))
    mine_entities: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    door_entities: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    exit_entities: tuple[int, int] = (-1, -1)

    @property
    def exit_places(self) -> tuple[float, float, float, float]:
        """Exit switch and exit door in px; the spawn point where a level has none."""
        switch = self.goals.get(EXIT_SWITCH, self.spawn)
        return (*switch, *self.goals.get(EXIT_DOOR, self.spawn))


def find_landmarks(level: Level) -> Landmarks:
    """The places of a level; the first exit is its objective, doors beyond the 16th are walls."""
    entities = level.entities
    kinds = entities[:, 0].astype(np.int64)
    goals: dict[int, tuple[float, float]] = {}
    exits = [-1, -1]
    for goal, kind in ((EXIT_SWITCH, EXIT_SWITCH_TYPE), (EXIT_DOOR, EXIT_TYPE)):
        rows = np.flatnonzero(kinds == kind)
        if len(rows):
            goals[goal] = (float(entities[rows[0], 1]), float(entities[rows[0], 2]))
            exits[goal] = int(rows[0])
    locked = [door for door in level.doors if kinds[int(door[0])] == LOCKED_DOOR_TYPE]
    cells = [_door_cell(door, int(entities[int(door[0]), 3])) for door in locked]
    for d, door in enumerate(locked[:MAX_DOORS]):
        row = int(door[0])
        goals[2 + 2 * d] = (float(entities[row, 1]), float(entities[row, 2]))
        goals[3 + 2 * d] = (float(door[1]), float(door[2]))
    mines = np.flatnonzero(np.isin(kinds, MINE_TYPES))
    return Landmarks(
        key=level.key,
        tiles=level.tiles,
        spawn=level.spawn,
        goals=goals,
        door_cells=np.array(cells, np.int64).reshape(-1, 2),
        mines_xy=np.ascontiguousarray(entities[mines, 1:3]),
        mines_deadly=kinds[mines] == MINE_TYPES[0],
        mine_entities=mines,
        door_entities=np.array([int(door[0]) for door in locked], np.int64),
        exit_entities=(exits[EXIT_DOOR], exits[EXIT_SWITCH]),
    )


def _door_cell(door: np.ndarray, orientation: int) -> tuple[int, int]:
    """Column and row of the tile that a door belongs to (specification 8.4), inside the map."""
    angle = orientation * np.pi / 4
    x = float(door[1]) - HALF_PX * round(np.cos(angle), 9)
    y = float(door[2]) - HALF_PX * round(np.sin(angle), 9)
    column = min(max(int(x // TILE_PX), 0), COLUMNS - 1)
    return column, min(max(int(y // TILE_PX), 0), ROWS - 1)
