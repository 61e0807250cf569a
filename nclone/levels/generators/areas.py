"""Parts of a level that are furnished on their own, and the places that they offer."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nclone.levels.generators.canvas import SOLID

if TYPE_CHECKING:
    from nclone.levels.generators.canvas import Canvas

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
    return [
        (c, r)
        for c, r in area.cells()
        if canvas.is_empty(c, r) and canvas.tiles[r + 1, c] == SOLID and canvas.is_empty(c, r - 1)
    ]


def ceilings(canvas: Canvas, area: Area) -> list[Cell]:
    """Empty cells below solid rock."""
    return [
        (c, r)
        for c, r in area.cells()
        if canvas.is_empty(c, r) and canvas.tiles[r - 1, c] == SOLID and canvas.is_empty(c, r + 1)
    ]


def walls(canvas: Canvas, area: Area) -> list[tuple[int, int, int]]:
    """Empty cells beside solid rock, with the side that it is on: -1 left, 1 right."""
    return [
        (c, r, side)
        for c, r in area.cells()
        for side in (-1, 1)
        if canvas.is_empty(c, r)
        and canvas.tiles[r, c + side] == SOLID
        and canvas.is_empty(c - side, r)
    ]


def inner(canvas: Canvas, area: Area) -> list[Cell]:
    """Empty cells whose eight neighbours are empty."""
    return [
        (c, r)
        for c, r in area.cells()
        if all(canvas.is_empty(c + x, r + y) for x in (-1, 0, 1) for y in (-1, 0, 1))
    ]


def distances(canvas: Canvas, start: Cell) -> dict[Cell, int]:
    """Steps from a cell to every empty cell that can be reached from it, in four directions."""
    found, queue = {start: 0}, deque([start])
    while queue:
        c, r = queue.popleft()
        for near in ((c + 1, r), (c - 1, r), (c, r + 1), (c, r - 1)):
            if near not in found and canvas.is_empty(*near):
                found[near] = found[c, r] + 1
                queue.append(near)
    return found
