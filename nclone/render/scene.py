"""What a frame is drawn from: static items per level, a few changing bytes per step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from nclone.render.atlas import DOOR_HORIZONTAL, DOOR_VERTICAL, DRAWN_KINDS

if TYPE_CHECKING:
    from nclone.levels.level import Level


ITEM_COLUMNS = 6
"""Values of one drawn item; see `Stage`."""
CHANGING_TYPES = (1, 2, 3, 4, 5, 6, 8, 14, 21, 26)
"""Types whose picture depends on their state."""
MOVING_TYPES = (14, 17, 20, 25, 26, 28)
KIND, ORIENTATION, ITEM_X, ITEM_Y, CODE_SLOT, MOVING_SLOT = range(6)


class Stage(NamedTuple):
    """The static part of all levels that may be drawn.

    tiles    [L, 25, 44] uint8
    items    [total, 6] int16: kind, orientation, x px, y px, column of the state code (-1: the
             item never changes), place among the moving entities (-1: it stands still)
    offsets  [L + 1] int64: level k's items are rows offsets[k] to offsets[k + 1], drawn in order
    """

    tiles: np.ndarray
    items: np.ndarray
    offsets: np.ndarray


class Moment(NamedTuple):
    """The changing part of N frames; these few bytes are what a rollout stores.

    level   [N] int64
    ninja   [N, 3] int16: x px, y px, state
    codes   [N, C] uint8, 0 to 3: states of the entities of `CHANGING_TYPES` (mines 0 deadly,
            1 harmless, 2 toggling; gold and switches 1 present; exits 1 open; drones: direction;
            doors: closed + 2 where their switch is unused)
    moving  [N, V, 2] int16: x px, y px of the moving entities
    """

    level: np.ndarray
    ninja: np.ndarray
    codes: np.ndarray
    moving: np.ndarray


@dataclass(frozen=True)
class SceneItems:
    """One level's rows of a `Stage`, and how wide its moments are.

    `changing` and `moving` are the entity table's rows of which codes and positions are kept.
    """

    tiles: np.ndarray
    items: np.ndarray
    changing: np.ndarray
    moving: np.ndarray


def scene_items(level: Level) -> SceneItems:
    """List what a level draws: its entities in processing order, then the segments of its doors."""
    kinds = level.entities[:, 0].astype(np.int64)
    changing = np.flatnonzero(np.isin(kinds, CHANGING_TYPES))
    moving = np.flatnonzero(np.isin(kinds, MOVING_TYPES))
    code_slot, moving_slot = np.full(len(kinds), -1), np.full(len(kinds), -1)
    code_slot[changing] = np.arange(len(changing))
    moving_slot[moving] = np.arange(len(moving))
    rows = [
        (kind, int(o) % 8, *pixels(x, y), code_slot[e], moving_slot[e])
        for e, (kind, x, y, o, _) in enumerate(level.entities)
        if kind < DRAWN_KINDS
    ]
    for row, x, y, horizontal, _ in level.doors:
        kind = DOOR_HORIZONTAL if horizontal else DOOR_VERTICAL
        rows.append((kind, 0, *pixels(x, y), code_slot[int(row)], -1))
    items = np.array(rows, np.int16).reshape(-1, ITEM_COLUMNS)
    return SceneItems(level.tiles, items, changing, moving)


def moment_widths(levels: Sequence[Level]) -> tuple[int, int, int]:
    """The most items, state codes and moving entities of any level; at least 1 each.

    Codes are rounded up to whole bytes of packed ones.
    """
    scenes = [scene_items(level) for level in levels]
    sizes = [(len(s.items), len(s.changing), len(s.moving)) for s in scenes]
    items, codes, moving = (max(1, *column) for column in zip(*sizes, strict=True))
    return items, -(-codes // 4) * 4, moving


def build_stage(levels: list[SceneItems]) -> Stage:
    """Put the static rows of several levels side by side."""
    sizes = [len(scene.items) for scene in levels]
    return Stage(
        np.stack([scene.tiles for scene in levels]),
        np.concatenate([scene.items for scene in levels]),
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
    )


def pixels(x: float, y: float) -> tuple[int, int]:
    """A position in px rounded to whole pixels, halves up."""
    return int(np.floor(x + 0.5)), int(np.floor(y + 0.5))
