"""Caves from noise: a cell becomes what most of its neighbours are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nclone.levels.generators.areas import EMPTY, SOLID, distances

if TYPE_CHECKING:
    from nclone.levels.generators.areas import Area, Cell
    from nclone.levels.generators.canvas import Canvas

ROUNDS = 4
MAJORITY = 5


def carve_cave(canvas: Canvas, box: Area, rock: float) -> None:
    """Carve a cave into a box: noise, some rounds of majority, then the largest hollow alone."""
    noise = [canvas.dice.chance(rock) for _ in box.cells()]
    solid = np.ones((box.height + 2, box.width + 2), np.uint8)
    solid[1:-1, 1:-1] = np.array(noise, np.uint8).reshape(box.height, box.width)
    for _ in range(ROUNDS):
        solid[1:-1, 1:-1] = _around(solid) >= MAJORITY
    place = canvas.tiles[box.top : box.bottom + 1, box.left : box.right + 1]
    place[:] = np.where(solid[1:-1, 1:-1] == 1, SOLID, EMPTY)
    kept = _largest(canvas, box)
    for column, row in box.cells():
        if (column, row) not in kept:
            canvas.fill(column, row, 1, 1)


def _around(solid: np.ndarray) -> np.ndarray:
    """Solid cells among each inner cell and its eight neighbours."""
    height, width = solid.shape
    total = np.zeros((height - 2, width - 2), np.uint8)
    for y in range(3):
        for x in range(3):
            total += solid[y : y + height - 2, x : x + width - 2]
    return total


def _largest(canvas: Canvas, box: Area) -> set[Cell]:
    """The cells of the largest connected hollow."""
    best: set[Cell] = set()
    seen: set[Cell] = set()
    for cell in box.cells():
        if canvas.is_empty(*cell) and cell not in seen:
            hollow = set(distances(canvas, cell))
            seen |= hollow
            if len(hollow) > len(best):
                best = hollow
    return best
