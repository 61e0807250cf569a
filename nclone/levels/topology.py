"""What the rooms of a level look like as a graph, whatever their sizes."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from nclone.geometry import COLUMNS, ROWS, TILE_PX
from nclone.levels.entity_types import EntityType

if TYPE_CHECKING:
    from nclone.levels.level import Level

FULL = 1
Run = tuple[int, int, int]
"""Column, first row and last row of cells one below the other that are not full."""


class Topology(NamedTuple):
    """Invariants of a level's graph of vertical runs, joined where they touch sideways.

    degrees  how many runs have how many neighbours, (degree, count) ascending; those with two,
             which only make a way longer, are left out
    loops    edges beyond those of a tree: ways around something
    doors    locked and trap doors
    """

    degrees: tuple[tuple[int, int], ...]
    loops: int
    doors: int


def topology(level: Level) -> Topology:
    """The invariants of the part of a level in which the ninja begins."""
    neighbours = _reached(_graph(level), level)
    edges = sum(map(len, neighbours.values())) // 2
    degrees = Counter(len(near) for near in neighbours.values() if len(near) != 2)
    kinds = level.entities[:, 0]
    doors = int(np.isin(kinds, (EntityType.LOCKED_DOOR, EntityType.TRAP_DOOR)).sum())
    return Topology(tuple(sorted(degrees.items())), edges - len(neighbours) + 1, doors)


def _graph(level: Level) -> dict[Run, set[Run]]:
    """Every run with the runs in the columns beside it that share a row with it."""
    columns = [_runs(level, column) for column in range(COLUMNS)]
    found: dict[Run, set[Run]] = {run: set() for runs in columns for run in runs}
    for left, right in pairwise(columns):
        for a in left:
            for b in right:
                if a[1] <= b[2] and b[1] <= a[2]:
                    found[a].add(b)
                    found[b].add(a)
    return found


def _runs(level: Level, column: int) -> list[Run]:
    open_cells = np.r_[False, level.tiles[:, column] != FULL, False]
    edges = np.flatnonzero(open_cells[1:] != open_cells[:-1]).reshape(-1, 2)
    return [(column, int(first), int(end) - 1) for first, end in edges]


def _reached(graph: dict[Run, set[Run]], level: Level) -> dict[Run, set[Run]]:
    column = min(int(level.spawn[0] // TILE_PX), COLUMNS - 1)
    row = min(int(level.spawn[1] // TILE_PX), ROWS - 1)
    start = [run for run in graph if run[0] == column and run[1] <= row <= run[2]]
    found, queue = set(start), start
    while queue:
        new = graph[queue.pop()] - found
        found |= new
        queue += new
    return {run: graph[run] for run in graph if run in found}
