"""Where the shortest path goes from the ninja: a few numbers per world, read off the hop tables.

`env.obs=routes` shows them; a graph network reads the same path at its nodes.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from frugal_rl.observation.spec import Stored
from nclone.geometry import PLAYER_RADIUS_PX
from nclone.graph.goals import EXIT_DOOR, EXIT_SWITCH
from nclone.graph.lattice import HEIGHT, STEP_PX, STEP_X, STEP_Y, UNREACHABLE, WIDTH
from nclone.graph.paths import path_distance

AHEAD = (1, 2, 4, 8, 16, 24)
"""Hops ahead at which the path is looked up."""
_AHEAD = np.array(AHEAD, np.int64)
KINDS = 3
"""What the path leads to: the exit switch, a door's switch, or the exit door."""
PATH_VALUES = 2 * len(AHEAD) + 1 + KINDS
_ORDER = np.array([1, 3, 2, 0], np.int64)
"""Right, left, down, up: of equally short ways the one along the ground comes first."""

PATH_FIELD = Stored(
    "path_ahead",
    (PATH_VALUES,),
    np.float32,
    -1,
    1,
    "dx, dy to the shortest path 1, 2, 4, 8, 16 and 24 hops ahead, as shares of the furthest they "
    "can be; path / S that remains; leads to the exit switch, to a door's switch, to the exit door",
)


@njit(cache=True)
def nearest_node(hops, row, x, y):
    """The reachable lattice node closest to (x, y) within the player's circle; -1 if none."""
    best, best_squared = -1, PLAYER_RADIUS_PX * PLAYER_RADIUS_PX
    column, line = int(np.floor((x - 6.0) / STEP_PX)), int(np.floor((y - 6.0) / STEP_PX))
    for to_line in range(max(0, line), min(HEIGHT, line + 2)):
        for to_column in range(max(0, column), min(WIDTH, column + 2)):
            node = to_line * WIDTH + to_column
            dx, dy = STEP_PX * to_column + 6.0 - x, STEP_PX * to_line + 6.0 - y
            squared = dx * dx + dy * dy
            if hops[row, node] != UNREACHABLE and squared <= best_squared:
                best, best_squared = node, squared
    return best


@njit(cache=True)
def nearer_node(hops, row, node):
    """A neighbour with one hop less to go; the node itself where none is."""
    for k in range(_ORDER.size):
        column = node % WIDTH + STEP_X[_ORDER[k]]
        line = node // WIDTH + STEP_Y[_ORDER[k]]
        if 0 <= column < WIDTH and 0 <= line < HEIGHT:
            to = line * WIDTH + column
            if hops[row, to] + 1 == hops[row, node]:
                return to
    return node


@njit(cache=True)
def _objective(reach, doors, level, entry, switch_hit, active, x, y):
    """Row of the hop table to follow, the ninja's node in it, and what it leads to; -1 if none.

    The exit switch, after it the exit door; while that is out of reach, the nearest door switch.
    """
    wanted = EXIT_DOOR if switch_hit else EXIT_SWITCH
    row = reach.goal_row[entry, wanted]
    node = nearest_node(reach.hops, row, x, y) if row >= 0 else -1
    if node >= 0:
        return row, node, 2 if switch_hit else 0
    best_row, best_node, fewest = -1, -1, UNREACHABLE
    for d in range(doors.count[level]):
        row = reach.goal_row[entry, 2 + 2 * d]
        if row < 0 or active[doors.entity[level, d]] == 0:
            continue
        node = nearest_node(reach.hops, row, x, y)
        if node >= 0 and reach.hops[row, node] < fewest:
            best_row, best_node, fewest = row, node, reach.hops[row, node]
    return best_row, best_node, 1


@njit(cache=True)
def objective_rows(reach, doors, level, entry, switch_hit, active, x, y, chosen, out):
    """Row of the hop table that the path of each world follows: out [M] int64, -1 for none.

    Arguments as in `nclone.graph.routes.write_routes`, for the worlds listed in `chosen` [M] int64.
    """
    for m in range(chosen.size):
        n = chosen[m]
        row, node, _ = _objective(
            reach, doors, level[n], entry[n], switch_hit[n], active[n], x[n], y[n]
        )
        out[m] = row if node >= 0 else -1


@njit(cache=True)
def row_distances(hops, row, x, y, out):
    """Path lengths in px from (x, y) along rows [M] of the hop table; inf where there is none."""
    for m in range(row.size):
        out[m] = path_distance(hops, row[m], x[m], y[m])


@njit(cache=True)
def _write(reach, entry, row, node, kind, x, y, out):
    hops = reach.hops
    out[2 * _AHEAD.size] = min(STEP_PX * hops[row, node] / reach.reach_px[entry].max(), 1.0)
    out[2 * _AHEAD.size + 1 + kind] = 1.0
    walked = 0
    for k in range(_AHEAD.size):
        while walked < _AHEAD[k]:
            node = nearer_node(hops, row, node)
            walked += 1
        furthest = STEP_PX * (_AHEAD[k] + 1)
        dx = (STEP_PX * (node % WIDTH) + 6.0 - x) / furthest
        dy = (STEP_PX * (node // WIDTH) + 6.0 - y) / furthest
        out[2 * k] = min(max(dx, -1.0), 1.0)
        out[2 * k + 1] = min(max(dy, -1.0), 1.0)


@njit(cache=True, parallel=True)
def write_path_ahead(reach, doors, level, entry, x, y, switch_hit, active, chosen, out):
    """Write the rows of the worlds listed in `chosen` [M] int64; zeros where there is no path.

    Arguments as in `nclone.graph.routes.write_routes`; out [M, PATH_VALUES] float32 is overwritten.
    """
    for m in prange(chosen.size):
        n = chosen[m]
        out[m] = 0.0
        row, node, kind = _objective(
            reach, doors, level[n], entry[n], switch_hit[n], active[n], x[n], y[n]
        )
        if node >= 0:
            _write(reach, entry[n], row, node, kind, x[n], y[n], out[m])
