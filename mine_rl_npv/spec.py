"""What a mine agent sees, declared once, field by field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from frugal_rl.observation.codecs.bits import BitCodec
from frugal_rl.observation.growing_array import capacity_for
from frugal_rl.observation.spec import EPISODE, Derived, ObservationSpec, Static, Stored
from frugal_rl.observation.tables import StaticTable, TableField, Tables
from mine_rl_npv.codecs import DepthCodec, MinedBitsCodec, StampCodec
from mine_rl_npv.layout import MineLayout
from mine_rl_npv.precedence import best_of_needing, near_cone_sums
from mine_rl_npv.volumes import column_depths, column_features, open_columns, pit_planes

TABLE = "mine"
FULL_CHANNELS = (
    "cu", "mo", "as", "clays", "bwi", "rec", "chalcocite", "bornite", "chalcopyrite",
    "tennantite", "molibdenite", "pyrite", "ton", "destination", "upl",
)  # fmt: skip
"""Static channels of the 17-channel observation; mined flag and extraction day are the others."""
LIGHT_CHANNELS = (
    "cu", "mo", "clays", "bwi", "rec", "chalcocite", "bornite", "chalcopyrite", "ton", "upl",
)  # fmt: skip
"""Static channels of the 12-channel observation."""
MINELIB_CHANNELS = ("value", "value_per_tonne", "tonnes", "upl")
VIEW = (
    "value", "value_per_tonne", "tonnes", "bench", "needs", "needed_by", "next_2", "next_4",
    "next_8", "rest", "best_prefix", "best_prefix_blocks", "best_cone", "best_cone_rank",
)  # fmt: skip
"""Features of a column's next block, before its depth and openness."""
CLIP = 3.0
CONE_LEVELS = 8
"""Levels above a block that its floating cone looks at."""


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


def mine_spec(shapes: Shapes, observation: Observation) -> ObservationSpec:
    """The declaration of a mine environment's observation."""
    grid, cells = shapes.grid, int(np.prod(shapes.grid))
    pit_codecs = (StampCodec(), MinedBitsCodec(cells, grid), DepthCodec(levels=grid[2]))
    volume = observation is Observation.volume
    geology = Static(
        "geology", (len(shapes.channels), *grid), np.float32, -CLIP, CLIP,
        "static channels, z-scored over the blocks", volume, table=TABLE,
    )  # fmt: skip
    pit_doc = "mined flag; extraction day, 0 where unmined"
    mask_doc = "columns that offer a block, by destination"
    if not shapes.logged:
        return ObservationSpec(
            (
                geology,
                Stored("pit", (2, *grid), np.float32, 0, shapes.days, pit_doc, codecs=pit_codecs),
                Stored(
                    "action_mask", (shapes.actions,), np.bool_, doc="macros that move a block",
                    codecs=(BitCodec(shapes.actions),),
                ),
            ),
            action_mask="action_mask",
        )  # fmt: skip
    log = (
        Stored("entry", (), np.int32, 0, 2**31 - 1, "mined block + 1", False, window=EPISODE),
        Stored("day", (), np.uint16, 0, 65535, "its day, 65535: no room", False, window=EPISODE),
    )
    mask: Derived | Stored = Stored("action_mask", (shapes.actions,), np.bool_, doc=mask_doc,
                                    codecs=(BitCodec(shapes.actions),))  # fmt: skip
    if shapes.mask_from_log:
        mask = Derived(
            "action_mask", (shapes.actions,), np.bool_, doc=mask_doc,
            sources=("depth", "mine_id"), derive=_Mask(shapes),
            twin="mine_rl_npv.derive:action_mask", codecs=(BitCodec(shapes.actions),),
        )  # fmt: skip
    derived = (
        Derived(
            "depth", (shapes.columns,), np.uint8, 0, 255, "blocks mined per column", False,
            sources=("entry", "day", "mine_id"), derive=_Depth(shapes),
            twin="mine_rl_npv.derive:depth",
        ),
        Derived(
            "pit", (2, *grid), np.float32, 0, shapes.days, pit_doc, volume,
            sources=("entry", "day", "mine_id"), derive=_Pit(shapes),
            twin="mine_rl_npv.derive:pit", codecs=pit_codecs,
        ),
    )  # fmt: skip
    picture = (
        Derived(
            "columns", (len(VIEW) + 2, *grid[:2]), np.float32, -CLIP, CLIP,
            "features of each column's next block, its depth / 64, whether it is open",
            not volume, sources=("depth", "mine_id"), derive=_Columns(shapes),
            twin="mine_rl_npv.derive:columns",
        ),
    )  # fmt: skip
    if shapes.units:
        picture = ()
    return ObservationSpec((*log, geology, *derived, *picture, mask), action_mask="action_mask")


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
        np.ascontiguousarray(depth), mine, table["column_first"], table["owner"],
        table.offsets("owner"), table["pointer"], table.offsets("pointer"), table["index"],
        table.offsets("index"), destinations, out,
    )  # fmt: skip
    return out


class _Mask(_Kernel):
    def __call__(self, sources: Mapping[str, np.ndarray], tables: Tables) -> np.ndarray:
        return masks_of(
            sources["depth"], sources["mine_id"], tables[TABLE], self.shapes.destinations,
            self.shapes.actions,
        )  # fmt: skip


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


