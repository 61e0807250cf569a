"""The two frames as fields of an observation: what is stored, what is static, what is drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from frugal_rl.observation.codecs.packed import PackedCodec
from frugal_rl.observation.spec import Derived, Padding, Static, Stored
from frugal_rl.observation.tables import StaticTable, TableField
from nclone.geometry import MAP_WIDTH_PX
from nclone.render.raster import (
    GLOBAL_VIEW_SHAPE,
    PLAYER_FRAME_SHAPE,
    GlobalView,
    draw_player_frames,
)
from nclone.render.scene import ITEM_COLUMNS, Moment, Stage

if TYPE_CHECKING:
    pass


TABLE = "level"
SOURCES = (f"{TABLE}_id", "ninja", "codes", "moving")
Size = tuple[int, int]


def items_table_field() -> TableField:
    """The column of the level table that frames are drawn from; rows come from `scene_items`."""
    return TableField("items", (1, ITEM_COLUMNS), np.int16, ragged=True)


def frame_fields(
    widths: tuple[int, int, int],
    player_frame: Size | None = PLAYER_FRAME_SHAPE,
    global_view: Size | None = GLOBAL_VIEW_SHAPE,
    stack: int = 1,
    padding: Padding = Padding.repeat,
) -> tuple[Stored | Static | Derived, ...]:
    """Declarations of the frames that are wanted, and of what they are drawn from.

    Args:
        widths: From `moment_widths`, of all levels that may be played.
        player_frame: Height and width in px, even; None leaves it out.
        global_view: Height and width in px; None leaves it out.
        stack: Moments that `player_frame` shows, oldest first; the view shows the newest.
        padding: What a stack shows before the first moment: zeros, or the first one repeated.
    """
    if player_frame is None and global_view is None:
        return ()
    frames = []
    for name, size, drawer, doc in (
        ("player_frame", player_frame, PlayerFrame, "grey window around the ninja, 0 outside"),
        ("global_view", global_view, GlobalFrame, "grey picture of the whole level, reduced"),
    ):
        if size is not None:
            stacked = stack > 1 and name == "player_frame"
            frames.append(
                Derived(
                    name,
                    (stack, *size, 1) if stacked else (*size, 1),
                    np.uint8,
                    0,
                    255,
                    doc,
                    sources=SOURCES,
                    derive=drawer(*size),
                    twin=f"nclone.derive.frames:{name}_{size[0]}x{size[1]}",
                )
            )
    return (*_moment_fields(widths, stack, padding), *frames)


def _moment_fields(
    widths: tuple[int, int, int], stack: int, padding: Padding
) -> tuple[Stored | Static, ...]:
    """What frames are drawn from: a few bytes per step, and the level's items."""
    items, codes, moving = widths
    limit = float(MAP_WIDTH_PX)
    past = {"observed": False, "window": stack, "padding": padding}
    return (
        Stored("ninja", (3,), np.int16, -limit, limit, "x px, y px, state + 1", **past),
        Stored(
            "codes",
            (codes,),
            np.uint8,
            0,
            3,
            "states of drawn entities",
            codecs=(PackedCodec((codes,), bits=2),),
            **past,
        ),
        Stored("moving", (moving, 2), np.int16, -limit, limit, "moving entities, px", **past),
        Static(
            "items",
            (items, ITEM_COLUMNS),
            np.int16,
            -limit,
            limit,
            "what a level draws",
            False,
            table=TABLE,
            ragged=True,
        ),
    )


def stage_of(table: StaticTable) -> Stage:
    """The level table's arrays as a stage; views."""
    return Stage(table["tiles"], table["items"], table.offsets("items"))


def moments_of(
    sources: Mapping[str, np.ndarray], newest: bool = False
) -> tuple[Moment, np.ndarray | None]:
    """Decoded source fields [N, ...] or windows of them [N, K, ...] as moments, row after row.

    Of a window `newest` takes the last row only. The second value marks the rows [N * K] bool that
    stand before an episode's first moment; None if there are none.
    """
    level = np.asarray(sources[f"{TABLE}_id"]).reshape(-1).astype(np.int64)
    rows = [np.asarray(sources[name]) for name in SOURCES[1:]]
    if rows[0].ndim == 3 and newest:
        rows = [row[:, -1] for row in rows]
    elif rows[0].ndim == 3:
        level = np.repeat(level, rows[0].shape[1])
        rows = [row.reshape(-1, *row.shape[2:]) for row in rows]
    ninja, codes, moving = (np.ascontiguousarray(row) for row in rows)
    blank = ninja[:, 2] == 0
    ninja = ninja - np.array([0, 0, 1], np.int16)
    if not blank.any():
        return Moment(level, ninja, codes, moving), None
    ninja[blank, 2] = 0
    return Moment(level, ninja, codes, moving), blank


@dataclass(frozen=True)
class PlayerFrame:
    """Draws `player_frame` [N, height, width, 1] uint8, of windows [N, K, height, width, 1]."""

    height: int
    width: int

    def __post_init__(self) -> None:
        if self.height % 2 or self.width % 2 or min(self.height, self.width) < 2:
            raise ValueError(
                f"A player frame of {self.height} x {self.width} px has no middle; use even sizes."
            )

    def __call__(
        self, sources: Mapping[str, np.ndarray], tables: Mapping[str, StaticTable]
    ) -> np.ndarray:
        """Draw one frame per row of the sources, or a stack of them."""
        moment, blank = moments_of(sources)
        out = np.empty((len(moment.level), self.height, self.width), np.uint8)
        draw_player_frames(stage_of(tables[TABLE]), moment, out)
        if blank is not None:
            out[blank] = 0
        lead = np.shape(sources["ninja"])[:-1]
        return out.reshape(*lead, self.height, self.width, 1)


class GlobalFrame:
    """Draws `global_view` [N, height, width, 1] uint8, of a window its newest moment."""

    def __init__(self, height: int, width: int) -> None:
        self.view = GlobalView(height, width)

    def __call__(
        self, sources: Mapping[str, np.ndarray], tables: Mapping[str, StaticTable]
    ) -> np.ndarray:
        """Draw one view per row of the sources."""
        moment, _ = moments_of(sources, newest=True)
        out = np.empty((len(moment.level), *self.view.shape), np.uint8)
        self.view.draw(stage_of(tables[TABLE]), moment, out)
        return out[..., None]
