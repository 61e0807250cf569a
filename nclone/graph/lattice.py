"""The 12 px lattice on which paths are measured: which nodes exist and which steps are free.

Node `k` of a level is the lattice point (k % 88, k // 88), at `node_position(k)` px: four nodes
per tile, 4400 in all. A node exists if its point is not inside a solid part, and a step to one of
the four neighbours is free if the straight line between both points is. Whether half a step is
free depends on one tile alone, so a table [tile type, node in tile, direction] decides every
pair of tiles: a step is free if its two halves are.
"""

from __future__ import annotations

import numpy as np

from nclone.geometry import COLUMNS, PLAYER_RADIUS_PX, ROWS, TILE_TYPES, is_solid
from nclone.sim.compile import kernel

STEP_PX = 12
WIDTH, HEIGHT = 2 * COLUMNS, 2 * ROWS
NODES = WIDTH * HEIGHT
DIRECTIONS = 4
"""0 north, 1 east, 2 south, 3 west; the opposite of `d` is `(d + 2) % 4`."""
STEP_X = np.array([0, 1, 0, -1])
STEP_Y = np.array([-1, 0, 1, 0])
UNREACHABLE = np.uint16(65535)

_solid = is_solid.py_func  # the tables below are small: importing must not start the compiler


def _half_step_table() -> np.ndarray:
    """[38, 4, 4] bool: whether the first 6 px from a node in a direction are free.

    A tile's free part is convex or the outside of a disc around a corner, and the six pixels
    run parallel to an axis; so they are free as soon as both of their ends are.
    """
    free = np.zeros((TILE_TYPES, 4, DIRECTIONS), np.bool_)
    for tile in range(TILE_TYPES):
        for node in range(4):
            x, y = 6 + 12 * (node % 2), 6 + 12 * (node // 2)
            for direction in range(DIRECTIONS):
                end_x, end_y = x + 6 * STEP_X[direction], y + 6 * STEP_Y[direction]
                free[tile, node, direction] = not (_solid(tile, x, y) or _solid(tile, end_x, end_y))
    free.flags.writeable = False
    return free


HALF_STEP_FREE = _half_step_table()
NODE_FREE = np.array(
    [[not _solid(t, 6 + 12 * (n % 2), 6 + 12 * (n // 2)) for n in range(4)] for t in range(38)]
)
"""[38, 4] bool: whether the sub-node at (6, 6), (18, 6), (6, 18), (18, 18) of a tile is free."""


@kernel
def node_position(node):
    """Level coordinates (x, y) px of a lattice node: the only place that knows the offset."""
    return STEP_PX * (node % WIDTH) + 6.0, STEP_PX * (node // WIDTH) + 6.0


@kernel
def free_nodes(tiles, exists):
    """Mark the nodes whose point is free.

    tiles   [25, 44] uint8
    exists  [4400] bool, overwritten
    """
    for node in range(NODES):
        column, row = node % WIDTH, node // WIDTH
        tile = tiles[row >> 1, column >> 1]
        if tile >= TILE_TYPES:
            exists[node] = True
        else:
            exists[node] = NODE_FREE[tile, 2 * (row & 1) + (column & 1)]


@kernel
def block_tile(exists, column, row):
    """Take away the four nodes of tile (column, row), as a closed door does."""
    for sub_row in range(2):
        for sub_column in range(2):
            exists[(2 * row + sub_row) * WIDTH + 2 * column + sub_column] = False


@kernel
def block_circle(exists, x, y, radius):
    """Take away the nodes within `radius` px of (x, y), as a deadly mine may be told to do."""
    for node in range(NODES):
        node_x, node_y = node_position(node)
        if (node_x - x) ** 2 + (node_y - y) ** 2 <= radius * radius:
            exists[node] = False


@kernel
def free_steps(tiles, exists, steps):
    """Write the free steps of every node as bits (1 << direction).

    tiles   [25, 44] uint8
    exists  [4400] bool, after doors and mines have taken their nodes away
    steps   [4400] uint8, overwritten
    """
    for node in range(NODES):
        steps[node] = 0
        if not exists[node]:
            continue
        column, row = node % WIDTH, node // WIDTH
        for direction in range(DIRECTIONS):
            to_column, to_row = column + STEP_X[direction], row + STEP_Y[direction]
            if to_column < 0 or to_column >= WIDTH or to_row < 0 or to_row >= HEIGHT:
                continue
            if not exists[to_row * WIDTH + to_column]:
                continue
            if _half_free(tiles, column, row, direction) and _half_free(
                tiles, to_column, to_row, (direction + 2) % 4
            ):
                steps[node] |= 1 << direction


@kernel
def _half_free(tiles, column, row, direction):
    tile = tiles[row >> 1, column >> 1]
    return tile >= TILE_TYPES or HALF_STEP_FREE[tile, 2 * (row & 1) + (column & 1), direction]


@kernel
def nodes_within(exists, x, y, radius, found):
    """Collect the existing nodes within `radius` px of (x, y), ascending; returns how many.

    found  [>= count] int32, overwritten from the start
    """
    count = 0
    first_column = max(0, int(np.ceil((x - radius - 6.0) / STEP_PX)))
    last_column = min(WIDTH - 1, int(np.floor((x + radius - 6.0) / STEP_PX)))
    first_row = max(0, int(np.ceil((y - radius - 6.0) / STEP_PX)))
    last_row = min(HEIGHT - 1, int(np.floor((y + radius - 6.0) / STEP_PX)))
    for row in range(first_row, last_row + 1):
        for column in range(first_column, last_column + 1):
            node = row * WIDTH + column
            node_x, node_y = node_position(node)
            inside = (node_x - x) ** 2 + (node_y - y) ** 2 <= radius * radius
            if exists[node] and inside and count < found.size:
                found[count] = node
                count += 1
    return count


@kernel
def nearest_node(exists, x, y):
    """The existing node closest to (x, y), the lower number on a tie; -1 without any node."""
    best, best_squared = -1, np.inf
    for node in range(NODES):
        if exists[node]:
            node_x, node_y = node_position(node)
            squared = (node_x - x) ** 2 + (node_y - y) ** 2
            if squared < best_squared:
                best, best_squared = node, squared
    return best


@kernel
def flood(steps, queue, count, hops):
    """Breadth-first search from the first `count` nodes of `queue`; returns the nodes reached.

    steps  [4400] uint8  free steps of every node
    queue  [4400] int32  holds the sources, then every reached node in order of distance
    hops   [4400] uint16 overwritten: steps from the nearest source, 65535 where unreachable
    """
    hops[:] = UNREACHABLE
    for k in range(count):
        hops[queue[k]] = 0
    head = 0
    while head < count:
        node = queue[head]
        head += 1
        for direction in range(DIRECTIONS):
            if steps[node] >> direction & 1:
                to = node + STEP_X[direction] + WIDTH * STEP_Y[direction]
                if hops[to] == UNREACHABLE:
                    hops[to] = hops[node] + 1
                    queue[count] = to
                    count += 1
    return count


@kernel
def flood_from_spawn(steps, exists, x, y, queue, hops):
    """Flood from all nodes in the player's circle at (x, y), else from the nearest node.

    Returns the number of reachable nodes; `queue` [4400] int32 and `hops` [4400] uint16 as in
    `flood`.
    """
    count = nodes_within(exists, x, y, PLAYER_RADIUS_PX, queue)
    if count == 0:
        nearest = nearest_node(exists, x, y)
        if nearest >= 0:
            queue[0] = nearest
            count = 1
    return flood(steps, queue, count, hops)
