"""Corners made round or oblique, as people draw them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nclone.levels.generators.canvas import (
    EMPTY,
    FIRST_COLUMN,
    FIRST_ROW,
    LAST_COLUMN,
    LAST_ROW,
    SOLID,
)

if TYPE_CHECKING:
    from nclone.levels.generators.canvas import Canvas

_CORNERS = ((-1, -1), (1, -1), (1, 1), (-1, 1))
"""Empty sides (x, y) of a solid cell whose tile is solid in the opposite corner."""
STYLES: dict[str, tuple[int, int, int, int]] = {
    "oblique": (8, 9, 6, 7),
    "disc": (12, 13, 10, 11),
    "pipe": (16, 17, 14, 15),
}
"""Tiles by the corner that is cut off, in the order of `_CORNERS`."""


def bevel(canvas: Canvas, share: float) -> None:
    """Cut off a share of the outer corners, or fill a share of the inner ones, in one style.

    Both at once would make saws of stairs.
    """
    if share <= 0.0:
        return
    style = STYLES[canvas.dice.pick(tuple(STYLES))]
    kind = canvas.dice.pick((SOLID, EMPTY))
    before = canvas.tiles.copy()
    for row in range(FIRST_ROW, LAST_ROW + 1):
        for column in range(FIRST_COLUMN, LAST_COLUMN + 1):
            if before[row, column] != kind:
                continue
            for tile, (x, y) in zip(style, _CORNERS, strict=True):
                if _is_corner(before, column, row, x, y) and canvas.dice.chance(share):
                    canvas.fill(column, row, 1, 1, tile)


def _is_corner(tiles: NDArray[np.uint8], column: int, row: int, x: int, y: int) -> bool:
    """Whether the sides x and y of a cell are empty and the others solid.

    An empty cell needs room beside it, so that what fills it leaves a way.
    """
    opened = tiles[row + y, column] == tiles[row, column + x] == EMPTY
    shut = tiles[row - y, column] == tiles[row, column - x] == SOLID
    if not opened or not shut:
        return False
    beside = (tiles[row, column + 2 * x], tiles[row + 2 * y, column], tiles[row + y, column + x])
    return bool(tiles[row, column] == SOLID or beside == (EMPTY, EMPTY, EMPTY))
