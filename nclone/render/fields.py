"""The two frames as fields of an observation: what is stored, what is static, what is drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from frugal_rl.observation.spec import Derived, Static, Stored
from frugal_rl.observation.tables import StaticTable, TableField
from nclone.geometry import MAP_WIDTH_PX
from nclone.levels.level import Level
from nclone.render.raster import (
    GLOBAL_VIEW_SHAPE,
    PLAYER_FRAME_SHAPE,
    GlobalView,
    draw_player_frames,
)
from nclone.render.scene import ITEM_COLUMNS, Moment, Stage, scene_items

TABLE = "level"
SOURCES = (f"{TABLE}_id", "ninja", "codes", "moving")
Size = tuple[int, int]


def moment_widths(levels: Sequence[Level]) -> tuple[int, int, int]:
    """The most items, state codes and moving entities of any level; at least 1 each."""
    scenes = [scene_items(level) for level in levels]
    sizes = [(len(s.items), len(s.changing), len(s.moving)) for s in scenes]
    return tuple(max(1, *column) for column in zip(*sizes, strict=True))  # type: ignore[return-value]


def items_table_field() -> TableField:
    """The column of the level table that frames are drawn from; rows come from `scene_items`."""
    return TableField("items", (1, ITEM_COLUMNS), np.int16, ragged=True)


def frame_fields(
    widths: tuple[int, int, int],
    player_frame: Size | None = PLAYER_FRAME_SHAPE,
    global_view: Size | None = GLOBAL_VIEW_SHAPE,
) -> tuple[Stored | Static | Derived, ...]:
    """Declarations of the frames that are wanted, and of what they are drawn from.

    Args:
        widths: From `moment_widths`, of all levels that may be played.
        player_frame: Height and width in px, even; None leaves it out.
        global_view: Height and width in px; None leaves it out.
    """
    if player_frame is None and global_view is None:
        return ()
    items, codes, moving = widths
    limit = float(MAP_WIDTH_PX)
    sources = (
        Stored("ninja", (3,), np.int16, -limit, limit, "x px, y px, state", observed=False),
        Stored("codes", (codes,), np.uint8, 0, 7, "states of drawn entities", observed=False),
        Stored(
            "moving", (moving, 2), np.int16, -limit, limit, "moving entities, px", observed=False
        ),
        Static(
            "items", (items, ITEM_COLUMNS), np.int16, -limit, limit, "what a level draws", False,
            table=TABLE, ragged=True,
        ),
    )  # fmt: skip
    frames = []
    for name, size, drawer, doc in (
        ("player_frame", player_frame, PlayerFrame, "grey window around the ninja, 0 outside"),
        ("global_view", global_view, GlobalFrame, "grey picture of the whole level, reduced"),
    ):
        if size is not None:
            twin = f"nclone.derive:{name}_{size[0]}x{size[1]}"
            frames.append(
                Derived(
                    name,
                    (*size, 1),
                    np.uint8,
                    0,
                    255,
                    doc,
                    sources=SOURCES,
                    derive=drawer(*size),
                    twin=twin,
                )
            )
    return (*sources, *frames)


def stage_of(table: StaticTable) -> Stage:
    """The level table's arrays as a stage; views."""
    return Stage(table["tiles"], table["items"], table.offsets("items"))


def moment_of(sources: Mapping[str, np.ndarray]) -> Moment:
    """Decoded source fields as a moment."""
    level = np.asarray(sources[f"{TABLE}_id"]).reshape(-1).astype(np.int64)
    return Moment(level, *(np.ascontiguousarray(sources[name]) for name in SOURCES[1:]))


@dataclass(frozen=True)
class PlayerFrame:
    """Draws `player_frame` [N, height, width, 1] uint8."""

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
        """Draw one frame per row of the sources."""
        moment = moment_of(sources)
        out = np.empty((len(moment.level), self.height, self.width), np.uint8)
        draw_player_frames(stage_of(tables[TABLE]), moment, out)
        return out[..., None]


class GlobalFrame:
    """Draws `global_view` [N, height, width, 1] uint8."""

    def __init__(self, height: int, width: int) -> None:
        self.view = GlobalView(height, width)

    def __call__(
        self, sources: Mapping[str, np.ndarray], tables: Mapping[str, StaticTable]
    ) -> np.ndarray:
        """Draw one view per row of the sources."""
        moment = moment_of(sources)
        out = np.empty((len(moment.level), *self.view.shape), np.uint8)
        self.view.draw(stage_of(tables[TABLE]), moment, out)
        return out[..., None]
