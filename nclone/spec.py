"""What an N++ agent sees, declared once, field by field."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np

from frugal_rl.observation.codecs.bits import BitCodec
from frugal_rl.observation.spec import Derived, ObservationSpec, Padding, Static, Stored
from frugal_rl.observation.tables import StaticTable, TableField, Tables
from nclone.geometry import COLUMNS, HALF_PX, ROWS, TILE_PX, TILE_TYPES, solid_mask
from nclone.graph.ahead import PATH_FIELD
from nclone.graph.fields import DERIVED_FIELDS, STATIC_FIELDS
from nclone.graph.routes import ROUTE_FIELDS
from nclone.observation.foresight import FORESIGHT_FIELD
from nclone.observation.observe import ACTIONS, HAZARD_VALUES, HAZARDS
from nclone.observation.places import (
    LEVEL_TABLE,
    PLACE_FIELDS,
    PLACE_TABLE_FIELDS,
    place_row,
)
from nclone.render.fields import frame_fields
from nclone.render.scene import ITEM_COLUMNS, scene_items
from nclone.sim.compile import kernel

if TYPE_CHECKING:
    from nclone.graph.landmarks import Landmarks
    from nclone.levels.level import Level

WINDOW = 15
"""Sub-cells of 12 px on each side of `tile_window`, the ninja's own in the middle."""
SOLID_MAX = HALF_PX * HALF_PX


class Observation(Enum):
    """Which keys an environment shows."""

    state = "state"
    routes = "routes"
    foresight = "foresight"
    graph = "graph"
    pixels = "pixels"
    full = "full"

    @property
    def draws(self) -> bool:
        """Whether frames are among the keys."""
        return self in (Observation.pixels, Observation.full)

    @property
    def has_path(self) -> bool:
        """Whether the path ahead is among the keys."""
        return self in (Observation.routes, Observation.foresight)

    @property
    def has_graph(self) -> bool:
        """Whether the navigation graph is among the keys."""
        return self in (Observation.graph, Observation.full)


@dataclass(frozen=True)
class Drawing:
    """Which frames an observation has, and how many entities they are drawn from.

    Args:
        widths: most items, state codes and moving entities of any level that may be played.
        player_frame: height and width in px; None leaves the frame out.
        global_view: likewise.
    """

    widths: tuple[int, int, int] = (1, 4, 1)
    player_frame: tuple[int, int] | None = (84, 84)
    global_view: tuple[int, int] | None = (100, 176)


def _solid_table() -> np.ndarray:
    """[38, 2, 2] uint8: solid pixels of each 12 px sub-cell, by the centres of 144 pixels."""
    centre = np.arange(TILE_PX) + 0.5
    solid = [solid_mask(tile, centre, centre[:, None]) for tile in range(TILE_TYPES)]
    quarters = np.array(solid).reshape(TILE_TYPES, 2, HALF_PX, 2, HALF_PX)
    table: np.ndarray = quarters.sum(axis=(2, 4), dtype=np.uint8)
    table.flags.writeable = False
    return table


SOLID = _solid_table()


