"""Blocks of unequal size lie beside one another; where they do not, a unit or an edge is wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from frugal_rl.errors import DataError
from mine_rl_npv.data.roles import COORDINATES, EDGES

SAMPLE = 200
"""Blocks that are held against all others."""
CLOSE = 0.1
"""Share of an edge by which neighbours may lie apart or overlap, as rounded numbers do."""
USUAL = 0.5
"""Of the blocks with another one ahead along an axis, those that touch it at least."""


def refuse_apart(path: Path, place: list[int], centre: np.ndarray, edge: np.ndarray) -> None:
    """Raises DataError where blocks overlap, or where most stand apart from the next one.

    Args:
        path: for messages.
        place: line number of each row.
        centre: (N, 3) metres along the model's own axes.
        edge: (N, 3) metres.
    """
    some = np.unique(np.linspace(0, len(centre) - 1, SAMPLE).astype(np.int64))
    ahead, touching = np.zeros(3), np.zeros(3)
    for b in some:
        gap = np.abs(centre - centre[b]) - (edge + edge[b]) / 2
        slack = CLOSE * np.minimum(edge, edge[b])
        inside = gap < -slack
        inside[b] = False
        both = np.flatnonzero(inside.all(axis=1))
        if len(both):
            lines = sorted((place[b], place[both[0]]))
            raise DataError(
                f"{path}: the blocks of lines {lines[0]} and {lines[1]} overlap by their edges; "
                "check coordinates, dx, dy, dz and their units."
            )
        for axis in range(3):
            beside = inside[:, (axis + 1) % 3] & inside[:, (axis + 2) % 3]
            beside &= centre[:, axis] > centre[b, axis]
            if beside.any():
                ahead[axis] += 1
                touching[axis] += bool((gap[beside, axis] <= slack[beside, axis]).any())
    apart = np.flatnonzero(touching < USUAL * ahead)
    if len(apart):
        axis = int(apart[0])
        raise DataError(
            f"{path}: along {COORDINATES[axis]} only {touching[axis]:.0f} of {ahead[axis]:.0f} "
            f"blocks touch the next one; are {COORDINATES[axis]} and {EDGES[axis]} in one unit?"
        )
