"""An instance as the kernels want it: integer kilograms, contiguous rows, the pit's blocks only."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from frugal_rl.errors import ConfigError
from mine_rl_npv.data.instance import NEVER, Arcs, Graph, Instance
from mine_rl_npv.data.kilograms import fineness, kilograms_down, kilograms_up
from mine_rl_npv.optimise.closure import paying_pit
from mine_rl_npv.optimise.filling import filling_times
from mine_rl_npv.optimise.mixtures import mixtures


class Pit(NamedTuple):
    """The arrays of a problem as one argument of a kernel."""

    order: np.ndarray
    """(m,) int32, what is needed before what needs it."""
    needs: Arcs
    needed_by: Arcs
    value: np.ndarray
    """(m, D) float64 undiscounted."""
    use: np.ndarray
    """(m, D, R) int64 kilograms."""
    preferred: np.ndarray
    """(m, T) uint8 destination that list scheduling takes in a period."""
    discount: np.ndarray
    """(T,) float64."""


@dataclass(frozen=True)
class Problem:
    """What decoders read. m blocks of the pit, R resources, T periods.

    D counts the instance's destinations, and mixtures of them where `shares` says so.
    """

    instance: Instance
    inside: np.ndarray
    """(n,) bool blocks of the pit among the instance's."""
    graph: Graph
    """Precedence among the m blocks."""
    value: np.ndarray
    """(m, D) float64 undiscounted."""
    use: np.ndarray
    """(m, D, R) int64 kilograms."""
    room: np.ndarray
    """(R, T) int64 kilograms that may be used, or finer parts where all blocks are light."""
    discount: np.ndarray
    """(T,) float64."""
    preferred: np.ndarray
    """(m, T) uint8 destination that list scheduling takes in a period."""
    pace: Graph | None = None
    """What must be gone a period before each block; None where a pit may sink at any pace."""
    choice: bool = False
    """Whether blocks choose among the instance's destinations (PCPSP)."""
    shares: np.ndarray | None = None
    """(m, D, destinations) float64 of the instance's in the D choices; None: they are the same."""

    @property
    def blocks(self) -> int:
        """Number of blocks m inside the pit."""
        return self.value.shape[0]

    @property
    def position(self) -> np.ndarray:
        """(m, 3) int32 grid cells of the pit's blocks."""
        return self.instance.position[self.inside]

    @cached_property
    def pit(self) -> Pit:
        """What kernels read."""
        graph = self.graph
        return Pit(
            graph.order,
            Arcs.of(graph),
            Arcs.of(graph.successors),
            self.value,
            self.use,
            self.preferred,
            self.discount,
        )

    @cached_property
    def filling(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """`filling_times`, worth keeping."""
        return filling_times(self)

    def whole(self, period: np.ndarray) -> np.ndarray:
        """Periods (m,) of the pit's blocks as periods (n,) of the instance's."""
        everywhere = np.full(self.instance.blocks, NEVER, np.int32)
        everywhere[self.inside] = period
        return everywhere

    def sent(self, destination: np.ndarray) -> np.ndarray:
        """Choices (m,) of the pit's blocks as shares (n, D) by the instance's destinations."""
        everywhere = np.zeros((self.instance.blocks, self.instance.destinations))
        rows = np.arange(self.blocks)
        if self.shares is None:
            everywhere[np.flatnonzero(self.inside), destination] = 1.0
        else:
            everywhere[self.inside] = self.shares[rows, destination]
        return everywhere

    def worth(self, period: np.ndarray, destination: np.ndarray) -> float:
        """Discounted value of a schedule of the pit's blocks."""
        mined = np.flatnonzero(period != NEVER)
        return float((self.value[mined, destination[mined]] * self.discount[period[mined]]).sum())


def prepare(
    instance: Instance, destinations: bool = False, prices: np.ndarray | None = None
) -> Problem:
    """Cuts an instance to its ultimate pit and its tonnes to integer kilograms.

    Args:
        instance: with upper limits only.
        destinations: whether blocks choose among destinations (PCPSP) or have one (CPIT).
        prices: (R, T) resource prices that choose the preferred destination by period.

    Raises:
        ConfigError: the instance demands minimum tonnages, which list scheduling cannot promise.
    """
    if not instance.without_limits_below() or (destinations and instance.general is not None):
        raise ConfigError(
            f"Instance {instance.name} has lower limits or general rows; list scheduling cannot "
            "promise them. Use method=exact or method=lp_direct."
        )
    value = instance.destination_value if destinations else instance.value[:, None]
    use = instance.destination_use if destinations else instance.use[:, None]
    inside = paying_pit(value.max(axis=1), instance.discount, instance.graph)
    value, use = np.ascontiguousarray(value[inside]), np.ascontiguousarray(use[inside])
    fine = fineness(use)
    room = kilograms_down(instance.high * fine[:, None])
    shares = mixtures(kilograms_up(use * fine), room) if destinations else None
    if shares is not None:
        value = np.einsum("mcd,md->mc", shares, value)
        use = np.einsum("mcd,mdr->mcr", shares, use)
    if prices is None:
        prices = np.zeros((instance.resources, instance.periods))
    net = value[:, :, None] * instance.discount - np.einsum("mdr,rt->mdt", use, prices)
    return Problem(
        instance=instance,
        inside=inside,
        graph=instance.graph.restricted(inside),
        value=value,
        use=kilograms_up(use * fine),
        room=room,
        discount=instance.discount,
        preferred=net.argmax(axis=1).astype(np.uint8),
        pace=pace_of(instance.position[inside], instance.bench_advance),
        choice=destinations,
        shares=shares,
    )


def pace_of(position: np.ndarray, benches: int) -> Graph | None:
    """Arcs from each block to the nearest one of its column at least `benches` above it.

    Args:
        position: (m, 3) int cells.
        benches: a column may be deepened by so many in a period; 0 asks for no arcs.
    """
    if not benches:
        return None
    order = np.lexsort((position[:, 2], position[:, 1], position[:, 0]))
    place = position[order].astype(np.int64)
    column = np.cumsum(np.any(np.diff(place[:, :2], axis=0, prepend=place[:1, :2]) != 0, axis=1))
    tall = int(np.ptp(place[:, 2])) + benches + 1
    key = column * tall + place[:, 2] - place[:, 2].min()
    above = np.searchsorted(key, key + benches)
    found = np.flatnonzero(above < len(key))
    found = found[column[above[found]] == column[found]]
    owner, needed = order[found], order[above[found]]
    rows = np.argsort(owner)
    pointer = np.concatenate(([0], np.cumsum(np.bincount(owner, minlength=len(order)))))
    return Graph(pointer.astype(np.int64), needed[rows].astype(np.int32))