@kernel
def tile_windows(tiles, row_of, cell, solid, out):
    """Solid pixels around N ninjas.

    tiles [L, 25, 44] uint8; row_of [N] their row in it; cell [N, 2] uint8 column and row of the
    sub-cell; solid [38, 2, 2]; out [N, WINDOW, WINDOW] uint8 is written.
    """
    for n in range(cell.shape[0]):
        level = row_of[n]
        for i in range(WINDOW):
            row = cell[n, 1] + i - WINDOW // 2
            for j in range(WINDOW):
                column = cell[n, 0] + j - WINDOW // 2
                if 0 <= row < 2 * ROWS and 0 <= column < 2 * COLUMNS:
                    tile = tiles[level, row // 2, column // 2]
                    out[n, i, j] = solid[tile, row % 2, column % 2] if tile < TILE_TYPES else 0
                else:
                    out[n, i, j] = SOLID_MAX


def tile_window(sources: Mapping[str, np.ndarray], tables: Tables) -> np.ndarray:
    """`tiles` [N, 25, 44] and `cell` [N, 2] uint8 -> [N, 15, 15] uint8, 0 free to 144 solid."""
    cell = sources["cell"]
    out = np.empty((len(cell), WINDOW, WINDOW), np.uint8)
    tile_windows(sources["tiles"], np.arange(len(cell)), cell, SOLID, out)
    return out


_STATE = (
    Stored("game_state", (29,), np.float32, -1, 1, "physics of the ninja: motion, input, contacts"),
    Stored(
        "exit_features", (7,), np.float32, -1, 1, "route to the exit switch and to the exit door"
    ),
    Stored("time_remaining", (1,), np.float32, 0, 1, "1 - frame / truncation limit"),
    Stored(
        "cell_offset", (2,), np.float32, -1, 1, "place of the ninja in its 12 px cell, -1 left/top"
    ),
    Stored(
        "hazards",
        (HAZARDS, HAZARD_VALUES),
        np.float32,
        -1,
        1,
        "nearest dangers and moving things, one row each: dx, dy / 240 px, vx, vy / 6, danger "
        "(1 deadly, 0.5 toggling, 0 harmless), is a mine, moves, radius / 24 px; zero rows pad",
    ),
    Stored(
        "action_mask",
        (ACTIONS,),
        np.int8,
        0,
        1,
        "1 where an action has an effect",
        codecs=(BitCodec(ACTIONS),),
    ),
    Stored(
        "cell", (2,), np.uint8, 0, 2 * COLUMNS - 1, "12 px sub-cell of the ninja", observed=False
    ),
    Static("tiles", (ROWS, COLUMNS), np.uint8, 0, 255, "tile types", False, table=LEVEL_TABLE),
    Derived(
        "tile_window",
        (WINDOW, WINDOW),
        np.uint8,
        0,
        SOLID_MAX,
        "solid pixels of the 12 px sub-cells around the ninja, 0 free to 144 full; 144 outside",
        sources=("tiles", "cell"),
        derive=tile_window,
        twin="nclone.derive.frames:tile_window",
    ),
)

_ROUTES = (*ROUTE_FIELDS, PATH_FIELD, FORESIGHT_FIELD)  # a graph network sees the path in its nodes
_GRAPH = (*STATIC_FIELDS, *DERIVED_FIELDS)

_STATE_KEYS = tuple(f.name for f in _STATE)
_DOOR_KEYS = (*_STATE_KEYS, *(f.name for f in ROUTE_FIELDS))
KEYS = {
    Observation.state: _STATE_KEYS,
    Observation.routes: (*_DOOR_KEYS, PATH_FIELD.name),
    Observation.foresight: (*_DOOR_KEYS, PATH_FIELD.name, FORESIGHT_FIELD.name),
    Observation.graph: (*_DOOR_KEYS, *(f.name for f in _GRAPH)),
    Observation.pixels: ("action_mask",),
    Observation.full: (
        *_DOOR_KEYS,
        *(f.name for f in _GRAPH),
        *(f.name for f in PLACE_FIELDS),
    ),
}
"""Fields of each profile beside the frames; what is not observed serves a derived field."""
STACKED = ("game_state",)
"""Stored fields that a stack shows with their past; frames are stacked by what they show."""


def observation_spec(
    observation: Observation,
    drawing: Drawing | None = None,
    stack: int = 1,
    padding: Padding = Padding.repeat,
) -> ObservationSpec:
    """The declaration of an observation profile.

    Args:
        observation: the profile.
        drawing: the frames of a profile that has them; None leaves them out.
        stack: rows of `game_state` and of `player_frame` that are shown, oldest first.
        padding: what a stack shows before an episode's first row.
    """
    keys = KEYS[observation]
    fields = [f for f in (*_STATE, *_ROUTES, *_GRAPH, *PLACE_FIELDS) if f.name in keys]
    if stack > 1:
        fields = [
            replace(f, window=stack, padding=padding)
            if isinstance(f, Stored) and f.name in STACKED
            else f
            for f in fields
        ]
    if observation.draws and drawing is not None:
        fields += frame_fields(
            drawing.widths, drawing.player_frame, drawing.global_view, stack, padding
        )
    return ObservationSpec(tuple(fields), action_mask="action_mask")


def level_table(observation: Observation = Observation.state) -> StaticTable:
    """The table of static level data, empty."""
    fields = [TableField("tiles", (ROWS, COLUMNS), np.uint8)]
    if observation.draws:
        fields.append(TableField("items", (1, ITEM_COLUMNS), np.int16, ragged=True))
    if observation is Observation.full:
        fields += PLACE_TABLE_FIELDS
    return StaticTable(LEVEL_TABLE, tuple(fields))


def level_row(obs: Observation, level: Level, marks: Landmarks) -> dict[str, np.ndarray]:
    """One level's row of `level_table`."""
    row = {"tiles": level.tiles}
    if obs.draws:
        row["items"] = scene_items(level).items
    return row | place_row(marks) if obs is Observation.full else row


def raw_arrays(spec: ObservationSpec, num_worlds: int) -> dict[str, np.ndarray]:
    """Arrays [N, *shape] for the stored fields of a declaration."""
    return {
        f.name: np.zeros((num_worlds, *f.shape), f.dtype)
        for f in spec.fields
        if isinstance(f, Stored)
    }
