"""Places and switches in the flat forms of older agents, from static places and two numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from frugal_rl.observation.spec import Derived, Static, Stored
from frugal_rl.observation.tables import TableField, Tables
from nclone.geometry import MAP_HEIGHT_PX, MAP_WIDTH_PX
from nclone.graph.goals import EXIT_DOOR, EXIT_SWITCH

if TYPE_CHECKING:
    from nclone.graph.landmarks import Landmarks


LEVEL_TABLE = "level"
FLAT_DOORS = 5
"""Locked doors that `switch_states` has room for."""
GOAL_PLACES, DOOR_PLACES, PLAYER_PLACE = "goal_places", "door_places", "player_place"
_SIZE = np.array([MAP_WIDTH_PX, MAP_HEIGHT_PX], np.float64)


def entity_positions(sources: Mapping[str, np.ndarray], tables: Tables) -> np.ndarray:
    """`player_place` [N, 2], `goal_places` [N, 4] -> [N, 6] float32."""
    return np.concatenate([sources[PLAYER_PLACE], sources[GOAL_PLACES]], axis=1)


def switch_states(sources: Mapping[str, np.ndarray], tables: Tables) -> np.ndarray:
    """`door_places` [N, 5, 4], `locked_door_features` [N, 16, 8] -> [N, 25] float32."""
    used = sources["locked_door_features"][:, :FLAT_DOORS, 2:3]
    return np.concatenate([sources[DOOR_PLACES], used], axis=2).reshape(len(used), -1)


PLACE_TABLE_FIELDS = [
    TableField(GOAL_PLACES, (4,), np.float32),
    TableField(DOOR_PLACES, (FLAT_DOORS, 4), np.float32),
]
PLACE_FIELDS = (
    Stored(PLAYER_PLACE, (2,), np.float32, 0, 1, "place of the ninja / map size", observed=False),
    Static(
        GOAL_PLACES,
        (4,),
        np.float32,
        0,
        1,
        "exit switch and door / map size",
        False,
        table=LEVEL_TABLE,
    ),
    Static(
        DOOR_PLACES,
        (FLAT_DOORS, 4),
        np.float32,
        0,
        1,
        "switch and door of the first locked doors / map size",
        False,
        table=LEVEL_TABLE,
    ),
    Derived(
        "entity_positions",
        (6,),
        np.float32,
        0,
        1,
        "x, y / map size of the ninja, the exit switch and the exit door",
        sources=(PLAYER_PLACE, GOAL_PLACES),
        derive=entity_positions,
        twin="nclone.derive.places:entity_positions",
    ),
    Derived(
        "switch_states",
        (5 * FLAT_DOORS,),
        np.float32,
        0,
        1,
        "per locked door switch x, y, door x, y / map size, collected; the first five, zeros pad",
        sources=(DOOR_PLACES, "locked_door_features"),
        derive=switch_states,
        twin="nclone.derive.places:switch_states",
    ),
)


def place_row(marks: Landmarks) -> dict[str, np.ndarray]:
    """One level's row of `PLACE_TABLE_FIELDS`; zeros stand for what it does not have."""
    goals = np.zeros((2, 2))
    for row, goal in enumerate((EXIT_SWITCH, EXIT_DOOR)):
        if goal in marks.goals:
            goals[row] = marks.goals[goal]
    doors = np.zeros((FLAT_DOORS, 2, 2))
    for d in range(min(len(marks.door_entities), FLAT_DOORS)):
        doors[d] = marks.goals[2 + 2 * d], marks.goals[3 + 2 * d]
    return {
        GOAL_PLACES: np.clip(goals / _SIZE, 0, 1).astype(np.float32).reshape(4),
        DOOR_PLACES: np.clip(doors / _SIZE, 0, 1).astype(np.float32).reshape(FLAT_DOORS, 4),
    }


def write_player_places(x: np.ndarray, y: np.ndarray, out: np.ndarray) -> None:
    """x, y [M] float64 px -> out [M, 2] float32, shares of the map's size."""
    np.clip(x / MAP_WIDTH_PX, 0.0, 1.0, out=out[:, 0], casting="same_kind")
    np.clip(y / MAP_HEIGHT_PX, 0.0, 1.0, out=out[:, 1], casting="same_kind")
