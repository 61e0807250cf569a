"""The shapes of the 38 tiles and the size of the map: one table that everything static reads.

The solid part of every tile is empty, a half plane or one side of a circle around a corner, so
one line per tile says all of it. The rasteriser, the navigation graph and the level generators
ask `is_solid`; the simulator has its own table of oriented segments (the order of segments is
part of the physics, their area is not).
"""

from __future__ import annotations

import numpy as np
from numba import njit

TILE_PX = 24
HALF_PX = 12
COLUMNS, ROWS = 44, 25
MAP_WIDTH_PX, MAP_HEIGHT_PX = COLUMNS * TILE_PX, ROWS * TILE_PX
PLAYER_RADIUS_PX = 10.0
TILE_TYPES = 38
DIAGONAL_PX = float(np.hypot(MAP_WIDTH_PX, MAP_HEIGHT_PX))
"""Length of the level's diagonal, 1214.6 px."""

EMPTY, LINE, DISC, PIPE = 0, 1, 2, 3

# The solid side of a line p1 -> p2 is the one behind it (specification 4.1 and 5.1, y points
# down); a disc is solid inside radius 24 around the corner, a pipe outside of it.
_LINES: dict[int, tuple[int, int, int, int]] = {
    1: (0, 48, 24, 48), 2: (0, 12, 24, 12), 3: (12, 0, 12, 24), 4: (24, 12, 0, 12),
    5: (12, 24, 12, 0), 6: (0, 24, 24, 0), 7: (0, 0, 24, 24), 8: (24, 0, 0, 24),
    9: (24, 24, 0, 0), 18: (0, 12, 24, 0), 19: (0, 0, 24, 12), 20: (24, 12, 0, 24),
    21: (24, 24, 0, 12), 22: (0, 24, 24, 12), 23: (0, 12, 24, 24), 24: (24, 0, 0, 12),
    25: (24, 12, 0, 0), 26: (0, 24, 12, 0), 27: (12, 0, 24, 24), 28: (24, 0, 12, 24),
    29: (12, 24, 0, 0), 30: (12, 24, 24, 0), 31: (0, 0, 12, 24), 32: (12, 0, 0, 24),
    33: (24, 24, 12, 0),
}  # fmt: skip
_DISCS = {10: (0, 0), 11: (24, 0), 12: (24, 24), 13: (0, 24)}
_PIPES = {14: (24, 24), 15: (0, 24), 16: (0, 0), 17: (24, 0)}


def _shape_table() -> np.ndarray:
    """[38, 5] int64: kind, then x1, y1, x2, y2 of the line or the circle's centre."""
    table = np.zeros((TILE_TYPES, 5), np.int64)
    for kind, shapes in ((LINE, _LINES), (DISC, _DISCS), (PIPE, _PIPES)):
        for tile, numbers in shapes.items():
            table[tile, 0] = kind
            table[tile, 1 : 1 + len(numbers)] = numbers
    table.flags.writeable = False
    return table


SHAPES = _shape_table()
MIRRORED = np.array(
    [0, 1, 2, 5, 4, 3, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14, 17, 16, 19, 18, 21, 20, 23, 22]
    + [25, 24, 27, 26, 29, 28, 31, 30, 33, 32, 34, 37, 36, 35],
    np.uint8,
)
"""The tile type that looks like each type in a vertical mirror."""


@njit(cache=True)
def is_solid(tile, x, y):
    """Whether the tile-relative point (x, y) px lies strictly inside the tile's solid part.

    Types outside 0..37 and the four glitch types 34-37 have no solid part.
    """
    if tile < 1 or tile >= TILE_TYPES:
        return False
    kind = SHAPES[tile, 0]
    x1, y1 = SHAPES[tile, 1], SHAPES[tile, 2]
    if kind == LINE:
        return (y - y1) * (SHAPES[tile, 3] - x1) - (x - x1) * (SHAPES[tile, 4] - y1) < 0
    distance_squared = (x - x1) * (x - x1) + (y - y1) * (y - y1)
    if kind == DISC:
        return distance_squared < TILE_PX * TILE_PX
    return kind == PIPE and distance_squared > TILE_PX * TILE_PX


@njit(cache=True)
def is_solid_in_level(tiles, x, y):
    """Whether the level point (x, y) px lies in a solid part; outside the map all is solid.

    tiles  [25, 44] uint8
    """
    if not (0.0 <= x < MAP_WIDTH_PX and 0.0 <= y < MAP_HEIGHT_PX):
        return True
    column, row = int(x // TILE_PX), int(y // TILE_PX)
    return is_solid(tiles[row, column], x - column * TILE_PX, y - row * TILE_PX)


def solid_mask(tile: int, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """`is_solid` for arrays of tile-relative points; bool of their broadcast shape."""
    x, y = np.broadcast_arrays(x, y)
    kind, x1, y1, x2, y2 = SHAPES[tile] if tile < TILE_TYPES else SHAPES[0]
    if kind == LINE:
        return (y - y1) * (x2 - x1) - (x - x1) * (y2 - y1) < 0
    distance_squared = (x - x1) ** 2 + (y - y1) ** 2
    if kind == DISC:
        return distance_squared < TILE_PX**2
    if kind == PIPE:
        return distance_squared > TILE_PX**2
    return np.zeros(x.shape, np.bool_)
