"""The picture for people: the same geometry in colour, anti-aliased by signed distances.

A shape is a function from pixel centres to its distance in px (negative inside); it covers a pixel
by 0.5 minus that distance, clipped. Tiles are drawn once per level, everything else per frame.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from nclone.geometry import COLUMNS, MAP_HEIGHT_PX, MAP_WIDTH_PX, ROWS, TILE_PX, solid_mask
from nclone.sim import state as st

if TYPE_CHECKING:
    from nclone.levels.level import Level
    from nclone.sim.world import World


Colour = tuple[int, int, int]
Distance = Callable[[np.ndarray, np.ndarray], np.ndarray]

AIR: Colour = (226, 226, 218)
ROCK: Colour = (104, 110, 124)
EDGE: Colour = (74, 79, 92)
NINJA: Colour = (28, 30, 36)
BAND: Colour = (202, 62, 52)
DEADLY: Colour = (196, 44, 44)
CALM: Colour = (120, 150, 170)
GOLD: Colour = (228, 178, 44)
SWITCH: Colour = (62, 148, 108)
DOOR: Colour = (58, 104, 168)
MACHINE: Colour = (150, 132, 116)
PATH: Colour = (214, 96, 40)
FRAME: Colour = (156, 164, 184)
LIGHT: Colour = (250, 226, 140)
GLOW: Colour = (255, 252, 236)
COLOURS = (
    AIR,
    ROCK,
    EDGE,
    NINJA,
    BAND,
    DEADLY,
    CALM,
    GOLD,
    SWITCH,
    DOOR,
    MACHINE,
    PATH,
    FRAME,
    LIGHT,
    GLOW,
)
"""All that a picture can hold, blends at edges apart."""
_TILE_SAMPLES = 8


def circle(x: float, y: float, radius: float) -> Distance:
    """A disc."""
    return lambda px, py: np.hypot(px - x, py - y) - radius


def ring(x: float, y: float, radius: float, width: float) -> Distance:
    """A circle drawn with a pen of `width` px."""
    return lambda px, py: np.abs(np.hypot(px - x, py - y) - radius) - width / 2


def capsule(x1: float, y1: float, x2: float, y2: float, width: float) -> Distance:
    """A line with round ends."""

    def distance(px: np.ndarray, py: np.ndarray) -> np.ndarray:
        dx, dy = x2 - x1, y2 - y1
        along = ((px - x1) * dx + (py - y1) * dy) / max(dx * dx + dy * dy, 1e-9)
        along = np.clip(along, 0.0, 1.0)
        return np.hypot(px - x1 - along * dx, py - y1 - along * dy) - width / 2

    return distance


def box(x: float, y: float, half: float, corner: float = 2.0) -> Distance:
    """A square with round corners."""

    def distance(px: np.ndarray, py: np.ndarray) -> np.ndarray:
        dx, dy = np.abs(px - x) - half + corner, np.abs(py - y) - half + corner
        outside = np.hypot(np.maximum(dx, 0.0), np.maximum(dy, 0.0))
        return outside + np.minimum(np.maximum(dx, dy), 0.0) - corner

    return distance


class HumanView:
    """Draws one level at `scale` pixels per px.

    `draw` copies the tiles' picture and paints entities and ninja over it.
    """

    def __init__(self, level: Level, scale: float = 1.0) -> None:
        if not 0.25 <= scale <= 4:
            raise ValueError(f"render.scale is {scale}; use 0.25 to 4.")
        self.level, self.scale = level, scale
        self.shape = (round(MAP_HEIGHT_PX * scale), round(MAP_WIDTH_PX * scale), 3)
        self._tiles = _draw_tiles(level.tiles, scale, self.shape)

    def paint(self, image: np.ndarray, shape: Distance, colour: Colour, bounds: tuple) -> None:
        """Blend a shape into an image; bounds are left, top, right, bottom in px."""
        left, top, right, bottom = bounds
        columns = slice(max(int(left * self.scale) - 1, 0), int(right * self.scale) + 2)
        rows = slice(max(int(top * self.scale) - 1, 0), int(bottom * self.scale) + 2)
        part = image[rows, columns]
        if not part.size:
            return
        x = (columns.start + np.arange(part.shape[1]) + 0.5) / self.scale
        y = (rows.start + np.arange(part.shape[0]) + 0.5) / self.scale
        cover = np.clip(0.5 - shape(x[None, :], y[:, None]) * self.scale, 0.0, 1.0)[..., None]
        part[:] = (part * (1.0 - cover) + np.array(colour) * cover + 0.5).astype(np.uint8)

    def draw(self, world: World, index: int = 0) -> np.ndarray:
        """The picture of one world, [H, W, 3] uint8."""
        image = self._tiles.copy()
        level, w = self.level, world.worlds[index]
        movers = iter(world.movers[index])
        for e, (kind, x, y, orientation, _) in enumerate(level.entities):
            if int(kind) in _MOVING:
                place = next(movers)
                x, y = place["x"], place["y"]
            state = int(world.entities[index, e]["state"])
            active = bool(world.entities[index, e]["active"])
            for shape, colour, reach in _entity(int(kind), x, y, int(orientation), state, active):
                self.paint(image, shape, colour, (x - reach, y - reach, x + reach, y + reach))
        for d, (e, x, y, horizontal, _) in enumerate(level.doors):
            if world.doors[index, d]["closed"]:
                dx, dy = (10.5, 0.0) if horizontal else (0.0, 10.5)
                colour = _DOORS[int(level.entities[int(e), 0])]
                around = (x - 14, y - 14, x + 14, y + 14)
                self.paint(image, capsule(x - dx, y - dy, x + dx, y + dy, 5.0), colour, around)
                for k in (-0.6, 0.0, 0.6):
                    rivet = circle(x + k * dx, y + k * dy, 1.1)
                    self.paint(image, rivet, AIR, around)
        for shape, colour in _ninja(w):
            bounds = (w["x"] - 16, w["y"] - 16, w["x"] + 16, w["y"] + 16)
            self.paint(image, shape, colour, bounds)
        return image

    def draw_path(
        self, image: np.ndarray, path: np.ndarray, colour: Colour = PATH, width: float = 2.0
    ) -> None:
        """Paint a path over a picture, in place; path [T, 2] px, width in px."""
        for (x1, y1), (x2, y2) in pairwise(path):
            left, right, top, bottom = min(x1, x2), max(x1, x2), min(y1, y2), max(y1, y2)
            bounds = (left - width, top - width, right + width, bottom + width)
            self.paint(image, capsule(x1, y1, x2, y2, width), colour, bounds)


def _draw_tiles(tiles: np.ndarray, scale: float, shape: tuple[int, ...]) -> np.ndarray:
    """Rock and air with a dark outline, from the solid share of each pixel."""
    fine = (np.arange(TILE_PX * _TILE_SAMPLES) + 0.5) / _TILE_SAMPLES
    masks = {int(t): solid_mask(int(t), fine[None, :], fine[:, None]) for t in np.unique(tiles)}
    picture = np.empty(shape, np.float32)
    rows = ((np.arange(shape[0] * 3) + 0.5) / (3 * scale) * _TILE_SAMPLES).astype(int)
    columns = ((np.arange(shape[1] * 3) + 0.5) / (3 * scale) * _TILE_SAMPLES).astype(int)
    rows = np.minimum(rows, ROWS * TILE_PX * _TILE_SAMPLES - 1)
    columns = np.minimum(columns, COLUMNS * TILE_PX * _TILE_SAMPLES - 1)
    side = TILE_PX * _TILE_SAMPLES
    solid = np.empty((len(rows), len(columns)), np.bool_)
    for row in range(ROWS):
        line = np.concatenate([masks[int(t)] for t in tiles[row]], axis=1)[:, columns]
        here = rows // side == row
        solid[here] = line[rows[here] % side]
    share = solid.reshape(shape[0], 3, shape[1], 3).mean(axis=(1, 3), dtype=np.float32)
    for channel in range(3):
        picture[..., channel] = AIR[channel] + (ROCK[channel] - AIR[channel]) * share
    inner = np.pad(share, 1, mode="edge")
    around = np.minimum.reduce(
        [
            inner[1 + dy : inner.shape[0] - 1 + dy, 1 + dx : inner.shape[1] - 1 + dx]
            for dy, dx in ((-1, 0), (1, 0), (0, -1), (0, 1))
        ]
    )
    outline = (share * (1.0 - around))[..., None]
    picture += (np.array(EDGE, np.float32) - picture) * outline
    return (picture + 0.5).astype(np.uint8)


_MOVING = (14, 17, 20, 25, 26, 28)
_Piece = tuple[Distance, Colour, float]


def _entity(
    kind: int, x: float, y: float, orientation: int, state: int, active: bool
) -> list[_Piece]:
    """The pieces of an entity: shape, colour, reach in px."""
    angle = orientation * np.pi / 4
    dx, dy = float(np.cos(angle)), float(np.sin(angle))
    if kind in (1, 21):
        return _mine(x, y, state)
    if kind == 2 and active:
        return [(box(x, y, 5, 1), GOLD, 8), (box(x, y, 2.5, 1), (250, 222, 130), 8)]
    if kind == 3:
        return _exit_door(x, y, bool(state))
    if kind in (4, 6, 8) and active:
        colour = {4: SWITCH, 6: DOOR, 8: DEADLY}[kind]
        return [(circle(x, y, 6), colour, 8), (circle(x, y, 3), AIR, 8)]
    if kind in (10, 11):
        return _pad(kind, x, y, dx, dy)
    if kind in (14, 26):
        radius, dx, dy = (
            (7.5, *_HEADINGS[state % 4]) if kind == 14 else (4.0, *_HEADINGS[state % 4])
        )
        eye = circle(x + dx * radius / 2, y + dy * radius / 2, radius / 3)
        return [(circle(x, y, radius), DEADLY, 10), (eye, AIR, 10)]
    if kind in (17, 20, 28):
        half = 12 if kind == 28 else 9
        pieces: list[_Piece] = [
            (box(x, y, half, 2), MACHINE, 14),
            (box(x, y, half - 3, 1), EDGE, 14),
        ]
        if kind == 20:
            ax, ay = x + dx * 8, y + dy * 8
            pieces.append(
                (capsule(ax - dy * 7, ay + dx * 7, ax + dy * 7, ay - dx * 7, 3), DEADLY, 14)
            )
        if kind == 28:
            pieces.append((circle(x, y, 6), DEADLY, 14))
        return pieces
    if kind == 24:
        return [(ring(x, y, 6, 2), DOOR, 9)]
    if kind == 25:
        return [(circle(x, y, 8), NINJA, 10), (circle(x, y, 5), DEADLY, 10)]
    return []


_HEADINGS = ((1, 0), (0, 1), (-1, 0), (0, -1))
_DOORS = {5: MACHINE, 6: DOOR, 8: DEADLY}


def _exit_door(x: float, y: float, is_open: bool) -> list[_Piece]:
    """A frame with two wings; open, light falls out of it."""
    pieces: list[_Piece] = [(box(x, y, 12, 3), FRAME, 14)]
    if is_open:
        return [*pieces, (box(x, y, 9.5, 2), LIGHT, 14), (box(x, y, 6, 2), GLOW, 14)]
    pieces += [(box(x, y, 9.5, 2), (58, 64, 80), 14)]
    pieces += [(capsule(x, y - 8, x, y + 8, 1.2), FRAME, 14)]
    return [*pieces, (circle(x - 3, y, 1.3), FRAME, 14), (circle(x + 3, y, 1.3), FRAME, 14)]


def _pad(kind: int, x: float, y: float, dx: float, dy: float) -> list[_Piece]:
    """A launch pad or a one-way platform, and the side to which it works."""
    half, colour = (7.0, BAND) if kind == 10 else (11.0, EDGE)
    line = capsule(x - dy * half, y + dx * half, x + dy * half, y - dx * half, 4.0)
    tip_x, tip_y = x + 5 * dx, y + 5 * dy
    wing = 3.5
    left = capsule(x - dy * wing, y + dx * wing, tip_x, tip_y, 1.8)
    right = capsule(x + dy * wing, y - dx * wing, tip_x, tip_y, 1.8)
    return [(line, colour, 14), (left, colour, 14), (right, colour, 14)]


def _mine(x: float, y: float, state: int) -> list[_Piece]:
    radius = (4.0, 3.5, 4.5)[min(max(state, 0), 2)]
    if state != 0:
        return [(ring(x, y, radius - 0.5, 1.5), CALM if state == 1 else GOLD, 8)]
    spikes: list[_Piece] = [
        (capsule(x - ax * 6, y - ay * 6, x + ax * 6, y + ay * 6, 1.2), NINJA, 9)
        for ax, ay in ((1, 0), (0, 1), (0.7, 0.7), (0.7, -0.7))
    ]
    return [*spikes, (circle(x, y, radius), NINJA, 8), (circle(x, y, 1.8), DEADLY, 8)]


def _ninja(w: np.void) -> list[tuple[Distance, Colour]]:
    """A small figure: head with a band, body, arms and legs posed by the ninja's state."""
    x, y, state = float(w["x"]), float(w["y"]), int(w["state"])
    faces = 1.0 if w["vx"] > 0.05 or (abs(w["vx"]) <= 0.05 and w["hor"] > 0) else -1.0
    stride = float(np.sin(x / 6.0)) * min(abs(float(w["vx"])) / 2.0, 1.0)
    if state in (st.DEAD, st.KILLED):
        return [
            (capsule(x - 7, y + 8, x + 4, y + 8, 4), NINJA),
            (circle(x + 8 * faces, y + 7, 3.5), NINJA),
            (capsule(x - 2, y + 7, x - 7, y + 3, 2.5), NINJA),
        ]
    lean = {st.WALL_SLIDING: -2.0, st.RUNNING: 2.0, st.SLIDING: -1.5}.get(state, 0.0) * faces
    hip, neck = (x - lean / 2, y + 2.0), (x + lean, y - 3.5)
    spread = {st.JUMPING: 3.0, st.FALLING: 4.5, st.WALL_SLIDING: 2.0}.get(state, 2.0 + 4 * stride)
    feet = y + (7.0 if state in (st.JUMPING, st.FALLING) else 8.8)
    raised = {st.FALLING: -8.0, st.WON: -9.5, st.JUMPING: 1.0}.get(state, 2.5)
    arm = 5.5 if state in (st.FALLING, st.WON) else 3.5 - 3 * stride
    return [
        (capsule(*hip, x - spread, feet, 2.6), NINJA),
        (capsule(*hip, x + spread, feet, 2.6), NINJA),
        (capsule(*hip, *neck, 4.0), NINJA),
        (capsule(neck[0], neck[1] + 1, x - arm, y + raised, 2.2), NINJA),
        (capsule(neck[0], neck[1] + 1, x + arm, y + raised, 2.2), NINJA),
        (circle(neck[0], neck[1] - 3.0, 3.7), NINJA),
        (capsule(neck[0] - 3.2, neck[1] - 3.2, neck[0] + 3.2, neck[1] - 3.2, 1.6), BAND),
        (capsule(neck[0] - 3 * faces, neck[1] - 3, neck[0] - 8 * faces, neck[1] - 1.5, 1.2), BAND),
    ]
