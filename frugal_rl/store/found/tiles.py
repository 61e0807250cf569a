"""Pictures drawn on a regular grid: which tiles they are made of, found on rows as they come."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from frugal_rl.observation.aligned import WORD_BYTES
from frugal_rl.observation.found_form import is_picture

SMALLEST, LARGEST = 3, 32
"""Pixels of a tile's side."""
SAMPLE_BYTES = 1 << 18
"""Bytes of the rows that sizes are tried on."""
WORTH_TILING = 0.5
"""Sizes are worth a trial if sampled rows would take less than this share of their bytes."""
NAME_BYTES = 2


@dataclass(frozen=True)
class Tiles:
    """A row as it lies in memory: [planes, lines, line bytes], cut into tiles from its first byte.

    A tile is `high` lines of `wide` bytes in every plane; the last of a line or column may be less.
    """

    planes: int
    lines: int
    line_bytes: int
    high: int
    wide: int

    @property
    def count(self) -> int:
        """Tiles of a row."""
        return -(-self.lines // self.high) * -(-self.line_bytes // self.wide)

    @property
    def words(self) -> int:
        """Words of a tile, each of its lines filled up to whole ones."""
        return self.planes * self.high * -(-self.wide // WORD_BYTES)

    @property
    def values(self) -> tuple[int, int, int, int, int]:
        """For kernels."""
        return self.planes, self.lines, self.line_bytes, self.high, self.wide


def lying(shape: tuple[int, ...], itemsize: int, last: bool, high: int = 1, wide: int = 1) -> Tiles:
    """Tiles of high x wide pixels in a picture of this shape.

    last tells that a picture [C, H, W] lies in memory as [H, W, C].
    """
    if len(shape) == 2:
        return Tiles(1, shape[0], shape[1] * itemsize, high, wide * itemsize)
    if shape[2] <= shape[0] and not last:
        pixel = shape[2] * itemsize
        return Tiles(1, shape[0], shape[1] * pixel, high, wide * pixel)
    channels, lines, across = shape
    if last:
        pixel = channels * itemsize
        return Tiles(1, lines, across * pixel, high, wide * pixel)
    return Tiles(channels, lines, across * itemsize, high, wide * itemsize)


def find_tiles(rows: np.ndarray) -> tuple[int, int] | None:
    """Height and width of the tiles that rows [T, N, *shape] are made of, if any are.

    The best square first, then the best height for its width, and the best width for that height.
    """
    shape, itemsize = rows.shape[2:], rows.dtype.itemsize
    if not is_picture(shape):
        return None
    plain = lying(shape, itemsize, last=False)
    flat = np.ascontiguousarray(_sampled(rows)).view(np.uint8)
    flat = flat.reshape(-1, plain.planes, plain.lines, plain.line_bytes)
    slots = np.zeros(1 << 16, np.uint64)

    def cost(high: int, wide: int) -> int:
        tiles = lying(shape, itemsize, False, high, wide)
        new = count_tiles(flat, tiles.high, tiles.wide, slots)
        return new * tiles.planes * tiles.high * tiles.wide + NAME_BYTES * tiles.count * len(flat)

    sides = range(SMALLEST, LARGEST + 1)
    square = min(sides, key=lambda side: cost(side, side))
    high = min(sides, key=lambda side: (cost(side, square), side != square))
    wide = min(sides, key=lambda side: (cost(high, side), side != square))
    return (high, wide) if cost(high, wide) < WORTH_TILING * flat.size else None


def _sampled(rows: np.ndarray) -> np.ndarray:
    """Rows [B, *shape] from all over [T, N, *shape]."""
    flat = rows.reshape(-1, *rows.shape[2:])
    most = max(4, SAMPLE_BYTES // (math.prod(flat.shape[1:]) * flat.itemsize))
    return flat[:: -(-len(flat) // most)]


@njit(cache=True)
def count_tiles(rows: Any, high: int, wide: int, slots: Any) -> int:
    """Distinct tiles of rows [B, planes, lines, line bytes] uint8, told apart by 64 bits of theirs.

    slots [S] uint64 is scratch; from half of them on, all further ones count as distinct.
    """
    slots[:] = 0
    mask, found = np.uint64(slots.shape[0] - 1), 0
    for b in range(rows.shape[0]):
        for top in range(0, rows.shape[2], high):
            for left in range(0, rows.shape[3], wide):
                mixed = np.uint64(0x9E3779B97F4A7C15)
                for a in range(rows.shape[1]):
                    for y in range(top, min(top + high, rows.shape[2])):
                        for x in range(left, min(left + wide, rows.shape[3])):
                            mixed = (mixed ^ rows[b, a, y, x]) * np.uint64(0xD6E8FEB86659FD93)
                mixed = (mixed ^ (mixed >> np.uint64(32))) | np.uint64(1)
                if 2 * found >= slots.shape[0]:
                    found += 1
                    continue
                slot = (mixed >> np.uint64(20)) & mask
                while slots[slot] != 0 and slots[slot] != mixed:
                    slot = (slot + np.uint64(1)) & mask
                found += slots[slot] == 0
                slots[slot] = mixed
    return found
