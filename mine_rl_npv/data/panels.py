"""Minimum mining width: blocks of a bench that are dug together, as wide as the machines need.

A bench is cut into panels of the wanted width. Panels are mined whole, so that every face, floor
and remnant is at least as wide; where the panels begin is chosen by the value of their best pit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from frugal_rl.errors import ConfigError
from frugal_rl.late import Late
from mine_rl_npv.data.instance import Graph

if TYPE_CHECKING:
    from mine_rl_npv.data.instance import Instance

ndimage = Late("scipy.ndimage")


@dataclass(frozen=True)
class Panels:
    """Which blocks are mined together. n blocks, P panels."""

    unit: np.ndarray
    """(n,) int64 panel of each block."""
    position: np.ndarray
    """(P, 3) int64 place of each panel among panels."""
    cells: tuple[int, int]
    """Blocks of a whole panel along x and y."""

    def gathered(self, instance: Instance) -> Instance:
        """The same mine with panels for blocks; destinations are those of its blocks (CPIT)."""
        count = len(self.position)
        value = np.bincount(self.unit, instance.value, count)
        use = np.column_stack([np.bincount(self.unit, u, count) for u in instance.use.T])
        return replace(
            instance,
            position=self.position.astype(np.int32),
            graph=self._graph(instance.graph),
            value=value,
            use=use,
            destination_value=value[:, None],
            destination_use=use[:, None],
            general=None,
            slopes=None,
            fields={},
        )

    def _graph(self, graph: Graph) -> Graph:
        count = len(self.position)
        owner = self.unit[np.repeat(np.arange(graph.blocks), np.diff(graph.pointer))]
        pairs = np.unique(owner * count + self.unit[graph.index])
        owner, needed = np.divmod(pairs, count)
        apart = owner != needed
        counts = np.bincount(owner[apart], minlength=count)
        pointer = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
        return Graph(pointer, needed[apart].astype(np.int32))


def best_panels(instance: Instance, width: float) -> Panels:
    """Panels at least `width` metres wide along both axes, placed where their best pit pays most.

    Raises:
        ConfigError: the blocks have no lattice, or no size in metres.
    """
    slopes = instance.slopes
    if slopes is None or not slopes.regular:
        raise ConfigError(
            "constraints.mining_width needs blocks of one size in metres: a block model "
            "(model=FILE.csv) on a lattice."
        )
    edge = slopes.edge[0]
    across, along = (int(np.ceil(width / e - 1e-9)) for e in edge[:2])
    made = [_panels(instance, (across, along), (i, j)) for i in range(across) for j in range(along)]
    return max(made, key=lambda panels: _pit_value(panels.gathered(instance)))


def _panels(instance: Instance, cells: tuple[int, int], offset: tuple[int, int]) -> Panels:
    place = instance.position.astype(np.int64)
    place[:, :2] = (place[:, :2] + offset) // cells
    position, unit = np.unique(place, axis=0, return_inverse=True)
    return Panels(unit.reshape(-1), position, cells)


def _pit_value(instance: Instance) -> float:
    return float(instance.value[instance.pit].sum())


def narrow_blocks(instance: Instance, period: np.ndarray, cells: tuple[int, int]) -> np.ndarray:
    """(n,) bool blocks that some period leaves dug out in a place narrower than `cells`.

    Looks at the benches as pictures, without panels: what is dug by the end of each period, and
    air, must be covered by rectangles of the width. Period -1 is never.
    """
    low, shape = instance.position.min(axis=0), np.ptp(instance.position, axis=0) + 1
    pad = np.array([cells[0], cells[1], 0])
    at = tuple((instance.position - low + pad).T)
    narrow = np.zeros(instance.blocks, bool)
    for t in range(instance.periods):
        open_cells = np.ones(tuple(shape + 2 * pad), bool)
        dug = (period >= 0) & (period <= t)
        open_cells[at] = dug
        wide = ndimage.binary_opening(open_cells, np.ones((*cells, 1), bool))
        narrow |= dug & ~wide[at]
    return narrow
