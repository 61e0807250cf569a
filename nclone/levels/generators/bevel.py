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
    corners = _corners(canvas.tiles.copy(), kind)
    for row, column, k in np.argwhere(corners).tolist():
        if canvas.dice.chance(share):
            canvas.fill(FIRST_COLUMN + column, FIRST_ROW + row, 1, 1, style[k])


def _corners(tiles: NDArray[np.uint8], kind: int) -> NDArray[np.bool_]:
    """[rows, columns, 4] bool: the playable cells of a kind whose sides x, y alone are empty.

    An empty cell needs room beside it, so that what fills it leaves a way.
    """
    around = np.pad(tiles, 1, constant_values=SOLID)

    def at(x: int, y: int) -> NDArray[np.uint8]:
        """The tile that is x columns and y rows away from each playable cell."""
        top, left = FIRST_ROW + 1 + y, FIRST_COLUMN + 1 + x
        return around[top : top + LAST_ROW, left : left + LAST_COLUMN]

    found = []
    for x, y in _CORNERS:
        opened = (at(0, y) == EMPTY) & (at(x, 0) == EMPTY)
        shut = (at(0, -y) == SOLID) & (at(-x, 0) == SOLID)
        if kind == EMPTY:
            opened &= (at(2 * x, 0) == EMPTY) & (at(0, 2 * y) == EMPTY) & (at(x, y) == EMPTY)
        found.append(opened & shut & (at(0, 0) == kind))
    return np.stack(found, axis=-1)
