"""The guide's way to a frame: a full-size colour screen, converted, cropped, reduced.

The frames are those of `nclone.render.raster`, byte for byte; only memory and time differ.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from nclone.geometry import MAP_HEIGHT_PX, MAP_WIDTH_PX
from nclone.render.atlas import NINJA_SPRITE_OF, OUTSIDE
from nclone.render.raster import HALF_SPRITE, _blit, _fill_window, item_sprite, reduction

if TYPE_CHECKING:
    from nclone.render.scene import Moment, Stage

LAYERS = 3
"""Background, entities, and both together: what a screen of 32-bit surfaces holds."""
SHAPE = (MAP_HEIGHT_PX, MAP_WIDTH_PX)
SCREEN_BYTES = LAYERS * 4 * MAP_HEIGHT_PX * MAP_WIDTH_PX
CACHE_BYTES = MAP_HEIGHT_PX * MAP_WIDTH_PX
_GREY = np.array([77, 150, 29], np.uint32)
"""Weights of red, green and blue, of 256: equal channels keep their grey exactly."""


@njit(cache=True)
def draw_background(tiles, out):
    """The tiles of a level, out [600, 1056] uint8."""
    _fill_window(tiles, 0, 0, out)


@njit(cache=True)
def draw_entities(stage, moment, out):
    """Sprites of frame 0 over what is there, out [600, 1056] uint8."""
    level = moment.level[0]
    for k in range(stage.offsets[level], stage.offsets[level + 1]):
        sprite, x, y = item_sprite(0, k, stage, moment)
        if sprite >= 0:
            _blit(sprite, x, y, 0, 0, out)
    x, y = moment.ninja[0, 0] - HALF_SPRITE, moment.ninja[0, 1] - HALF_SPRITE
    _blit(NINJA_SPRITE_OF[moment.ninja[0, 2]], x, y, 0, 0, out)


class Screen:
    """Three 32-bit layers of the whole level, and the conversion to grey.

    Args:
        cache: keep the converted screen until the next drawing.
    """

    def __init__(self, cache: bool) -> None:
        self.layers = np.zeros((LAYERS, *SHAPE, 4), np.uint8)
        self.cache = cache
        self._kept: np.ndarray | None = None
        self._level = -1
        self.conversions = 0

    @property
    def kept_bytes(self) -> int:
        """Bytes of the converted screen that is kept."""
        return 0 if self._kept is None else int(self._kept.nbytes)

    def draw(self, stage: Stage, moment: Moment) -> None:
        """Draw a moment: the background when the level changes, all else every time."""
        level = int(moment.level[0])
        if level != self._level:
            grey = np.empty(SHAPE, np.uint8)
            draw_background(stage.tiles[level], grey)
            self.layers[0, ..., :3] = grey[..., None]
            self.layers[0, ..., 3] = 255
            self._level = level
        entities = self.layers[0, ..., 0].copy()
        draw_entities(stage, moment, entities)
        self.layers[1, ..., :3] = entities[..., None]
        self.layers[2] = self.layers[1]
        self._kept = None

    def stabilised(self) -> np.ndarray:
        """[600, 1056] uint8: copied out as a surface is, turned, and weighted to grey."""
        if self._kept is not None:
            return self._kept
        pixels = np.array(self.layers[2, ..., :3].transpose(1, 0, 2))
        turned = np.ascontiguousarray(pixels.transpose(1, 0, 2))
        grey = ((turned.astype(np.uint32) * _GREY).sum(axis=2) >> 8).astype(np.uint8)
        self.conversions += 1
        if self.cache:
            self._kept = grey
        return grey


def crop(picture: np.ndarray, x: int, y: int, out: np.ndarray) -> None:
    """The window around (x, y) px, 0 outside the level; out [H, W] uint8."""
    height, width = out.shape
    left, top = x - width // 2, y - height // 2
    out[:] = OUTSIDE
    rows = slice(max(top, 0), min(top + height, picture.shape[0]))
    columns = slice(max(left, 0), min(left + width, picture.shape[1]))
    if rows.start < rows.stop and columns.start < columns.stop:
        inner = picture[rows, columns]
        at = (rows.start - top, columns.start - left)
        out[at[0] : at[0] + inner.shape[0], at[1] : at[1] + inner.shape[1]] = inner


def reduce(picture: np.ndarray, out: np.ndarray) -> None:
    """The picture averaged over blocks, halves up, in the middle of out [H, W] uint8."""
    factor = reduction(*out.shape)
    height, width = picture.shape[0] // factor, picture.shape[1] // factor
    total = picture.reshape(height, factor, width, factor).sum(axis=(1, 3), dtype=np.uint32)
    area = factor * factor
    top, left = (out.shape[0] - height) // 2, (out.shape[1] - width) // 2
    out[:] = OUTSIDE
    out[top : top + height, left : left + width] = (2 * total + area) // (2 * area)
