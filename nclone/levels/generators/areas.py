"""Parts of a level that are furnished on their own, and the places that they offer."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from nclone.levels.generators.canvas import Canvas

SOLID, EMPTY = 1, 0
"""What a cell is filled with."""
Cell = tuple[int, int]
"""Column and row."""


@dataclass(frozen=True)
class Area:
    """A rectangle of cells, walls not included."""

    left: int
    top: int
    width: int
    height: int

    @property
    def right(self) -> int:
        """The last column."""
        return self.left + self.width - 1

    @property
    def bottom(self) -> int:
        """The last row."""
        return self.top + self.height - 1

    def cells(self) -> list[Cell]:
        """All cells, row by row."""
        return [
            (column, row)
            for row in range(self.top, self.bottom + 1)
            for column in range(self.left, self.right + 1)
        ]

    def holds(self, cell: Cell) -> bool:
        """Whether a cell lies inside."""
        return self.left <= cell[0] <= self.right and self.top <= cell[1] <= self.bottom


def floors(canvas: Canvas, area: Area) -> list[Cell]:
    """Empty cells on solid ground with room to stand."""
    part = _empty(canvas, area) & _empty(canvas, area, 0, -1) & _solid(canvas, area, 0, 1)
    return _cells(area, part)


def ceilings(canvas: Canvas, area: Area) -> list[Cell]:
    """Empty cells below solid rock."""
    part = _empty(canvas, area) & _empty(canvas, area, 0, 1) & _solid(canvas, area, 0, -1)
    return _cells(area, part)


def walls(canvas: Canvas, area: Area) -> list[tuple[int, int, int]]:
    """Empty cells beside solid rock, with the side that it is on: -1 left, 1 right."""
    empty, beside = _empty(canvas, area), (-1, 1)
    sides = [empty & _empty(canvas, area, -x, 0) & _solid(canvas, area, x, 0) for x in beside]
    places = np.argwhere(np.stack(sides, axis=-1)).tolist()
    return [(area.left + c, area.top + r, beside[k]) for r, c, k in places]


def inner(canvas: Canvas, area: Area) -> list[Cell]:
    """Empty cells whose eight neighbours are empty."""
    around = [(x, y) for x in (-1, 0, 1) for y in (-1, 0, 1)]
    parts = [_empty(canvas, area, x, y) for x, y in around]
    return _cells(area, np.logical_and.reduce(parts))


def distances(canvas: Canvas, start: Cell) -> dict[Cell, int]:
    """Steps from a cell to every empty cell that can be reached from it, in four directions."""
    empty = (canvas.tiles == EMPTY).tolist()
    found, queue = {start: 0}, deque([start])
    while queue:
        c, r = queue.popleft()
        steps = found[c, r] + 1
        for near in ((c + 1, r), (c - 1, r), (c, r + 1), (c, r - 1)):
            if empty[near[1]][near[0]] and near not in found:
                found[near] = steps
                queue.append(near)
    return found


def _part(canvas: Canvas, area: Area, x: int, y: int) -> NDArray[np.uint8]:
    """The tiles of an area that is shifted by some cells."""
    top, left = area.top + y, area.left + x
    return canvas.tiles[top : top + area.height, left : left + area.width]


def _empty(canvas: Canvas, area: Area, x: int = 0, y: int = 0) -> NDArray[np.bool_]:
    return _part(canvas, area, x, y) == EMPTY


def _solid(canvas: Canvas, area: Area, x: int, y: int) -> NDArray[np.bool_]:
    return _part(canvas, area, x, y) == SOLID


def _cells(area: Area, chosen: NDArray[np.bool_]) -> list[Cell]:
    """Cells of an area row by row."""
    return [(area.left + c, area.top + r) for r, c in np.argwhere(chosen).tolist()]
