"""Mines as the environment's kernels want them: columns top-down, several mines in one arena."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from frugal_rl.errors import ConfigError
from frugal_rl.invocation import command
from mine_rl_npv.data.instance import Graph, Instance
from mine_rl_npv.data.kilograms import kilograms_down, kilograms_up
from mine_rl_npv.optimise.closure import max_closure

MAX_DEPTH = 127
"""Blocks in one column; the eighth bit of a stored depth says that the column is closed."""


class MineArrays(NamedTuple):
    """K mines side by side; block ids are absolute. Columns are x * ny + y, top block first.

    first      (K,)        int64    block id at which a mine's blocks begin
    blocks     (K,)        int64    how many blocks it has
    column     (K, C + 1)  int64    first block of each column
    owner      (M,)        int32    column of a block
    pointer, index                  predecessors of blocks, absolute ids
    after_pointer, after_index      successors
    value      (M, D)      float64  undiscounted
    use        (M, D, R)   int64    kilograms
    room       (K, R, T)   int64    kilograms per period
    discount   (K, T)      float64
    scale      (K,)        float64  money per unit of reward
    """

    first: np.ndarray
    blocks: np.ndarray
    column: np.ndarray
    owner: np.ndarray
    pointer: np.ndarray
    index: np.ndarray
    after_pointer: np.ndarray
    after_index: np.ndarray
    value: np.ndarray
    use: np.ndarray
    room: np.ndarray
    discount: np.ndarray
    scale: np.ndarray

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(int(part.nbytes) for part in self)


@dataclass(frozen=True)
class MineLayout:
    """One mine cut to its pit, its m blocks renumbered by column from the top down."""

    instance: Instance
    block: np.ndarray
    """(m,) int64 the instance's id of each block."""
    column_start: np.ndarray
    """(C + 1,) int64."""
    graph: Graph
    shape: tuple[int, int, int]
    destinations: bool

    @property
    def cell(self) -> np.ndarray:
        """(m,) int32 flat grid cell of each block."""
        place = self.instance.position[self.block]
        return np.ravel_multi_index(tuple(place.T), self.shape).astype(np.int32)

    @property
    def value(self) -> np.ndarray:
        """(m, D) float64."""
        if self.destinations:
            return self.instance.destination_value[self.block]
        return self.instance.value[self.block][:, None]

    @property
    def use(self) -> np.ndarray:
        """(m, D, R) float64 tonnes."""
        if self.destinations:
            return self.instance.destination_use[self.block]
        return self.instance.use[self.block][:, None]


def pit_of(instance: Instance, destinations: bool) -> np.ndarray:
    """(n,) bool the ultimate pit, where blocks may choose among destinations or not."""
    if destinations:
        value = instance.destination_value.max(axis=1)
        if not np.array_equal(value, instance.value):
            return max_closure(value, instance.graph)
    return instance.pit


def lay_out(
    instance: Instance,
    shape: tuple[int, int, int] | None = None,
    destinations: bool = False,
    inside: np.ndarray | None = None,
    units: int = 0,
) -> MineLayout:
    """Orders the blocks of a mine's pit by column.

    Args:
        instance: the mine.
        shape: grid; None takes the smallest that holds the blocks.
        destinations: whether actions choose among destinations.
        inside: (n,) bool blocks that may be mined; None takes the ultimate pit.
        units: above 0, every block is a column of its own (exact on any graph); that many columns.

    Raises:
        ConfigError: nothing is worth mining, the grid is too small, or a column too deep.
    """
    if inside is None:
        inside = pit_of(instance, destinations)
    if not inside.any():
        raise ConfigError(f"No block of {instance.name} is worth mining at these prices.")
    needed = tuple((instance.position.max(axis=0) + 1).tolist())
    shape = shape or needed
    if any(have < want for have, want in zip(shape, needed, strict=True)):
        raise ConfigError(f"{instance.name} needs a grid of {needed}, the grid is {shape}.")
    ids = np.flatnonzero(inside)
    if units:
        start = np.minimum(np.arange(units + 1), len(ids)).astype(np.int64)
        return MineLayout(
            instance, ids, start, _reordered(instance.graph, ids), shape, destinations
        )
    place = instance.position[ids]
    column = place[:, 0] * shape[1] + place[:, 1]
    order = np.lexsort((-place[:, 2], column))
    start = np.concatenate(([0], np.cumsum(np.bincount(column, minlength=shape[0] * shape[1]))))
    if np.diff(start).max() > MAX_DEPTH:
        raise ConfigError(
            f"A column of {instance.name} has {np.diff(start).max()} blocks; the environment "
            f"takes {MAX_DEPTH}. Use {command('solve')}, or coarser benches."
        )
    block = ids[order]
    return MineLayout(
        instance,
        block,
        start.astype(np.int64),
        _reordered(instance.graph, block),
        shape,
        destinations,
    )


