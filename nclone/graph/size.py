"""How large a level's graph is, and what a table holds of it: counted without building it.

Counting is NumPy: a plan compiles no kernel for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from nclone.geometry import PLAYER_RADIUS_PX, TILE_TYPES
from nclone.graph.features import MAX_EDGES, MAX_NODES
from nclone.graph.fields import graph_table
from nclone.graph.lattice import (
    DIRECTIONS,
    HALF_STEP_FREE,
    HEIGHT,
    NODE_FREE,
    NODES,
    STEP_PX,
    STEP_X,
    STEP_Y,
    WIDTH,
)

if TYPE_CHECKING:
    from nclone.graph.landmarks import Landmarks

OFFSET_BYTES = 8
"""Where a graph begins, of each field whose length varies."""


class Size(NamedTuple):
    """Nodes and edges of a graph."""

    nodes: int
    edges: int

    @property
    def row_bytes(self) -> int:
        """What a table holds of it, but for the features of edges.

        Those repeat: a table holds each combination once, less than 2 % of all.
        """
        longest = {MAX_NODES: self.nodes, MAX_EDGES: self.edges}
        total = 0
        for f in graph_table().fields.values():
            each = f.arena().row_bytes
            total += each * longest[f.shape[0]] + OFFSET_BYTES if f.ragged else each
        return total


def graph_size(marks: Landmarks) -> Size:
    """The graph of a level with all its locked doors closed."""
    free, reached = _reachable(marks)
    return Size(int(reached.sum()), int(free[:, reached].sum()))


def graph_edges(marks: Landmarks) -> np.ndarray:
    """[e, 2] int16: source and target of the same graph's edges, by source."""
    free, reached = _reachable(marks)
    number = np.cumsum(reached) - 1
    source, direction = np.nonzero((free & reached).T)
    target = source + (STEP_X + WIDTH * STEP_Y)[direction]
    return np.stack([number[source], number[target]], axis=1).astype(np.int16)


def _reachable(marks: Landmarks) -> tuple[np.ndarray, np.ndarray]:
    """[4, 4400] bool, which steps are free, and [4400] bool, where they lead from the spawn."""
    exists, free = _lattice(marks)
    return free, _flooded(exists, free, marks.spawn)


def _lattice(marks: Landmarks) -> tuple[np.ndarray, np.ndarray]:
    """[4400] bool, which nodes exist, and [4, 4400] bool, which of their steps are free."""
    node = np.arange(NODES)
    column, row = node % WIDTH, node // WIDTH
    tile = marks.tiles[row >> 1, column >> 1].astype(np.int64)
    inside, known = 2 * (row & 1) + (column & 1), np.minimum(tile, TILE_TYPES - 1)
    foreign = tile >= TILE_TYPES
    exists = foreign | NODE_FREE[known, inside]
    for x, y in marks.door_cells:
        exists.reshape(HEIGHT, WIDTH)[2 * y : 2 * y + 2, 2 * x : 2 * x + 2] = False
    half = (foreign[:, None] | HALF_STEP_FREE[known, inside]).T
    free = np.zeros((DIRECTIONS, NODES), np.bool_)
    for d in range(DIRECTIONS):
        to_column, to_row = column + STEP_X[d], row + STEP_Y[d]
        within = (to_column >= 0) & (to_column < WIDTH) & (to_row >= 0) & (to_row < HEIGHT)
        to = np.where(within, to_row * WIDTH + to_column, node)
        free[d] = within & exists & exists[to] & half[d] & half[(d + 2) % DIRECTIONS, to]
    return exists, free


def _flooded(exists: np.ndarray, free: np.ndarray, spawn: tuple[float, float]) -> np.ndarray:
    """[4400] bool: what can be reached from the nodes in the player's circle, else the nearest."""
    node = np.arange(NODES)
    x, y = STEP_PX * (node % WIDTH) + STEP_PX / 2, STEP_PX * (node // WIDTH) + STEP_PX / 2
    squared = np.where(exists, (x - spawn[0]) ** 2 + (y - spawn[1]) ** 2, np.inf)
    front = np.flatnonzero(squared <= PLAYER_RADIUS_PX**2)
    if not len(front):
        front = np.array([squared.argmin()] if exists.any() else [], np.int64)
    reached, steps = np.zeros(NODES, np.bool_), STEP_X + WIDTH * STEP_Y
    while len(front):
        reached[front] = True
        ahead = [front[free[d, front]] + steps[d] for d in range(DIRECTIONS)]
        front = np.unique(np.concatenate(ahead))
        front = front[~reached[front]]
    return reached
