"""The entity grid: one ordered list per cell, kept as links between entities (section 6).

The order in a cell is part of the behaviour: records in the order of the file, then whatever
moved in later. An inactive entity is unlinked, which no query can tell from skipping it.
"""

from __future__ import annotations

import numpy as np

from nclone.sim.compile import device
from nclone.sim.geometry import cell_of


@device
def unlink(world, entities, w, e):
    """Take entity e out of the list of its cell."""
    cell = entities[w, e].cell
    following = entities[w, e].next
    at = world.head[cell]
    if at == e:
        world.head[cell] = following
        if following < 0:
            column = cell // 25
            world.crowd[column] &= np.uint32(~(1 << (cell - 25 * column)))
        return
    while entities[w, at].next != e:
        at = entities[w, at].next
    entities[w, at].next = following


@device
def append(world, entities, w, e, cell):
    """Put entity e at the end of a cell's list."""
    entities[w, e].cell = cell
    entities[w, e].next = -1
    at = world.head[cell]
    if at < 0:
        world.head[cell] = e
        column = cell // 25
        world.crowd[column] |= np.uint32(1 << (cell - 25 * column))
        return
    while entities[w, at].next >= 0:
        at = entities[w, at].next
    entities[w, at].next = e


@device
def re_cell(world, entities, w, e, x, y):
    """Move entity e, which now stands at x, y, to the end of the list of its new cell.

    Well inside the old cell no division is needed to see that nothing changes.
    """
    old = np.int64(entities[w, e].cell)
    column = old // 25
    dx = x - 24.0 * column
    dy = y - 24.0 * (old - 25 * column)
    if 0.001 < dx < 23.999 and 0.001 < dy < 23.999:
        return
    cell = cell_of(x, y)
    if cell != entities[w, e].cell:
        unlink(world, entities, w, e)
        append(world, entities, w, e, cell)


@device
def deactivate(world, entities, w, e):
    """Remove entity e from play."""
    entities[w, e].active = 0
    unlink(world, entities, w, e)


@device
def window(x, y):
    """The 3 x 3 cells around a point: first and last column, first and last row."""
    cell = cell_of(x, y)
    column = cell // 25
    row = cell - 25 * column
    return max(column - 1, 0), min(column + 1, 43), max(row - 1, 0), min(row + 1, 24)
