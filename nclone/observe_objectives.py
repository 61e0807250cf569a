"""Objectives and reachability of N worlds in one kernel call; declared in `nclone.spec`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from nclone.geometry import MAP_HEIGHT_PX, MAP_WIDTH_PX
from nclone.graph.paths import EXIT_DOOR, EXIT_SWITCH, MAX_DOORS, path_distance

INNER_NODES = 4 * 42 * 23
"""Lattice nodes of the playable area."""
MOST_MINES = 256


class ObjectiveRows(NamedTuple):
    """The raw fields that the kernel writes, all [N, ...]; see `nclone.spec`."""

    locked_door_features: np.ndarray
    num_locked_doors: np.ndarray
    reachability_features: np.ndarray


class LevelGoals(NamedTuple):
    """Static places per level.

    doors        [L] int64           locked doors, at most 16
    entity       [L, 16] int64       their places in the entity table
    xy           [L, 16, 4] float64  switch x, y and door x, y in px
    mine_offset  [L + 1] int64       mines of level k: mine_entity[offset[k] : offset[k + 1]]
    mine_entity  [total] int64
    """

    doors: np.ndarray
    entity: np.ndarray
    xy: np.ndarray
    mine_offset: np.ndarray
    mine_entity: np.ndarray


class Reached(NamedTuple):
    """Distance tables; see `nclone.graph.distance.DistanceTables`."""

    hops: np.ndarray
    goal_row: np.ndarray
    scale_px: np.ndarray
    area: np.ndarray
    exit_reachable: np.ndarray


def level_goals(marks: list) -> LevelGoals:
    """The places of levels in the order given."""
    count = len(marks)
    doors = np.zeros(count, np.int64)
    entity = np.zeros((count, MAX_DOORS), np.int64)
    xy = np.zeros((count, MAX_DOORS, 4))
    for k, mark in enumerate(marks):
        doors[k] = min(len(mark.door_entities), MAX_DOORS)
        for d in range(doors[k]):
            entity[k, d] = mark.door_entities[d]
            xy[k, d] = (*mark.goals[2 + 2 * d], *mark.goals[3 + 2 * d])
    offset = np.cumsum([0, *(len(mark.mine_entities) for mark in marks)])
    mines = [mark.mine_entities for mark in marks] or [np.zeros(0, np.int64)]
    return LevelGoals(doors, entity, xy, offset, np.concatenate(mines).astype(np.int64))


@njit(cache=True)
def _share(way, scale):
    """A path length as a share of the level's area scale, 1 if unreachable."""
    return min(way / scale, 1.0) if scale > 0.0 and np.isfinite(way) else 1.0


@njit(cache=True)
def _clip(value):
    return min(max(value, -1.0), 1.0)


@njit(cache=True)
def write_doors(x, y, entities, goals, level, entry, reached, out):
    """Rows of the locked doors into out [16, 8] float32; returns the nearest closed one's way, px.

    entities [E] records of the world's entities; a collected switch makes its door inactive.
    """
    out[:] = 0.0
    scale, nearest = reached.scale_px[entry], np.inf
    for d in range(goals.doors[level]):
        is_open = 1.0 if entities[goals.entity[level, d]].active == 0 else 0.0
        for part in range(2):
            way = path_distance(reached.hops, reached.goal_row[entry, 2 + 2 * d + part], x, y)
            place = goals.xy[level, d, 2 * part : 2 * part + 2]
            out[d, 4 * part] = _clip((place[0] - x) / (MAP_WIDTH_PX / 2.0))
            out[d, 4 * part + 1] = _clip((place[1] - y) / (MAP_HEIGHT_PX / 2.0))
            out[d, 4 * part + 2] = is_open
            out[d, 4 * part + 3] = _share(way, scale)
            if part == 0 and is_open == 0.0:
                nearest = min(nearest, way)
    return nearest


@njit(cache=True)
def write_reachability(x, y, entities, goals, level, entry, reached, hit, closed_way, out):
    """Six values into out [6] float32.

    closed_way: way to the nearest switch of a closed locked door in px, inf without one.
    """
    scale = reached.scale_px[entry]
    to_door = path_distance(reached.hops, reached.goal_row[entry, EXIT_DOOR], x, y)
    if not hit:
        following = path_distance(reached.hops, reached.goal_row[entry, EXIT_SWITCH], x, y)
    else:
        following = closed_way if np.isfinite(closed_way) else to_door
    first, last = goals.mine_offset[level], goals.mine_offset[level + 1]
    deadly = 0
    for m in range(first, last):
        deadly += entities[goals.mine_entity[m]].state == 0
    out[0] = min(reached.area[entry] / INNER_NODES, 1.0)
    out[1] = 1.0 - _share(following, scale)
    out[2] = 1.0 - _share(to_door, scale)
    out[3] = 1.0 if reached.exit_reachable[entry] else 0.0
    out[4] = min((last - first) / MOST_MINES, 1.0)
    out[5] = deadly / (last - first) if last > first else 0.0


@njit(cache=True)
def observe_objectives(worlds, entities, entry, switch_hit, goals, reached, chosen, rows):
    """Write the rows of the worlds listed in `chosen`.

    worlds [N] and entities [N, E]: the simulator's records; entry [N] int64 distance entries
    switch_hit [N] bool; chosen [M] int64; row m of `rows` belongs to world chosen[m]
    """
    for m in range(chosen.size):
        n = chosen[m]
        w = worlds[n]
        closed_way = write_doors(
            w.x, w.y, entities[n], goals, w.level, entry[n], reached, rows.locked_door_features[m]
        )
        rows.num_locked_doors[m, 0] = goals.doors[w.level]
        write_reachability(
            w.x, w.y, entities[n], goals, w.level, entry[n], reached, switch_hit[n], closed_way,
            rows.reachability_features[m],
        )  # fmt: skip
