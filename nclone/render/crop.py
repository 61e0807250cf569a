"""The part of the picture where a level is open: small levels leave most of the map solid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from nclone.geometry import COLUMNS, ROWS, TILE_PX

if TYPE_CHECKING:
    from nclone.levels.level import Level


class Box(NamedTuple):
    """A rectangle of tiles of the full map."""

    left: int
    top: int
    width: int
    height: int


FULL = Box(0, 0, COLUMNS, ROWS)


def open_box(level: Level) -> Box:
    """The tiles that are not solid, and one more on each side."""
    rows, columns = np.nonzero(level.tiles != 1)
    if not len(rows):
        return FULL
    left, top = int(columns.min()) - 1, int(rows.min()) - 1
    return Box(left, top, int(columns.max()) + 2 - left, int(rows.max()) + 2 - top)


def common_boxes(levels: Sequence[Level], least: tuple[int, int] = (16, 9)) -> list[Box]:
    """One box per level, all of the same size, each with its level's open part in the middle.

    `least` is the smallest size, width and height in tiles.
    """
    boxes = [open_box(level) for level in levels]
    width = max(least[0], *(box.width for box in boxes))
    height = max(least[1], *(box.height for box in boxes))
    width, height = min(width, COLUMNS), min(height, ROWS)
    return [
        Box(
            int(np.clip(box.left + (box.width - width) // 2, 0, COLUMNS - width)),
            int(np.clip(box.top + (box.height - height) // 2, 0, ROWS - height)),
            width,
            height,
        )
        for box in boxes
    ]


def cut(image: np.ndarray, box: Box, scale: float) -> np.ndarray:
    """The box of a picture [H, W, 3] of the full map, as a copy of its own."""
    top, left = round(box.top * TILE_PX * scale), round(box.left * TILE_PX * scale)
    height, width = round(box.height * TILE_PX * scale), round(box.width * TILE_PX * scale)
    return np.ascontiguousarray(image[top : top + height, left : left + width])
