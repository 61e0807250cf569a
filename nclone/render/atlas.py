"""The grey picture's parts: 38 tile glyphs from the geometry, and sprites of all entities.

Glyphs and sprites are 24 x 24 px. A glyph covers its tile; in a sprite 0 is transparent. A sprite
is drawn with its centre on the entity's position rounded to whole pixels, so that a frame is
gathers of bytes and nothing else.
"""

from __future__ import annotations

import numpy as np

from nclone.geometry import TILE_PX, TILE_TYPES, solid_mask

FREE, SOLID, OUTSIDE = 208, 96, 0
"""Grey of the air, of solid tiles, and of what lies outside the level."""
DOOR_VERTICAL, DOOR_HORIZONTAL, DRAWN_KINDS = 29, 30, 31
"""Kinds 0 to 28 are entity types; a door's segment is a picture of its own."""
CODES, ORIENTATIONS, NINJA_STATES = 8, 8, 10
_SAMPLES = 4

_OFFSETS = np.arange(TILE_PX) + 0.5
_X, _Y = _OFFSETS[None, :] - 12.0, _OFFSETS[:, None] - 12.0
_RADIUS = np.hypot(_X, _Y)


def _glyph(tile: int) -> np.ndarray:
    """[24, 24] uint8: each pixel's solid share from 4 x 4 samples, mixed in whole greys."""
    fine = (np.arange(TILE_PX * _SAMPLES) + 0.5) / _SAMPLES
    solid = solid_mask(tile, fine[None, :], fine[:, None])
    share = solid.reshape(TILE_PX, _SAMPLES, TILE_PX, _SAMPLES).sum(axis=(1, 3))
    whole = _SAMPLES * _SAMPLES
    return ((SOLID * share + FREE * (whole - share) + whole // 2) // whole).astype(np.uint8)


GLYPHS = np.stack([_glyph(tile) for tile in range(TILE_TYPES)])
"""[38, 24, 24] uint8."""


def _disc(radius: float, grey: int, core: int = 0, core_radius: float = 0.0) -> np.ndarray:
    sprite = np.where(radius > _RADIUS, grey, 0)
    return np.where(core_radius > _RADIUS, core, sprite).astype(np.uint8)


def _box(half: float, grey: int, rim: int = 0, width: float = 2.0) -> np.ndarray:
    reach = np.maximum(np.abs(_X), np.abs(_Y))
    sprite = np.where(reach < half, grey, 0)
    edge = (reach < half) & (reach > half - width) & (rim > 0)
    return np.where(edge, rim, sprite).astype(np.uint8)


def _towards(sprite: np.ndarray, orientation: float, grey: int, beyond: float) -> np.ndarray:
    """Paint the part of a sprite that lies further than `beyond` px in a direction (of 8)."""
    angle = orientation * np.pi / 4
    ahead = _X * np.cos(angle) + _Y * np.sin(angle) > beyond
    return np.where(ahead & (sprite > 0), grey, sprite).astype(np.uint8)


def _plate(orientation: int, grey: int, thickness: float) -> np.ndarray:
    """A plate of 24 px across the direction, on its front side."""
    angle = orientation * np.pi / 4
    along = _X * np.cos(angle) + _Y * np.sin(angle)
    across = np.abs(-_X * np.sin(angle) + _Y * np.cos(angle))
    return np.where((along <= 0) & (along > -thickness) & (across < 12), grey, 0).astype(np.uint8)


def _bar(horizontal: bool) -> np.ndarray:
    thick, long = (_Y, _X) if horizontal else (_X, _Y)
    return np.where((np.abs(thick) < 2) & (np.abs(long) < 12), 24, 0).astype(np.uint8)


class _Album:
    """Collects sprites, and which one shows which kind, orientation and state code."""

    def __init__(self) -> None:
        self.sprites: list[np.ndarray] = []
        self.shown = np.full((DRAWN_KINDS, ORIENTATIONS, CODES), -1, np.int16)

    def add(self, sprite: np.ndarray, kind: int, orientation=slice(None), code=slice(None)) -> None:
        self.shown[kind, orientation, code] = len(self.sprites)
        self.sprites.append(sprite)


def _mines(album: _Album) -> None:
    for kind in (1, 21):
        album.add(_disc(4.0, 8, 255, 1.5), kind, code=0)
        album.add(_disc(3.5, 160, 120, 1.5), kind, code=1)
        album.add(_disc(4.5, 64, 255, 1.5), kind, code=2)


def _goals_and_doors(album: _Album) -> None:
    album.add(_disc(6.0, 250, 230, 3.0), 2, code=1)
    album.add(_box(12, 150, 56), 3, code=0)
    album.add(_box(12, 244, 24), 3, code=1)
    album.add(_disc(6.0, 16, 255, 3.0), 4, code=1)
    for code in (2, 3, 6, 7):  # the second bit says that the door's switch is still there
        album.add(_disc(5.0, 48, 232, 2.5), 6, code=code)
        album.add(_disc(5.0, 48, 136, 2.5), 8, code=code)
    for code in (1, 3, 5, 7):  # the first bit says that the door is closed
        album.add(_bar(horizontal=False), DOOR_VERTICAL, code=code)
        album.add(_bar(horizontal=True), DOOR_HORIZONTAL, code=code)


def _machines(album: _Album) -> None:
    for o in range(ORIENTATIONS):
        album.add(_plate(o, 130, 6.0), 10, o)
        album.add(_plate(o, 44, 4.0), 11, o)
        album.add(_towards(_box(9, 110, 70), o, 12, 6.0), 20, o)
    for code in range(CODES):
        album.add(_towards(_disc(7.5, 72), 2 * (code % 4), 4, 2.0), 14, code=code)
        album.add(_towards(_disc(4.0, 84), 2 * (code % 4), 4, 0.0), 26, code=code)
    album.add(_box(9, 176, 140), 17)
    album.add(_disc(6.0, 224, FREE, 3.5), 24)
    album.add(_disc(8.0, 28, 88, 5.0), 25)
    album.add(np.where(_disc(8, 1) > 0, 60, _box(12, 144, 100)).astype(np.uint8), 28)


def _ninjas() -> np.ndarray:
    """[10, 24, 24] uint8, one picture per ninja state."""
    ground = _disc(10.0, 1, 255, 3.0)
    running = np.where((_Y > 3) & (ground > 0), 60, ground)
    sliding = np.where((_Y > 3) & (ground > 0), 140, ground)
    jumping = np.where((_Y < -3) & (ground > 0), 60, ground)
    falling = np.where((_Y < -3) & (ground > 0), 140, ground)
    on_wall = np.where((np.abs(_X) > 5) & (ground > 0), 140, ground)
    dead = np.where(np.abs(np.abs(_X) - np.abs(_Y)) < 2, _disc(10.0, 1), 0)
    won = _disc(10.0, 255, 1, 5.0)
    poses = [ground, running, sliding, jumping, falling, on_wall, dead, dead, won, ground]
    return np.stack(poses).astype(np.uint8)


def _collect() -> tuple[np.ndarray, np.ndarray]:
    album = _Album()
    for paint in (_mines, _goals_and_doors, _machines):
        paint(album)
    return np.stack(album.sprites), album.shown


SPRITES, SPRITE_OF = _collect()
"""[S, 24, 24] uint8, and [31, 8, 8] int16: the sprite of (kind, orientation, code), -1 for none."""
NINJA_SPRITE_OF = len(SPRITES) + np.arange(NINJA_STATES, dtype=np.int16)
SPRITES = np.concatenate([SPRITES, _ninjas()])
for _table in (GLYPHS, SPRITES, SPRITE_OF, NINJA_SPRITE_OF):
    _table.flags.writeable = False
