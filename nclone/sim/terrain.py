"""Tiles become segments and half-grid edges (specification, section 4; profile `plain`)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nclone.geometry import COLUMNS, ROWS
from nclone.sim.state import CELLS, CONCAVE, CONVEX, LINE, SEGMENT

# Per tile: segments at top, middle, bottom, left, middle, right (two halves each; '-' outer normal
# up or left, '+' down or right), the same places as edges, and the one sloped segment: a line
# x1 y1 x2 y2, or an arc of radius 24 with centre and quadrant signs.
_TILES = """
 0 .. .. .. .. .. ..  00 00 00 00 00 00
 1 -- .. ++ -- .. ++  11 00 11 11 00 11
 2 -- ++ .. -. .. +.  11 11 00 10 00 10
 3 .- .. .+ .. -- ++  01 00 01 00 11 11
 4 .. -- ++ .- .. .+  00 11 11 01 00 01
 5 -. .. +. -- ++ ..  10 00 10 11 11 00
 6 -- .. .. -- .. ..  11 01 10 11 01 10  line 0 24 24 0
 7 -- .. .. .. .. ++  11 10 01 10 01 11  line 0 0 24 24
 8 .. .. ++ .. .. ++  01 10 11 01 10 11  line 24 0 0 24
 9 .. .. ++ -- .. ..  10 01 11 11 10 01  line 24 24 0 0
