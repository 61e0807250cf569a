"""What is known of a mine before anything is dug: its geology, and features of each block."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from frugal_rl.vec_env.shares import Shares
from mine_rl_npv.data.precedence import best_of_needing, near_cone_sums

if TYPE_CHECKING:
    from mine_rl_npv.rules.layout import MineLayout

VIEW = (
    "value",
    "value_per_tonne",
    "tonnes",
    "bench",
    "needs",
    "needed_by",
    "next_2",
    "next_4",
    "next_8",
    "rest",
    "best_prefix",
    "best_prefix_blocks",
    "best_cone",
    "best_cone_rank",
)
"""Features of a column's next block, before its depth and openness."""
CLIP = 3.0
CONE_LEVELS = 8
"""Levels above a block that its floating cone looks at."""
WORTH_A_THREAD = 20_000
"""Blocks whose cones take longer than starting one."""


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
        "upl": inside,
        "destination": np.zeros(instance.blocks),
        "value": instance.value,
        "tonnes": tonnes,
        "value_per_tonne": instance.value / np.maximum(tonnes, 1e-9),
    }
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
        value,
        value / np.maximum(tonnes, 1e-9),
        tonnes,
        bench,
        np.diff(layout.graph.pointer),
        np.bincount(layout.graph.index, minlength=layout.graph.blocks),
        *following,
        total[end] - total[first],
        best,
        best_blocks,
        *_best_cone(layout, value, tonnes),
    )
    return np.column_stack([_z_score(np.asarray(c, float)) for c in stack]).astype(np.float32)


def _best_cone(
    layout: MineLayout, value: np.ndarray, tonnes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Value per tonne of the best floating cone that holds a block, and its rank."""
    graph = layout.graph
    level = layout.instance.position[layout.block, 2].astype(np.int32)
    columns = np.column_stack((value, np.maximum(tonnes, 1e-9)))
    sums = np.empty_like(columns)
    arcs = (graph.pointer, graph.index)
    threads = Shares(least=WORTH_A_THREAD)
    threads.each(len(sums), partial(near_cone_sums, *arcs, columns, level, CONE_LEVELS, sums))
    threads.close()
    ratio = sums[:, 0] / sums[:, 1]
    best_of_needing(graph.pointer, graph.index, graph.order, ratio)
    return ratio, np.unique(ratio, return_inverse=True)[1] + 1.0


def _best_prefix(value: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Best sum of a block and the next ones below it, and how many blocks that takes."""
    best, count = value.astype(float).copy(), np.ones(len(value))
    below = end - np.arange(len(value)) - 1  # blocks under each in its column
    by_depth = np.argsort(below, kind="stable")
    for same in np.split(by_depth, np.cumsum(np.bincount(below)))[1:-1]:
        pays = same[best[same + 1] > 0]
        best[pays] += best[pays + 1]
        count[pays] += count[pays + 1]
    return best, count
