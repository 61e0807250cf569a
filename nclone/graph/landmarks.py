"""What a path can lead to: the static places of a level, as plain arrays for the kernels."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


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