10 -- .. .. -- .. ..  11 00 11 11 00 11  convex 0 0 1 1
11 -- .. .. .. .. ++  11 00 11 11 00 11  convex 24 0 -1 1
12 .. .. ++ .. .. ++  11 00 11 11 00 11  convex 24 24 -1 -1
13 .. .. ++ -- .. ..  11 00 11 11 00 11  convex 0 24 1 -1
14 -- .. .. -- .. ..  11 01 10 11 01 10  concave 24 24 -1 -1
15 -- .. .. .. .. ++  11 10 01 10 01 11  concave 0 24 1 -1
16 .. .. ++ .. .. ++  01 10 11 01 10 11  concave 0 0 1 1
17 .. .. ++ -- .. ..  10 01 11 11 10 01  concave 24 0 -1 1
18 -- .. .. -. .. ..  11 11 00 10 00 10  line 0 12 24 0
19 -- .. .. .. .. +.  11 11 00 10 00 10  line 0 0 24 12
20 .. .. ++ .. .. .+  00 11 11 01 00 01  line 24 12 0 24
21 .. .. ++ .- .. ..  00 11 11 01 00 01  line 24 24 0 12
22 -- .. .. -- .. +.  11 00 11 11 00 11  line 0 24 24 12
23 -- .. .. -. .. ++  11 00 11 11 00 11  line 0 12 24 24
24 .. .. ++ .- .. ++  11 00 11 11 00 11  line 24 0 0 12
25 .. .. ++ -- .. .+  11 00 11 11 00 11  line 24 12 0 0
26 -. .. .. -- .. ..  10 00 10 11 11 00  line 0 24 12 0
27 .- .. .. .. .. ++  01 00 01 00 11 11  line 12 0 24 24
28 .. .. .+ .. .. ++  01 00 01 00 11 11  line 24 0 12 24
29 .. .. +. -- .. ..  10 00 10 11 11 00  line 12 24 0 0
30 -- .. +. -- .. ..  11 00 11 11 00 11  line 12 24 24 0
31 -- .. .+ .. .. ++  11 00 11 11 00 11  line 0 0 12 24
32 .- .. ++ .. .. ++  11 00 11 11 00 11  line 12 0 0 24
33 -. .. ++ -- .. ..  11 00 11 11 00 11  line 24 24 12 0
34 -- .. .. .. .. ..  11 00 00 00 00 00
35 .. .. .. .. .. ++  00 00 00 00 00 11
36 .. .. ++ .. .. ..  00 00 11 00 00 00
37 .. .. .. -- .. ..  00 00 00 11 00 00
"""
_SIGN = {".": 0, "-": -1, "+": 1}
_KIND = {"line": LINE, "convex": CONVEX, "concave": CONCAVE}
HORIZONTAL, VERTICAL = 0, 1


def _read_tiles() -> tuple[NDArray[np.int8], NDArray[np.int8], NDArray[np.void]]:
    """[256, 2, 3, 2] segment signs and edges by (tile, direction, place, half); [256] slopes."""
    signs = np.zeros((256, 2, 3, 2), np.int8)
    edges = np.zeros((256, 2, 3, 2), np.int8)
    slopes = np.zeros(256, SEGMENT)
    slopes["kind"] = -1
    for line in _TILES.strip().splitlines():
        words = line.split()
        tile = int(words[0])
        signs[tile] = np.reshape([_SIGN[c] for c in "".join(words[1:7])], (2, 3, 2))
        edges[tile] = np.reshape([int(c) for c in "".join(words[7:13])], (2, 3, 2))
        if len(words) > 13:
            a, b, c, d = map(int, words[14:])
            kind = _KIND[words[13]]
            px, py = (c - a, d - b) if kind == LINE else (c, d)
            reach_x, reach_y = (px, py) if kind == LINE else (24 * px, 24 * py)
            box = (min(a, a + reach_x), min(b, b + reach_y))
            box += (max(a, a + reach_x), max(b, b + reach_y))
            slopes[tile] = (a, b, px, py, *box, kind)
    return signs, edges, slopes


SIGNS, EDGES, SLOPES = _read_tiles()


def merge_tiles(tiles: NDArray[np.uint8]) -> tuple[list[NDArray[np.int8]], list[NDArray[np.int8]]]:
    """[25, 44] tiles -> ([88, 51] and [89, 50] signs, the same shapes of edges).

    Opposite faces of neighbours cancel, so only the outlines of solids remain.
    """
    columns = tiles.T
    signs = [np.zeros((88, 51), np.int8), np.zeros((89, 50), np.int8)]
    edges = [np.zeros((88, 51), np.int8), np.zeros((89, 50), np.int8)]
    signs[HORIZONTAL][:, 0], signs[HORIZONTAL][:, 50] = 1, -1
    signs[VERTICAL][0], signs[VERTICAL][88] = 1, -1
    edges[HORIZONTAL][:, [0, 50]] = 1
    edges[VERTICAL][[0, 88]] = 1
    for place in range(3):
        for half in range(2):
            along, across = slice(half, None, 2), slice(place, place + 49, 2)
            signs[HORIZONTAL][along, across] += SIGNS[columns, HORIZONTAL, place, half]
            edges[HORIZONTAL][along, across] ^= EDGES[columns, HORIZONTAL, place, half]
            across = slice(place, place + 87, 2)
            signs[VERTICAL][across, along] += SIGNS[columns, VERTICAL, place, half]
            edges[VERTICAL][across, along] ^= EDGES[columns, VERTICAL, place, half]
    return signs, edges


def _straight(
    signs: NDArray[np.int8], direction: int
) -> tuple[NDArray[np.int64], NDArray[np.void]]:
    """Owner cells and segments of 12 px of one direction, ordered by (hx, hy)."""
    hx, hy = np.nonzero(signs)
    positive = signs[hx, hy] > 0
    rows = np.zeros(len(hx), SEGMENT)
    x, y = 12 * hx, 12 * hy
    if direction == HORIZONTAL:
        cells = hx // 2 * ROWS + (hy - positive) // 2
        rows["x1"], rows["px"] = np.where(positive, x, x + 12), np.where(positive, 12, -12)
        rows["y1"] = y
        rows["x_max"], rows["y_max"] = x + 12, y
    else:
        cells = (hx - positive) // 2 * ROWS + hy // 2
        rows["y1"], rows["py"] = np.where(positive, y + 12, y), np.where(positive, -12, 12)
        rows["x1"] = x
        rows["x_max"], rows["y_max"] = x, y + 12
    rows["x_min"], rows["y_min"] = x, y
    return cells, rows


def build_segments(
    tiles: NDArray[np.uint8],
) -> tuple[NDArray[np.void], NDArray[np.uint16], list[NDArray[np.int8]]]:
    """[25, 44] tiles -> segments by cell, [1101] first segment of each cell, edges.

    In a cell: the slope, then horizontal, then vertical segments (specification, 4.3).
    """
    signs, edges = merge_tiles(tiles)
    flat = tiles.T.ravel()
    sloped = np.nonzero(SLOPES["kind"][flat] >= 0)[0]
    slopes = SLOPES[flat[sloped]]
    for axis, corner in (("x", sloped // ROWS * 24), ("y", sloped % ROWS * 24)):
        for part in ("1", "_min", "_max"):
            slopes[axis + part] += corner.astype(np.float32)
    across, level = _straight(signs[HORIZONTAL], HORIZONTAL)
    upright, walls = _straight(signs[VERTICAL], VERTICAL)
    cells = np.concatenate([sloped, across, upright])
    order = np.argsort(cells, kind="stable")
    first = np.zeros(CELLS + 1, np.uint16)
    first[1:] = np.cumsum(np.bincount(cells, minlength=CELLS))
    return np.concatenate([slopes, level, walls])[order], first, edges


def cell_bits(cells: NDArray[np.integer]) -> NDArray[np.uint32]:
    """Cell numbers -> [44] bit sets over the rows of each column."""
    bits = np.zeros(COLUMNS, np.uint32)
    at = np.asarray(cells, np.int64)
    np.bitwise_or.at(bits, at // ROWS, np.left_shift(1, at % ROWS).astype(np.uint32))
    return bits
