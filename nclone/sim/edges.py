"""Half-grid edges, which stop drones and thwumps, and the doors that change them (5.4, 8.4)."""

from __future__ import annotations

from nclone.sim.compile import device

HORIZONTAL, VERTICAL = 0, 1
BLOCKED, BY_DOORS = 1, 2


@device
def edge_blocks(level, doorways, doors, w, direction, hx, hy):
    """Whether the counter of an edge is not zero; indices are limited to 0..87 and 0..49."""
    hx = min(max(hx, 0), 87)
    hy = min(max(hy, 0), 49)
    code = level.edges[direction, hx, hy]
    if code < BY_DOORS:
        return code == BLOCKED
    counter = code - BY_DOORS
    for d in range(level.doors):
        door = doorways[level.first_door + d]
        if door.vertical == direction:
            first = door.hx == hx and door.hy == hy
            second = door.hx2 == hx and door.hy2 == hy
            if first or second:
                counter += doors[w, d].edges
    return counter != 0


@device
def row_free(level, doorways, doors, w, hx1, hx2, hy, direction):
    """Whether no horizontal edge blocks the way down (+1) or up (-1) from row hy."""
    if direction > 0:
        hy += 1
    for hx in range(hx1, hx2 + 1):
        if edge_blocks(level, doorways, doors, w, HORIZONTAL, hx, hy):
            return False
    return True


@device
def column_free(level, doorways, doors, w, hx, hy1, hy2, direction):
    """Whether no vertical edge blocks the way right (+1) or left (-1) from column hx."""
    if direction > 0:
        hx += 1
    for hy in range(hy1, hy2 + 1):
        if edge_blocks(level, doorways, doors, w, VERTICAL, hx, hy):
            return False
    return True


@device
def set_door(world, doors, w, d, closed):
    """Open or close a door. Both edges count every call, changed or not."""
    doors[w, d].closed = closed
    doors[w, d].edges += 1 if closed else -1
    if closed:
        world.clearance = 0.0
