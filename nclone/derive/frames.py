"""Torch twins of what the environment derives: the same frames, drawn on the network's device.

Every operation is a gather, an integer sum or a maximum, so the result equals the Numba
rasteriser byte for byte on every device. Sprites are painted in any order: a pixel takes the
largest of (order, grey), packed into one integer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nclone.geometry import COLUMNS, MAP_HEIGHT_PX, MAP_WIDTH_PX, ROWS, TILE_PX, TILE_TYPES
from nclone.render import atlas
from nclone.render import fields as render_fields
from nclone.render.raster import HALF_SPRITE, MAX_TILE, reduction
from nclone.render.scene import (
    CODE_SLOT,
    ITEM_X,
    ITEM_Y,
    KIND,
    MOVING_SLOT,
    ORIENTATION,
)
from nclone.spec import LEVEL_TABLE, SOLID, SOLID_MAX, WINDOW, tile_windows

_GREY_BITS = 8


@dataclass(frozen=True)
class TorchScene:
    """N frames to draw, all on one device; see `nclone.render.scene` for the columns.

    tiles  [N, 25, 44] uint8; ninja [N, 3], codes [N, E] and moving [N, V, 2] integers
    items  [K, 6] int16, the items of frame 0, then of frame 1, ...
    frame  [K] int64, the frame that each item belongs to; order [K] int64, its place there
    """

    tiles: Tensor
    ninja: Tensor
    codes: Tensor
    moving: Tensor
    items: Tensor
    frame: Tensor
    order: Tensor


@dataclass(frozen=True)
class _Atlas:
    glyphs: Tensor
    sprites: Tensor
    sprite_of: Tensor
    ninja_sprite_of: Tensor


@lru_cache(maxsize=8)
def _atlas(device: torch.device) -> _Atlas:
    tables = (atlas.GLYPHS, atlas.SPRITES, atlas.SPRITE_OF, atlas.NINJA_SPRITE_OF)
    glyphs, *rest = (torch.from_numpy(table.copy()).to(device) for table in tables)
    return _Atlas(glyphs, *(table.long() for table in rest))


@dataclass(frozen=True)
class _Shown:
    """Sprites to paint: frame, sprite number, top left pixel and order, each [K] int64."""

    frame: Tensor
    sprite: Tensor
    left: Tensor
    top: Tensor
    order: Tensor

    def where(self, keep: Tensor) -> _Shown:
        """Only the sprites marked in keep [K] bool."""
        return _Shown(
            self.frame[keep], self.sprite[keep], self.left[keep], self.top[keep], self.order[keep]
        )


def draw_player_frames(scene: TorchScene, height: int = 84, width: int = 84) -> Tensor:
    """[N, H, W] uint8, equal to the rasteriser's `draw_player_frames`."""
    n, device = len(scene.ninja), scene.tiles.device
    glyphs = _atlas(device).glyphs
    left, top = scene.ninja[:, 0].long() - width // 2, scene.ninja[:, 1].long() - height // 2
    x = left[:, None] + torch.arange(width, device=device)
    y = top[:, None] + torch.arange(height, device=device)
    inside_x, inside_y = (x >= 0) & (x < MAP_WIDTH_PX), (y >= 0) & (y < MAP_HEIGHT_PX)
    x, y = x.clamp(0, MAP_WIDTH_PX - 1)[:, None, :], y.clamp(0, MAP_HEIGHT_PX - 1)[:, :, None]
    tile = _tile_at(scene.tiles, y // TILE_PX, x // TILE_PX)
    frame = glyphs[tile, y % TILE_PX, x % TILE_PX]
    frame[~(inside_x[:, None, :] & inside_y[:, :, None])] = atlas.OUTSIDE

    shown = _shown(scene)
    left, top = left[shown.frame], top[shown.frame]
    near = (shown.left > left - TILE_PX) & (shown.left < left + width)
    near &= (shown.top > top - TILE_PX) & (shown.top < top + height)
    shown, left, top = shown.where(near), left[near], top[near]
    x, y, packed, keep = _pixels(shown)
    x, y = x - left[:, None, None], y - top[:, None, None]
    keep = keep & (x >= 0) & (x < width) & (y >= 0) & (y < height)
    place = (shown.frame[:, None, None] * height + y) * width + x
    canvas = torch.zeros(n * height * width, dtype=torch.int64, device=device)
    return _painted(frame, canvas, place, packed, keep)


def draw_global_views(scene: TorchScene, height: int = 100, width: int = 176) -> Tensor:
    """[N, H, W] uint8, equal to `GlobalView.draw`."""
    factor, n, device = reduction(height, width), len(scene.ninja), scene.tiles.device
    glyphs = _atlas(device).glyphs
    side = TILE_PX // factor
    means = _averaged(glyphs.long(), factor)
    tiles = scene.tiles.long().clamp(max=MAX_TILE)
    view = means[tiles]  # [N, 25, 44, side, side]

    shown = _shown(scene)
    x, y, packed, keep = _pixels(shown)
    cell = (shown.frame[:, None, None] * ROWS + y // TILE_PX) * COLUMNS + x // TILE_PX
    touched, of_cell = torch.unique(cell[keep], return_inverse=True)
    place = torch.zeros_like(cell)
    place[keep] = (of_cell * TILE_PX + (y % TILE_PX)[keep]) * TILE_PX + (x % TILE_PX)[keep]
    base = glyphs[tiles.flatten()[touched]]
    canvas = torch.zeros(base.numel(), dtype=torch.int64, device=device)
    patches = _painted(base, canvas, place, packed, keep)
    view.view(-1, side, side)[touched] = _averaged(patches.long(), factor)

    rows, columns = ROWS * side, COLUMNS * side
    view = view.permute(0, 1, 3, 2, 4).reshape(n, rows, columns)
    if (rows, columns) == (height, width):
        return view
    out = torch.full((n, height, width), atlas.OUTSIDE, dtype=torch.uint8, device=device)
    top, left = (height - rows) // 2, (width - columns) // 2
    out[:, top : top + rows, left : left + columns] = view
    return out


def _shown(scene: TorchScene) -> _Shown:
    """All sprites of all frames, the ninja last in each."""
    art, frame, item = _atlas(scene.tiles.device), scene.frame, scene.items.long()
    code = torch.zeros_like(frame)
    changes = item[:, CODE_SLOT] >= 0
    code[changes] = scene.codes[frame[changes], item[changes, CODE_SLOT]].long() & 7
    x, y = item[:, ITEM_X].clone(), item[:, ITEM_Y].clone()
    moves = item[:, MOVING_SLOT] >= 0
    at = scene.moving[frame[moves], item[moves, MOVING_SLOT]].long()
    x[moves], y[moves] = at[:, 0], at[:, 1]
    sprite = art.sprite_of[item[:, KIND], item[:, ORIENTATION], code]
    items = _Shown(frame, sprite, x - HALF_SPRITE, y - HALF_SPRITE, scene.order)
    items = items.where(sprite >= 0)
    ninja = scene.ninja.long()
    own = torch.arange(len(ninja), device=frame.device)
    last = torch.full_like(own, len(item))
    return _Shown(
        torch.cat([items.frame, own]),
        torch.cat([items.sprite, art.ninja_sprite_of[ninja[:, 2]]]),
        torch.cat([items.left, ninja[:, 0] - HALF_SPRITE]),
        torch.cat([items.top, ninja[:, 1] - HALF_SPRITE]),
        torch.cat([items.order, last]),
    )


def _pixels(shown: _Shown) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Of every sprite pixel: x, y, order and grey packed, and whether it shows at all."""
    steps = torch.arange(TILE_PX, device=shown.left.device)
    x = shown.left[:, None, None] + steps[None, None, :]
    y = shown.top[:, None, None] + steps[None, :, None]
    x, y = torch.broadcast_tensors(x, y)
    grey = _atlas(shown.left.device).sprites[shown.sprite]
    packed = ((shown.order[:, None, None] + 1) << _GREY_BITS) + grey
    inside = (x >= 0) & (x < MAP_WIDTH_PX) & (y >= 0) & (y < MAP_HEIGHT_PX)
    return x, y, packed, inside & (grey > 0)


def _tile_at(tiles: Tensor, row: Tensor, column: Tensor) -> Tensor:
    """Tiles [N, 25, 44], row [N, H, 1], column [N, 1, W] -> tile types [N, H, W] int64."""
    place = (row * COLUMNS + column).flatten(1)
    found = tiles.flatten(1).gather(1, place).long().clamp(max=MAX_TILE)
    return found.view(len(tiles), row.shape[1], column.shape[2])


def _painted(base: Tensor, canvas: Tensor, place: Tensor, packed: Tensor, keep: Tensor) -> Tensor:
    """Paint packed pixels over `base`, whose elements `place` counts."""
    canvas.scatter_reduce_(0, place[keep], packed[keep], "amax")
    grey = (canvas & ((1 << _GREY_BITS) - 1)).to(torch.uint8).view(base.shape)
    return torch.where((canvas > 0).view(base.shape), grey, base)


def _averaged(pictures: Tensor, factor: int) -> Tensor:
    """[K, 24, 24] int64 -> [K, 24 / f, 24 / f] uint8: mean of blocks, halves up, in integers."""
    side, count = TILE_PX // factor, factor * factor
    total = pictures.view(-1, side, factor, side, factor).sum(dim=(2, 4))
    return torch.div(2 * total + count, 2 * count, rounding_mode="floor").to(torch.uint8)


@lru_cache(maxsize=8)
def _solid(device: torch.device) -> Tensor:
    """[256, 2, 2] uint8: solid pixels per tile type and sub-cell; unknown types are empty."""
    table = torch.zeros((256, 2, 2), dtype=torch.uint8)
    table[:TILE_TYPES] = torch.from_numpy(SOLID.copy())
    return table.to(device)


def tile_window(fields: Mapping[str, Tensor], tables: Any) -> Tensor:
    """`tiles` [B, 25, 44] and `cell` [B, 2] uint8 -> [B, 15, 15] uint8; see `spec.tile_window`.

    On the CPU the environment's own kernel is ten times as fast as torch's gathers.
    """
    if fields["cell"].device.type == "cpu":
        return _tile_window_by_kernel(fields, tables)
    return tile_window_by_gathers(fields["tiles"], fields["cell"].long())


def _tile_window_by_kernel(fields: Mapping[str, Tensor], tables: Any) -> Tensor:
    cell = fields["cell"].numpy()
    if LEVEL_TABLE in tables and f"{LEVEL_TABLE}_id" in getattr(fields, "rows", ()):
        tiles, row_of = tables[LEVEL_TABLE]["tiles"].numpy(), fields[f"{LEVEL_TABLE}_id"].numpy()
    else:
        tiles, row_of = fields["tiles"].numpy(), np.arange(len(cell))
    out = np.empty((len(cell), WINDOW, WINDOW), np.uint8)
    tile_windows(tiles, row_of, cell, SOLID, out)
    return torch.from_numpy(out)


def tile_window_by_gathers(tiles: Tensor, cell: Tensor) -> Tensor:
    """The same on any device: tiles [B, 25, 44] uint8, cell [B, 2] int64."""
    reach = torch.arange(-(WINDOW // 2), WINDOW // 2 + 1, device=cell.device)
    columns, rows = cell[:, :1] + reach, cell[:, 1:] + reach  # [B, WINDOW]
    inside_x, inside_y = (columns >= 0) & (columns < 2 * COLUMNS), (rows >= 0) & (rows < 2 * ROWS)
    columns, rows = columns.clamp(0, 2 * COLUMNS - 1), rows.clamp(0, 2 * ROWS - 1)
    place = (rows // 2)[:, :, None] * COLUMNS + (columns // 2)[:, None, :]
    tile = tiles.flatten(1).gather(1, place.flatten(1)).view(place.shape).long()
    corner = (rows % 2)[:, :, None] * 2 + (columns % 2)[:, None, :]
    solid = _solid(cell.device).view(-1)[tile * 4 + corner]
    return solid.masked_fill(~(inside_y[:, :, None] & inside_x[:, None, :]), SOLID_MAX)


_FRAMES = {
    "player_frame": (draw_player_frames, render_fields.PlayerFrame),
    "global_view": (draw_global_views, render_fields.GlobalFrame),
}


def __getattr__(name: str) -> Callable[[Mapping[str, Tensor], Any], Tensor]:
    """The twin of a frame of any size: `player_frame_84x84`, `global_view_100x176`."""
    frame, _, size = name.rpartition("_")
    height, _, width = size.partition("x")
    if frame not in _FRAMES or not (height.isdigit() and width.isdigit()):
        raise AttributeError(f"module 'nclone.derive.frames' has no attribute {name!r}")
    return partial(_frame, frame, (int(height), int(width)))


def _frame(name: str, size: tuple[int, int], fields: Mapping[str, Tensor], tables: Any) -> Tensor:
    """B frames [B, (K,) H, W, 1] uint8: by the Numba kernel on the CPU, by torch elsewhere."""
    on_device, on_cpu = _FRAMES[name]
    if fields["ninja"].device.type == "cpu":
        sources = {k: fields[k].numpy() for k in render_fields.SOURCES}
        table = {LEVEL_TABLE: tables[LEVEL_TABLE].table}
        return torch.from_numpy(on_cpu(*size)(sources, table))
    return drawn_by_torch(on_device, size, fields, tables[LEVEL_TABLE])


def drawn_by_torch(
    draw: Callable[..., Tensor], size: tuple[int, int], fields: Mapping[str, Tensor], table: Any
) -> Tensor:
    """The frames of B rows or windows of moments, on their device; `table` is a `TableMirror`."""
    ids = fields[f"{LEVEL_TABLE}_id"]
    ninja, codes, moving = (fields[k] for k in render_fields.SOURCES[1:])
    lead = ninja.shape[:-1]
    if ninja.ndim == 3 and draw is draw_global_views:
        ninja, codes, moving, lead = ninja[:, -1], codes[:, -1], moving[:, -1], lead[:1]
    elif ninja.ndim == 3:
        ids = ids.repeat_interleave(lead[1])
        ninja, codes, moving = (f.flatten(0, 1) for f in (ninja, codes, moving))
    blank = ninja[:, 2] == 0
    ninja = torch.cat([ninja[:, :2], (ninja[:, 2:] - 1).clamp(min=0)], dim=1)
    items = table.ragged("items", ids)
    scene = TorchScene(
        table.rows("tiles", ids),
        ninja,
        codes,
        moving,
        items.items,
        items.row_of_item,
        items.place_in_row,
    )
    frames = draw(scene, *size).masked_fill(blank[:, None, None], 0)
    return frames.view(*lead, *size, 1)
