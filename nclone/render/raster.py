"""Draws N grey frames per call from glyphs and sprites; no full-size background exists.

The picture of a level is 600 x 1056 px: glyphs, then items in order, then the ninja. Both frames
are exact views of it: `player_frame` a window around the ninja, `global_view` the average of
blocks. Only the blocks that a sprite touches are added up; the rest are averaged glyphs.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numba import njit, prange

from nclone.geometry import COLUMNS, MAP_HEIGHT_PX, MAP_WIDTH_PX, ROWS, TILE_PX
from nclone.render.atlas import GLYPHS, NINJA_SPRITE_OF, OUTSIDE, SPRITE_OF, SPRITES
from nclone.render.scene import (
    CODE_SLOT,
    ITEM_X,
    ITEM_Y,
    KIND,
    MOVING_SLOT,
    ORIENTATION,
    Moment,
    Stage,
)
from nclone.sim.compile import kernel

PLAYER_FRAME_SHAPE = (84, 84)
GLOBAL_VIEW_SHAPE = (100, 176)
REDUCTIONS = (1, 2, 3, 4, 6, 8, 12, 24)
HALF_SPRITE = TILE_PX // 2
MAX_TILE = GLYPHS.shape[0] - 1


@kernel
def item_sprite(n, k, stage, moment):
    """Sprite number and top left pixel of item k in frame n; number -1 if it shows nothing."""
    item = stage.items[k]
    code = 0 if item[CODE_SLOT] < 0 else moment.codes[n, item[CODE_SLOT]] & 7
    x, y = item[ITEM_X], item[ITEM_Y]
    if item[MOVING_SLOT] >= 0:
        x, y = moment.moving[n, item[MOVING_SLOT], 0], moment.moving[n, item[MOVING_SLOT], 1]
    sprite = SPRITE_OF[item[KIND], item[ORIENTATION], code]
    return sprite, x - HALF_SPRITE, y - HALF_SPRITE


@kernel
def _blit(sprite, x, y, left, top, out):
    """Draw a sprite's corner at the picture's pixel (x, y) into the window at (left, top)."""
    first_row, end_row = max(y, top, 0), min(y + TILE_PX, top + out.shape[0], MAP_HEIGHT_PX)
    first_column = max(x, left, 0)
    end_column = min(x + TILE_PX, left + out.shape[1], MAP_WIDTH_PX)
    for row in range(first_row, end_row):
        for column in range(first_column, end_column):
            value = SPRITES[sprite, row - y, column - x]
            if value != 0:
                out[row - top, column - left] = value


@kernel
def _fill_window(tiles, left, top, out):
    """Copy the glyphs under a window of the level picture; 0 outside the level."""
    height, width = out.shape
    for row in range(height):
        y = top + row
        if y < 0 or y >= MAP_HEIGHT_PX:
            out[row] = OUTSIDE
            continue
        tile_row, glyph_row = y // TILE_PX, y % TILE_PX
        column = 0
        while column < width:
            x = left + column
            if x < 0 or x >= MAP_WIDTH_PX:
                out[row, column] = OUTSIDE
                column += 1
                continue
            tile = min(tiles[tile_row, x // TILE_PX], MAX_TILE)
            glyph_column = x % TILE_PX
            run = min(TILE_PX - glyph_column, width - column)
            for k in range(run):
                out[row, column + k] = GLYPHS[tile, glyph_row, glyph_column + k]
            column += run


@kernel
def _player_frame(n, stage, moment, out):
    height, width = out.shape
    level = moment.level[n]
    left, top = moment.ninja[n, 0] - width // 2, moment.ninja[n, 1] - height // 2
    _fill_window(stage.tiles[level], left, top, out)
    for k in range(stage.offsets[level], stage.offsets[level + 1]):
        sprite, x, y = item_sprite(n, k, stage, moment)
        if sprite >= 0:
            _blit(sprite, x, y, left, top, out)
    x, y = moment.ninja[n, 0] - HALF_SPRITE, moment.ninja[n, 1] - HALF_SPRITE
    _blit(NINJA_SPRITE_OF[moment.ninja[n, 2]], x, y, left, top, out)


@njit(cache=True, parallel=True)
def draw_player_frames(stage, moment, out):
    """Windows of the level picture with the ninja in the centre, 0 outside the level.

    stage   Stage, moment Moment (see `nclone.render.scene`)
    out     [N, H, W] uint8, overwritten; H and W even
    """
    for n in prange(out.shape[0]):
        _player_frame(n, stage, moment, out[n])


def reduction(height: int, width: int) -> int:
    """The smallest divisor of 24 by which the level fits into a frame of H x W pixels."""
    for factor in REDUCTIONS:
        if factor * height >= MAP_HEIGHT_PX and factor * width >= MAP_WIDTH_PX:
            return factor
    raise ValueError(
        f"A global view of {height} x {width} px is too small for the level; "
        f"use at least {ROWS} x {COLUMNS}, for instance 100 x 176."
    )


class Grain(NamedTuple):
    """Glyphs and sprites at 1/f scale, as sums of greys over blocks of f x f px.

    sums     [38, 24 / f, 24 / f] int32 and means, the same as uint8 greys
    uniform  [38] int32: the grey of a glyph that has only one, else -1
    greys    [S, f * f, 24 / f + 1, 24 / f + 1] int32: summed greys of a sprite whose corner lies
             at each of the f * f places in a block; counts likewise, of its opaque pixels
    """

    factor: int
    sums: np.ndarray
    means: np.ndarray
    uniform: np.ndarray
    greys: np.ndarray
    counts: np.ndarray


@lru_cache(maxsize=len(REDUCTIONS))
def make_grain(factor: int) -> Grain:
    """Add up glyphs and sprites for one scale; kept, as it takes milliseconds."""
    sums, area = _block_sums(GLYPHS, factor), factor * factor
    lowest, highest = GLYPHS.min(axis=(1, 2)), GLYPHS.max(axis=(1, 2))
    phases = [(y, x) for y in range(factor) for x in range(factor)]
    padded = [
        np.pad(SPRITES, ((0, 0), (y, factor - y), (x, factor - x)))[:, :, : TILE_PX + factor]
        for y, x in phases
    ]
    return Grain(
        factor,
        sums,
        ((2 * sums + area) // (2 * area)).astype(np.uint8),
        np.where(lowest == highest, lowest.astype(np.int32), -1).astype(np.int32),
        np.stack([_block_sums(p, factor) for p in padded], axis=1),
        np.stack([_block_sums(p > 0, factor) for p in padded], axis=1),
    )


def _block_sums(pictures: np.ndarray, factor: int) -> np.ndarray:
    """[K, H, W] -> [K, H / f, W / f] int32: greys added up over blocks of f x f px."""
    k, height, width = pictures.shape
    blocks = pictures.reshape(k, height // factor, factor, width // factor, factor)
    return blocks.sum(axis=(2, 4), dtype=np.int32)


@kernel
def average(total, count):
    """Mean of `count` greys, halves up, in integers."""
    return (2 * total + count) // (2 * count)


@kernel
def _under(pixel_x, pixel_y, tiles, shown, below):
    """The picture's grey at a pixel before a sprite is drawn: the highest sprite below, or tile."""
    for k in range(below - 1, -1, -1):
        x, y = pixel_x - shown[k, 1], pixel_y - shown[k, 2]
        if 0 <= x < TILE_PX and 0 <= y < TILE_PX:
            value = SPRITES[shown[k, 0], y, x]
            if value != 0:
                return value
    tile = min(tiles[pixel_y // TILE_PX, pixel_x // TILE_PX], MAX_TILE)
    return GLYPHS[tile, pixel_y % TILE_PX, pixel_x % TILE_PX]


@kernel
def _list_sprites(n, stage, moment, shown):
    """List what frame n shows, [K, 3] int32: sprite, left, top; the ninja is last."""
    level, count = moment.level[n], 0
    for k in range(stage.offsets[level], stage.offsets[level + 1]):
        sprite, x, y = item_sprite(n, k, stage, moment)
        if sprite >= 0:
            shown[count, 0], shown[count, 1], shown[count, 2] = sprite, x, y
            count += 1
    shown[count, 0] = NINJA_SPRITE_OF[moment.ninja[n, 2]]
    shown[count, 1] = moment.ninja[n, 0] - HALF_SPRITE
    shown[count, 2] = moment.ninja[n, 1] - HALF_SPRITE
    return count + 1


@kernel
def _overlapping(shown, top_sprite, lower):
    """Copy the sprites below `top_sprite` that share pixels with its box; returns how many."""
    count = 0
    for k in range(top_sprite):
        near_x = abs(shown[k, 1] - shown[top_sprite, 1]) < TILE_PX
        if near_x and abs(shown[k, 2] - shown[top_sprite, 2]) < TILE_PX:
            lower[count, 0], lower[count, 1], lower[count, 2] = (
                shown[k, 0],
                shown[k, 1],
                shown[k, 2],
            )
            count += 1
    return count


@kernel
def _add_pixels(shown, k, lower, below, tiles, factor, block_row, block_column, change):
    """Add to one block's change what sprite k makes its pixels brighter or darker."""
    left, top = shown[k, 1], shown[k, 2]
    first_row, end_row = max(top, block_row * factor), min(top + TILE_PX, (block_row + 1) * factor)
    first_column = max(left, block_column * factor)
    end_column = min(left + TILE_PX, (block_column + 1) * factor)
    for y in range(first_row, end_row):
        for x in range(first_column, end_column):
            value = SPRITES[shown[k, 0], y - top, x - left]
            if value != 0:
                before = _under(x, y, tiles, lower, below)
                change[block_row, block_column] += np.int32(value) - np.int32(before)


@kernel
def _add_sprite(shown, k, lower, below, tiles, grain, change):
    """Add sprite k to the blocks under it.

    A block lies in one tile. Where the tile has one grey and no sprite is below, the sum and the
    count of the sprite's pixels in the block decide; elsewhere each pixel is looked up.
    """
    factor = grain.factor
    side = TILE_PX // factor
    number, left, top = shown[k]
    row, column = top // factor, left // factor
    phase = (top - row * factor) * factor + left - column * factor
    for r in range(max(0, -row), min(side + 1, change.shape[0] - row)):
        for c in range(max(0, -column), min(side + 1, change.shape[1] - column)):
            count = grain.counts[number, phase, r, c]
            if count == 0:
                continue
            grey = grain.uniform[min(tiles[(row + r) // side, (column + c) // side], MAX_TILE)]
            if below == 0 and grey >= 0:
                change[row + r, column + c] += grain.greys[number, phase, r, c] - count * grey
            else:
                _add_pixels(shown, k, lower, below, tiles, factor, row + r, column + c, change)


@kernel
def _finish(shown, count, tiles, grain, change, out):
    """Write the blocks that sprites have changed, and clear their changes."""
    side = TILE_PX // grain.factor
    for k in range(count):
        row, column = shown[k, 2] // grain.factor, shown[k, 1] // grain.factor
        for r in range(max(0, row), min(row + side + 1, change.shape[0])):
            for c in range(max(0, column), min(column + side + 1, change.shape[1])):
                if change[r, c] != 0:
                    tile = min(tiles[r // side, c // side], MAX_TILE)
                    total = grain.sums[tile, r % side, c % side] + change[r, c]
                    out[r, c] = average(total, grain.factor * grain.factor)
                    change[r, c] = 0


@kernel
def _fill_view(tiles, glyphs, canvas):
    """Copy the averaged glyphs of a level; both arrays may count words of several pixels.

    glyphs [38, side, words] and canvas [25 side, 44 words]: uint8 or uint32
    """
    side, words = glyphs.shape[1], glyphs.shape[2]
    for row in range(canvas.shape[0]):
        for column in range(COLUMNS):
            tile = min(tiles[row // side, column], MAX_TILE)
            for word in range(words):
                canvas[row, column * words + word] = glyphs[tile, row % side, word]


@kernel
def _global_view(n, stage, moment, grain, shown, lower, change, out):
    """One view; `change` [600 / f, 1056 / f] int32 is zero on entry and on return."""
    tiles = stage.tiles[moment.level[n]]
    count = _list_sprites(n, stage, moment, shown)
    for k in range(count):
        _add_sprite(shown, k, lower, _overlapping(shown, k, lower), tiles, grain, change)
    _finish(shown, count, tiles, grain, change, out)


@njit(cache=True, parallel=True)
def _global_views(stage, moment, grain, glyphs, out, canvas):
    factor, most_items = grain.factor, 1
    for level in range(stage.offsets.size - 1):
        most_items = max(most_items, stage.offsets[level + 1] - stage.offsets[level] + 1)
    rows, columns = MAP_HEIGHT_PX // factor, MAP_WIDTH_PX // factor
    top, left = _corner(out, factor)
    per_word = out.shape[2] // canvas.shape[2]
    chunks = min(out.shape[0], 16)
    for chunk in prange(chunks):
        shown, lower = np.empty((most_items, 3), np.int32), np.empty((most_items, 3), np.int32)
        change = np.zeros((rows, columns), np.int32)
        for n in range(chunk * out.shape[0] // chunks, (chunk + 1) * out.shape[0] // chunks):
            if out.shape[1] != rows or out.shape[2] != columns:
                out[n] = OUTSIDE
            level = moment.level[n]
            words = canvas[
                n, top : top + rows, left // per_word : left // per_word + columns // per_word
            ]
            _fill_view(stage.tiles[level], glyphs, words)
            inner = out[n, top : top + rows, left : left + columns]
            _global_view(n, stage, moment, grain, shown, lower, change, inner)


@kernel
def _corner(out, factor):
    return (out.shape[1] - MAP_HEIGHT_PX // factor) // 2, (
        out.shape[2] - MAP_WIDTH_PX // factor
    ) // 2


class GlobalView:
    """Draws the whole level at 1/f scale by area average; f is chosen so that the level fits.

    Frames larger than the reduced level have a centred picture with 0 around it.
    """

    def __init__(self, height: int = GLOBAL_VIEW_SHAPE[0], width: int = GLOBAL_VIEW_SHAPE[1]):
        self.shape = (height, width)
        self.grain = make_grain(reduction(height, width))

    def draw(self, stage: Stage, moment: Moment, out: np.ndarray) -> None:
        """Write the views of N frames to out [N, H, W] uint8, contiguous along its rows."""
        glyphs = self.grain.means
        left = _corner.py_func(out, self.grain.factor)[1]
        if not (glyphs.shape[2] % 4 or left % 4 or out.shape[2] % 4):
            glyphs = glyphs.view(np.uint32)  # four pixels per copy
        canvas = out.view(glyphs.dtype)
        _global_views(stage, moment, self.grain, glyphs, out, canvas)