def _reordered(graph: Graph, block: np.ndarray) -> Graph:
    """The graph among the chosen blocks under their new numbers, each row in their order."""
    new_id = np.full(graph.blocks, -1, np.int32)
    new_id[block] = np.arange(len(block), dtype=np.int32)
    index = new_id[graph.index]
    inside = np.repeat(new_id >= 0, np.diff(graph.pointer)) & (index >= 0)
    before = np.concatenate(([0], np.cumsum(inside)))[graph.pointer]
    needing = Graph(before, index[inside]).turned()
    # Turning it back orders every row: arcs arrive by the number of what is needed.
    rows = Graph(needing.pointer, new_id[needing.index]).turned()
    return Graph(rows.pointer[: len(block) + 1].copy(), rows.index)


def empty_arena(
    blocks: Sequence[int],
    arcs: Sequence[int],
    columns: int,
    destinations: int,
    resources: int,
    periods: int,
) -> MineArrays:
    """Arrays for mines of these sizes: what `build_arena` fills, and what a plan counts."""
    count, total, edges = len(blocks), sum(blocks), sum(arcs)
    return MineArrays(
        first=np.zeros(count, np.int64),
        blocks=np.array(blocks, np.int64),
        column=np.zeros((count, columns + 1), np.int64),
        owner=np.zeros(total, np.int32),
        pointer=np.zeros(total + 1, np.int64),
        index=np.zeros(edges, np.int32),
        after_pointer=np.zeros(total + 1, np.int64),
        after_index=np.zeros(edges, np.int32),
        value=np.zeros((total, destinations)),
        use=np.zeros((total, destinations, resources), np.int64),
        room=np.zeros((count, resources, periods), np.int64),
        discount=np.zeros((count, periods)),
        scale=np.zeros(count),
    )


def build_arena(layouts: Sequence[MineLayout], scales: Sequence[float]) -> MineArrays:
    """Joins mines on one grid.

    Args:
        layouts: with equal grids, resources, destinations; periods may differ (missing ones have
            no room).
        scales: money per unit of reward, by mine.
    """
    resources = {mine.instance.resources for mine in layouts}
    if len(resources) > 1 or len({mine.shape for mine in layouts}) > 1:
        raise ConfigError("Mines of one environment must share their grid and their resources.")
    arena = empty_arena(
        [len(mine.block) for mine in layouts],
        [mine.graph.arcs for mine in layouts],
        len(layouts[0].column_start) - 1,
        layouts[0].value.shape[1],
        resources.pop(),
        max(mine.instance.periods for mine in layouts),
    )
    arena.first[1:] = np.cumsum(arena.blocks)[:-1]
    arena.scale[:] = scales
    for k, mine in enumerate(layouts):
        arena.column[k] = mine.column_start + arena.first[k]
        arena.room[k, :, : mine.instance.periods] = kilograms_down(mine.instance.high)
        arena.discount[k, : mine.instance.periods] = mine.instance.discount
    owners = [
        np.repeat(np.arange(len(mine.column_start) - 1), np.diff(mine.column_start))
        for mine in layouts
    ]
    np.concatenate(owners, out=arena.owner, casting="same_kind")
    np.concatenate([mine.value for mine in layouts], out=arena.value)
    arena.use[:] = kilograms_up(np.concatenate([mine.use for mine in layouts]))
    joined = Graph(arena.pointer, arena.index)
    _join([mine.graph for mine in layouts], arena.first, joined)
    after = joined.turned()
    return arena._replace(after_pointer=after.pointer, after_index=after.index)


def _join(graphs: Sequence[Graph], first: np.ndarray, joined: Graph) -> None:
    """Writes graphs under absolute ids into one, without copies of them on the way."""
    arcs = 0
    for graph, at in zip(graphs, first, strict=True):
        begin, end = arcs, arcs + graph.arcs
        np.add(graph.pointer, begin, out=joined.pointer[at : at + graph.blocks + 1])
        np.add(graph.index, np.int32(at), out=joined.index[begin:end])
        arcs = end
