"""Reachability and path length as kernels: from tiles and doors to hops, from hops to pixels."""

from __future__ import annotations

import numpy as np

from nclone.geometry import PLAYER_RADIUS_PX
from nclone.graph.goals import MAX_DOORS, MINE_RADIUS_PX
from nclone.graph.lattice import (
    HEIGHT,
    STEP_PX,
    UNREACHABLE,
    WIDTH,
    block_circle,
    block_tile,
    flood,
    free_nodes,
    free_steps,
    nodes_within,
)
from nclone.sim.compile import kernel

TOUCH_RADIUS_PX = np.array([6.0, 12.0] + [5.0, 12.0] * MAX_DOORS) + PLAYER_RADIUS_PX
"""[34] How close the player's centre must come to touch a goal."""


@kernel
def build_lattice(tiles, door_cells, closed, deadly_xy, mine_block, exists, steps):
    """Nodes and free steps of a level with its doors and, if asked for, its deadly mines.

    tiles       [25, 44] uint8
    door_cells  [D, 2] int64  column, row of the tile that each locked door covers
    closed      [D] bool
    deadly_xy   [M, 2] float64 px
    mine_block  0 none, 1 tile, 2 radius
    exists      [4400] bool, steps [4400] uint8: overwritten
    """
    free_nodes(tiles, exists)
    for door in range(closed.size):
        if closed[door]:
            block_tile(exists, door_cells[door, 0], door_cells[door, 1])
    for mine in range(deadly_xy.shape[0]):
        x, y = deadly_xy[mine]
        if mine_block == 1:
            block_tile(exists, int(x // 24), int(y // 24))
        elif mine_block == 2:
            block_circle(exists, x, y, MINE_RADIUS_PX + PLAYER_RADIUS_PX)
    free_steps(tiles, exists, steps)


@kernel
def goal_hops(steps, reachable, x, y, touch, queue, hops):
    """Hops from every reachable node to the goal at (x, y); returns whether it can be reached.

    Sources are the nodes of the player's circle around the goal, or, if there are none, those
    from which the goal can be touched.

    reachable  [4400] bool; queue [4400] int32 scratch; hops [4400] uint16, overwritten
    """
    count = nodes_within(reachable, x, y, PLAYER_RADIUS_PX, queue)
    if count == 0:
        count = nodes_within(reachable, x, y, touch, queue)
    flood(steps, queue, count, hops)
    return count > 0


@kernel
def near_any(reachable, points, radius, scratch, near):
    """Mark the points with a reachable node within `radius` px; returns how many there are.

    points  [M, 2] float64; scratch [4400] int32; near [M] bool, overwritten
    """
    total = 0
    for k in range(points.shape[0]):
        near[k] = nodes_within(reachable, points[k, 0], points[k, 1], radius, scratch) > 0
        total += near[k]
    return total


@kernel
def path_distance(hops, row, x, y):
    """Path length in px from (x, y) to the goal of one row of the arena; inf if unreachable.

    The table's value at the closest reachable node within the player's circle, plus the offset
    to that node.

    hops  [rows, 4400] uint16; row -1 means that the level has no such goal
    """
    if row < 0:
        return np.inf
    best, best_squared = UNREACHABLE, PLAYER_RADIUS_PX * PLAYER_RADIUS_PX
    column, line = int(np.floor((x - 6.0) / STEP_PX)), int(np.floor((y - 6.0) / STEP_PX))
    for to_line in range(max(0, line), min(HEIGHT, line + 2)):
        for to_column in range(max(0, column), min(WIDTH, column + 2)):
            value = hops[row, to_line * WIDTH + to_column]
            dx, dy = STEP_PX * to_column + 6.0 - x, STEP_PX * to_line + 6.0 - y
            squared = dx * dx + dy * dy
            closer = squared < best_squared or (best == UNREACHABLE and squared == best_squared)
            if value != UNREACHABLE and closer:
                best, best_squared = value, squared
    if best == UNREACHABLE:
        return np.inf
    return STEP_PX * float(best) + np.sqrt(best_squared)


@kernel
def path_distances(hops, goal_row, entry, goal, x, y, out):
    """Path lengths for N worlds in one call.

    hops      [rows, 4400] uint16 and goal_row [entries, 34] int32: the arena and its directory
    entry     [N] int64, goal [N] int64, x [N] and y [N] float64 px
    out       [N] float64 px, overwritten; inf where there is no path
    """
    for n in range(out.size):
        out[n] = path_distance(hops, goal_row[entry[n], goal[n]], x[n], y[n])
