"""Observed routes: reachability of the level, one row per locked door, for N worlds per call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import njit, prange

from frugal_rl.observation.spec import Stored
from nclone.geometry import MAP_HEIGHT_PX, MAP_WIDTH_PX
from nclone.graph.goals import EXIT_DOOR, EXIT_SWITCH, MAX_DOORS
from nclone.graph.paths import path_distance
from nclone.sim.compile import kernel

if TYPE_CHECKING:
    from nclone.graph.distance import DistanceTables
    from nclone.graph.landmarks import Landmarks


DOOR_VALUES, REACHABILITY_VALUES = 8, 6
MOST_NODES = 4 * 42 * 23
"""Nodes of an empty level: the whole playable part."""
MOST_MINES = 256
MINE_DEADLY = 0

ROUTE_FIELDS = (
    Stored(
        "reachability_features",
        (REACHABILITY_VALUES,),
        np.float32,
        0,
        1,
        "share of the map that can be reached, nearness of the next objective and of the exit "
        "door (1 - path / S), exit door reachable, mines / 256, deadly share of the mines",
    ),
    Stored(
        "locked_door_features",
        (MAX_DOORS, DOOR_VALUES),
        np.float32,
        -1,
        1,
        "one row per locked door: switch dx, dy, collected, path / S to the switch; door dx, dy, "
        "open, path / S to the door; zero rows pad",
    ),
    Stored("num_locked_doors", (1,), np.int32, 0, MAX_DOORS, "valid rows of locked_door_features"),
)


class Doors(NamedTuple):
    """Locked doors of all levels, at most 16 each.

    count [L] int64; places [L, 16, 4] float64: switch x, y and door x, y in px;
    entity [L, 16] int64: rows of the entity table
    """

    count: np.ndarray
    places: np.ndarray
    entity: np.ndarray


def door_places(levels: Sequence[Landmarks]) -> Doors:
    """Collect the doors of the levels of a `DistanceTables`, in its order."""
    doors = Doors(
        np.zeros(len(levels), np.int64),
        np.zeros((len(levels), MAX_DOORS, 4)),
        np.zeros((len(levels), MAX_DOORS), np.int64),
    )
    for k, marks in enumerate(levels):
        count = min(len(marks.door_entities), MAX_DOORS)
        doors.count[k] = count
        doors.entity[k, :count] = marks.door_entities[:count]
        for d in range(count):
            doors.places[k, d] = (*marks.goals[2 + 2 * d], *marks.goals[3 + 2 * d])
    return doors


class Reach(NamedTuple):
    """The arrays of `DistanceTables` that are read; see there."""

    hops: np.ndarray
    goal_row: np.ndarray
    scale_px: np.ndarray
    area: np.ndarray
    exit_reachable: np.ndarray
    mine_offset: np.ndarray
    mine_entity: np.ndarray
    reach_px: np.ndarray


def reach_of(tables: DistanceTables) -> Reach:
    """The tables' present arrays; take them anew for every call."""
    return Reach(*(getattr(tables, name) for name in Reach._fields))


@kernel
def _share(distance, scale):
    """Path / S, at most 1; 1 where there is no path."""
    return min(distance / scale, 1.0) if scale > 0.0 and np.isfinite(distance) else 1.0


@kernel
def _offset(distance, half):
    return min(max(distance / half, -1.0), 1.0)


@kernel
def _route(reach, entry, goal, x, y):
    return path_distance(reach.hops, reach.goal_row[entry, goal], x, y)


@kernel
def _write_doors(n, reach, doors, level, entry, x, y, active, out):
    scale = reach.scale_px[entry]
    for d in range(doors.count[level]):
        place, row = doors.places[level, d], out[d]
        used = active[n, doors.entity[level, d]] == 0
        for k in range(2):  # the switch, then the door
            row[4 * k] = _offset(place[2 * k] - x, MAP_WIDTH_PX / 2.0)
            row[4 * k + 1] = _offset(place[2 * k + 1] - y, MAP_HEIGHT_PX / 2.0)
            row[4 * k + 2] = 1.0 if used else 0.0
            row[4 * k + 3] = _share(_route(reach, entry, 2 + 2 * d + k, x, y), scale)


@kernel
def _next_route(n, reach, doors, level, entry, x, y, hit, active):
    """Path to the exit switch, after it to the nearest unused door switch, then to the door."""
    if not hit:
        return _route(reach, entry, EXIT_SWITCH, x, y)
    nearest, left = np.inf, False
    for d in range(doors.count[level]):
        if active[n, doors.entity[level, d]] != 0:
            left = True
            nearest = min(nearest, _route(reach, entry, 2 + 2 * d, x, y))
    return nearest if left else _route(reach, entry, EXIT_DOOR, x, y)


@kernel
def _write_reachability(n, reach, doors, level, entry, x, y, hit, active, state, out):
    scale = reach.scale_px[entry]
    out[0] = min(reach.area[entry] / MOST_NODES, 1.0)
    following = _next_route(n, reach, doors, level, entry, x, y, hit, active)
    out[1] = 1.0 - _share(following, scale)
    out[2] = 1.0 - _share(_route(reach, entry, EXIT_DOOR, x, y), scale)
    out[3] = 1.0 if reach.exit_reachable[entry] else 0.0
    first, end = reach.mine_offset[level], reach.mine_offset[level + 1]
    deadly = 0
    for k in range(first, end):
        if state[n, reach.mine_entity[k]] == MINE_DEADLY:
            deadly += 1
    out[4] = min((end - first) / MOST_MINES, 1.0)
    out[5] = deadly / (end - first) if end > first else 0.0


@njit(cache=True, parallel=True)
def write_routes(
    reach,
    doors,
    level,
    entry,
    x,
    y,
    switch_hit,
    active,
    state,
    chosen,
    reachability,
    door_rows,
    door_count,
):
    """Write the rows of the worlds listed in `chosen` [M] int64.

    level, entry [N] int64: numbers of `DistanceTables`; x, y [N] float64 px; switch_hit [N] bool
    active, state  [N, E] int8: of the entities
    reachability [M, 6] float32, door_rows [M, 16, 8] float32, door_count [M, 1] int32: overwritten
    """
    for m in prange(chosen.size):
        n = chosen[m]
        k, e = level[n], entry[n]
        _write_reachability(
            n, reach, doors, k, e, x[n], y[n], switch_hit[n], active, state, reachability[m]
        )
        door_rows[m] = 0.0
        door_count[m, 0] = doors.count[k]
        _write_doors(n, reach, doors, k, e, x[n], y[n], active, door_rows[m])