def mine_table(shapes: Shapes, most: int, arcs: int) -> StaticTable:
    """The table of static mine data, empty.

    Args:
        shapes: grid and channels.
        most: the most blocks of one mine's pit.
        arcs: the most precedences of one mine's pit.
    """
    return StaticTable(
        TABLE,
        (
            TableField("geology", (len(shapes.channels), *shapes.grid), np.float32),
            TableField("column_first", (shapes.columns + 1,), np.int32),
            TableField("destinations", (), np.int32),
            TableField("owner", (most,), np.int32, ragged=True),
            TableField("cell", (most,), np.int32, ragged=True),
            TableField("pointer", (most + 1,), np.int32, ragged=True),
            TableField("index", (arcs,), np.int32, ragged=True),
            TableField("view", (most, len(VIEW)), np.float32, ragged=True),
        ),
    )


def table_bytes(shapes: Shapes, blocks: Sequence[int], arcs: Sequence[int]) -> int:
    """Bytes that the table allocates for mines with these pits; arenas grow ahead of need."""
    ones = [1] * len(blocks)
    cells = len(shapes.channels) * int(np.prod(shapes.grid))
    fixed = _grown(ones) * 4 * (cells + shapes.columns + 2)
    per_block = _grown(list(blocks)) * 4 * (2 + len(VIEW)) + _grown([n + 1 for n in blocks]) * 4
    return fixed + per_block + _grown(list(arcs)) * 4 + 5 * 8 * _grown([1, *ones])


def _grown(sizes: Sequence[int]) -> int:
    """Capacity of an arena after appending pieces of these sizes; see `tables.GrowingArray`."""
    used = capacity = 0
    for size in sizes:
        used += size
        capacity = capacity_for(used, capacity)
    return capacity


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


def geology(layout: MineLayout, channels: Sequence[str]) -> np.ndarray:
    """Normalised static channels (channels, nx, ny, nz) float32 of all blocks; air is 0.

    Money is never taken from here: rewards read the raw values.
    """
    instance = layout.instance
    planes = np.zeros((len(channels), *layout.shape), np.float32)
    place = tuple(instance.position.T)
    inside = np.zeros(instance.blocks)
    inside[layout.block] = 1.0
    tonnes = instance.use.max(axis=1) if instance.resources else np.ones(instance.blocks)
    special = {
        "upl": inside, "destination": np.zeros(instance.blocks), "value": instance.value,
        "tonnes": tonnes, "value_per_tonne": instance.value / np.maximum(tonnes, 1e-9),
    }  # fmt: skip
    for i, name in enumerate(channels):
        if name in special:
            column = special[name]
            planes[i][place] = column if name in ("upl", "destination") else _z_score(column)
        else:
            planes[i][place] = _z_score(np.asarray(instance.fields[name], float))
    return planes


def _z_score(column: np.ndarray) -> np.ndarray:
    """Standardised over the non-zero values and clipped to +-3."""
    some = column[column != 0] if (column != 0).any() else column
    low, high = np.quantile(some, [0.001, 0.999])  # sentinels must not set the scale
    kept = np.clip(some, low, high)
    return np.clip((column - kept.mean()) / max(kept.std(), 1e-9), -CLIP, CLIP)


def block_views(layout: MineLayout) -> np.ndarray:
    """Features (m, len(VIEW)) float32 of blocks as the next of their column, clipped to +-3."""
    value = layout.value.max(axis=1)
    use = layout.use.max(axis=1)
    tonnes = use.max(axis=1) if use.shape[1] else np.ones(len(value))
    start = layout.column_start
    total = np.concatenate(([0.0], np.cumsum(value)))
    first = np.arange(len(value))
    end = np.repeat(start[1:], np.diff(start))
    following = [total[np.minimum(first + n, end)] - total[first] for n in (2, 4, 8)]
    best, best_blocks = _best_prefix(value, end)
    bench = layout.instance.position[layout.block, 2]
    stack = (
        value, value / np.maximum(tonnes, 1e-9), tonnes, bench,
        np.diff(layout.graph.pointer), np.diff(layout.graph.successors.pointer), *following,
        total[end] - total[first], best, best_blocks, *_best_cone(layout, value, tonnes),
    )  # fmt: skip
    return np.column_stack([_z_score(np.asarray(c, float)) for c in stack]).astype(np.float32)


def _best_cone(
    layout: MineLayout, value: np.ndarray, tonnes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Value per tonne of the best floating cone that holds a block, and its rank."""
    graph = layout.graph
    level = layout.instance.position[layout.block, 2].astype(np.int32)
    columns = np.column_stack((value, np.maximum(tonnes, 1e-9)))
    sums = near_cone_sums(graph.pointer, graph.index, columns, level, CONE_LEVELS)
    ratio = sums[:, 0] / sums[:, 1]
    best_of_needing(graph.pointer, graph.index, graph.order, ratio)
    return ratio, np.unique(ratio, return_inverse=True)[1] + 1.0


def _best_prefix(value: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Best sum of a block and the next ones below it, and how many blocks that takes."""
    best, count = value.astype(float).copy(), np.ones(len(value))
    for b in range(len(value) - 2, -1, -1):
        if b + 1 < end[b] and best[b + 1] > 0:
            best[b] += best[b + 1]
            count[b] += count[b + 1]
    return best, count
