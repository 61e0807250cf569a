"""What a mine agent sees, declared once, field by field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np

from frugal_rl.errors import EncodingError
from frugal_rl.observation.codecs.bits import BitCodec
from frugal_rl.observation.spec import EPISODE, Derived, ObservationSpec, Static, Stored
from frugal_rl.observation.tables import StaticTable, TableField, Tables
from mine_rl_npv.rules.codecs import MinedBitsCodec, SpanCodec, StampCodec
from mine_rl_npv.rules.features import CLIP, VIEW, block_views, geology
from mine_rl_npv.rules.volumes import column_depths, column_features, open_columns, pit_planes

if TYPE_CHECKING:
    from frugal_rl.observation.codecs.codec import Codec
    from mine_rl_npv.rules.layout import MineLayout

TABLE = "mine"
FULL_CHANNELS = (
    "cu",
    "mo",
    "as",
    "clays",
    "bwi",
    "rec",
    "chalcocite",
    "bornite",
    "chalcopyrite",
    "tennantite",
    "molibdenite",
    "pyrite",
    "ton",
    "destination",
    "upl",
)
"""Static channels of the 17-channel observation; mined flag and extraction day are the others."""
LIGHT_CHANNELS = (
    "cu",
    "mo",
    "clays",
    "bwi",
    "rec",
    "chalcocite",
    "bornite",
    "chalcopyrite",
    "ton",
    "upl",
)
"""Static channels of the 12-channel observation."""
MINELIB_CHANNELS = ("value", "value_per_tonne", "tonnes", "upl")


class Observation(Enum):
    """Which fields the policy is shown."""

    volume = "volume"
    """Geology and pit as voxels, as the guide has it."""
    columns = "columns"
    """Features of each column's next block, as pictures seen from above."""


@dataclass(frozen=True)
class Shapes:
    """Sizes that a spec needs."""

    grid: tuple[int, int, int]
    channels: tuple[str, ...]
    destinations: int = 1
    days: int = 65534
    """The last day that can occur."""
    logged: bool = True
    """Whether the pit follows from one block per step (column actions)."""
    mask_from_log: bool = True
    """Whether the mask follows from the log as well (not with the period clock)."""
    actions: int = 0

    units: int = 0
    """Columns that can be acted on; 0 means one per grid column (else one per block)."""

    @property
    def columns(self) -> int:
        """Number of columns C."""
        return self.units or self.grid[0] * self.grid[1]


PIT_DOC = "mined flag; extraction day, 0 where unmined"


def mine_spec(shapes: Shapes, observation: Observation) -> ObservationSpec:
    """The declaration of a mine environment's observation."""
    volume = observation is Observation.volume
    channels = (len(shapes.channels), *shapes.grid)
    doc = "static channels, z-scored over the blocks"
    geology = Static("geology", channels, np.float32, -CLIP, CLIP, doc, volume, table=TABLE)
    if not shapes.logged:
        codecs = _pit_codecs(shapes)
        planes = (2, *shapes.grid)
        pit = Stored("pit", planes, np.float32, 0, shapes.days, PIT_DOC, codecs=codecs)
        mask = _stored_mask(shapes, "macros that move a block")
        return ObservationSpec((geology, pit, mask), action_mask="action_mask")
    log = (
        Stored("entry", (), np.int32, 0, 2**31 - 1, "mined block + 1", False, window=EPISODE),
        Stored("day", (), np.uint16, 0, 65535, "its day, 65535: no room", False, window=EPISODE),
    )
    picture = () if shapes.units else (_picture(shapes, not volume),)
    derived = (_depth(shapes), _pit(shapes, volume), *picture, _mask(shapes))
    return ObservationSpec(
        (*log, geology, *derived), action_mask="action_mask", check=check_entries
    )


def check_entries(rows: Mapping[str, np.ndarray], tables: Tables) -> None:
    """Entries of a file name blocks of their own mine, [B, S + 1] of mines [B].

    Raises:
        EncodingError: one does not.
    """
    if "entry" not in rows:
        return  # the pit itself is stored
    mines, entries = rows[f"{TABLE}_id"].reshape(-1).astype(np.int64), rows["entry"]
    blocks = np.diff(tables[TABLE].offsets("owner"))
    if (entries.reshape(len(mines), -1) > blocks[mines, None]).any():
        raise EncodingError(f"'entry' names a block that its mine of {blocks.max()} has not.")


def _pit_codecs(shapes: Shapes) -> tuple[Codec, ...]:
    grid = shapes.grid
    return StampCodec(), MinedBitsCodec(int(np.prod(grid)), grid), SpanCodec(levels=grid[2])


def _stored_mask(shapes: Shapes, doc: str) -> Stored:
    codecs = (BitCodec(shapes.actions),)
    return Stored("action_mask", (shapes.actions,), np.bool_, doc=doc, codecs=codecs)


def _mask(shapes: Shapes) -> Stored | Derived:
    """The mask, derived where it follows from the log."""
    doc = "columns that offer a block, by destination"
    if not shapes.mask_from_log:
        return _stored_mask(shapes, doc)
    return Derived(
        "action_mask",
        (shapes.actions,),
        np.bool_,
        doc=doc,
        sources=("depth", "mine_id"),
        derive=_Mask(shapes),
        twin="mine_rl_npv.derive:action_mask",
        codecs=(BitCodec(shapes.actions),),
    )


def _depth(shapes: Shapes) -> Derived:
    return Derived(
        "depth",
        (shapes.columns,),
        np.uint8,
        0,
        255,
        "blocks mined per column",
        False,
        sources=("entry", "day", "mine_id"),
        derive=_Depth(shapes),
        twin="mine_rl_npv.derive:depth",
    )


def _pit(shapes: Shapes, shown: bool) -> Derived:
    return Derived(
        "pit",
        (2, *shapes.grid),
        np.float32,
        0,
        shapes.days,
        PIT_DOC,
        shown,
        sources=("entry", "day", "mine_id"),
        derive=_Pit(shapes),
        twin="mine_rl_npv.derive:pit",
        codecs=_pit_codecs(shapes),
    )


def _picture(shapes: Shapes, shown: bool) -> Derived:
    return Derived(
        "columns",
        (len(VIEW) + 2, *shapes.grid[:2]),
        np.float32,
        -CLIP,
        CLIP,
        "features of each column's next block, its depth / 64, whether it is open",
        shown,
        sources=("depth", "mine_id"),
        derive=_Columns(shapes),
        twin="mine_rl_npv.derive:columns",
    )


@dataclass(frozen=True)
class _Kernel:
    """A derive function bound to its sizes."""

    shapes: Shapes


class _Depth(_Kernel):
    def __call__(self, sources: Mapping[str, np.ndarray], tables: Tables) -> np.ndarray:
        entry = np.ascontiguousarray(sources["entry"])
        out = np.empty((len(entry), self.shapes.columns), np.uint8)
        table = tables[TABLE]
        day, mine = np.ascontiguousarray(sources["day"]), sources["mine_id"]
        column_depths(entry, day, mine, table["owner"], table.offsets("owner"), out)
        return out


class _Pit(_Kernel):
    def __call__(self, sources: Mapping[str, np.ndarray], tables: Tables) -> np.ndarray:
        entry = np.ascontiguousarray(sources["entry"])
        grid = self.shapes.grid
        out = np.empty((len(entry), 2, int(np.prod(grid))), np.float32)
        table = tables[TABLE]
        day, mine = np.ascontiguousarray(sources["day"]), sources["mine_id"]
        pit_planes(entry, day, mine, table["cell"], table.offsets("cell"), out)
        return out.reshape(-1, 2, *grid)


def masks_of(
    depth: np.ndarray, mine: np.ndarray, table: StaticTable, destinations: int, actions: int
) -> np.ndarray:
    """Action masks (B, actions) bool of depths (B, C) uint8."""
    out = np.zeros((len(depth), actions), np.bool_)
    open_columns(
        np.ascontiguousarray(depth),
        mine,
        table["column_first"],
        table["owner"],
        table.offsets("owner"),
        table["pointer"],
        table.offsets("pointer"),
        table["index"],
        table.offsets("index"),
        destinations,
        out,
    )
    return out


class _Mask(_Kernel):
    def __call__(self, sources: Mapping[str, np.ndarray], tables: Tables) -> np.ndarray:
        return masks_of(
            sources["depth"],
            sources["mine_id"],
            tables[TABLE],
            self.shapes.destinations,
            self.shapes.actions,
        )


class _Columns(_Kernel):
    def __call__(self, sources: Mapping[str, np.ndarray], tables: Tables) -> np.ndarray:
        depth, mine, table = sources["depth"], sources["mine_id"], tables[TABLE]
        depth = np.ascontiguousarray(depth)
        opened = masks_of(depth, mine, table, 1, self.shapes.columns)
        out = np.empty((*depth.shape, len(VIEW) + 2), np.float32)
        column_features(
            depth, opened, mine, table["column_first"], table["view"], table.offsets("view"), out
        )
        return np.moveaxis(out.reshape(len(depth), *self.shapes.grid[:2], -1), -1, 1)


def mine_table(shapes: Shapes, blocks: Sequence[int], arcs: Sequence[int]) -> StaticTable:
    """The table of static mine data, empty and without room.

    Args:
        shapes: grid and channels.
        blocks: of each mine's pit.
        arcs: precedences of each mine's pit.
    """
    most = max(blocks)
    return StaticTable(
        TABLE,
        (
            TableField("geology", (len(shapes.channels), *shapes.grid), np.float32),
            TableField("column_first", (shapes.columns + 1,), np.int32),
            TableField("destinations", (), np.int32),
            TableField("owner", (most,), np.int32, ragged=True),
            TableField("cell", (most,), np.int32, ragged=True),
            TableField("pointer", (most + 1,), np.int32, ragged=True),
            TableField("index", (max(arcs),), np.int32, ragged=True),
            TableField("view", (most, len(VIEW)), np.float32, ragged=True),
        ),
    )


def table_room(blocks: Sequence[int], arcs: Sequence[int]) -> tuple[int, dict[str, int]]:
    """Rows of the table, and items of its ragged fields, that these mines fill."""
    count, total = len(blocks), sum(blocks)
    items = {"owner": total, "cell": total, "pointer": total + count, "index": sum(arcs)}
    return count, items | {"view": total}


def mine_rows(layout: MineLayout, channels: Sequence[str]) -> dict[str, np.ndarray]:
    """One mine's row of the table."""
    columns = np.diff(layout.column_start)
    return {
        "geology": geology(layout, channels),
        "column_first": layout.column_start.astype(np.int32),
        "destinations": np.int32(layout.value.shape[1]),
        "owner": np.repeat(np.arange(len(columns)), columns).astype(np.int32),
        "cell": layout.cell,
        "pointer": layout.graph.pointer.astype(np.int32),
        "index": layout.graph.index,
        "view": block_views(layout),
    }
