"""One scheduling problem: blocks, precedence graph, resources, destinations and money."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from frugal_rl.errors import DataError
from mine_rl_npv.data.precedence import find_cycle, reverse_graph, topological_order
from mine_rl_npv.optimise.closure import max_closure

if TYPE_CHECKING:
    from mine_rl_npv.slopes.cone import Slopes

MOST_PERIODS = 10_000
NEVER = -1
"""Period of a block that a schedule does not extract."""


@dataclass(frozen=True)
class Graph:
    """Direct predecessors in compressed rows: block b needs `index[pointer[b]:pointer[b + 1]]`.

    pointer  (blocks + 1,) int64
    index    (arcs,)       int32
    """

    pointer: np.ndarray
    index: np.ndarray

    @property
    def blocks(self) -> int:
        """How many blocks the graph connects."""
        return len(self.pointer) - 1

    @property
    def arcs(self) -> int:
        """How many direct precedences there are."""
        return len(self.index)

    @cached_property
    def order(self) -> np.ndarray:
        """(blocks,) int32: every block after all its predecessors.

        Raises:
            DataError: the precedences form a cycle; the message names its blocks.
        """
        order = topological_order(self.pointer, self.index)
        if len(order) < self.blocks:
            cycle = find_cycle(self.pointer, self.index)
            raise DataError(
                f"The precedence graph has a cycle: block {' needs '.join(map(str, cycle))}. "
                "No block on a cycle can ever be mined; remove one of these arcs."
            )
        return order

    @cached_property
    def successors(self) -> Graph:
        """The same arcs, read the other way round: who needs block b."""
        return self.turned()

    def turned(self) -> Graph:
        """`successors` for whoever asks once: they are not kept."""
        return Graph(*reverse_graph(self.pointer, self.index))

    def restricted(self, keep: np.ndarray) -> Graph:
        """The graph among the blocks where `keep` (blocks,) bool, renumbered densely."""
        new_id = np.cumsum(keep) - 1
        owner = np.repeat(np.arange(self.blocks), np.diff(self.pointer))
        inside = keep[owner] & keep[self.index]
        counts = np.bincount(new_id[owner[inside]], minlength=int(keep.sum()))
        pointer = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
        return Graph(pointer, new_id[self.index[inside]].astype(np.int32))


class Arcs(NamedTuple):
    """What each block b is tied to: `index[pointer[b] : pointer[b + 1]]`, as kernels read it."""

    pointer: np.ndarray
    """(m + 1,) int64."""
    index: np.ndarray
    """(arcs,) int32 blocks."""

    @classmethod
    def of(cls, graph: Graph) -> Arcs:
        """The arcs of a graph."""
        return cls(graph.pointer, graph.index)


@dataclass(frozen=True)
class GeneralRows:
    """Side constraints over any blocks, destinations and periods: low <= sum value * y <= high.

    row, block, destination, period  (entries,) int32;  value (entries,) float64
    low, high                        (rows,) float64
    """

    row: np.ndarray
    block: np.ndarray
    destination: np.ndarray
    period: np.ndarray
    value: np.ndarray
    low: np.ndarray
    high: np.ndarray


@dataclass(frozen=True)
class Instance:
    """A deposit to be scheduled. n blocks, D destinations, R resources, T periods.

    Money is raw, never normalised. Destination-wise arrays have D >= 1; the value of a block in
    UPIT and CPIT is `value`, whose resource use is `use`.
    """

    name: str
    position: np.ndarray
    """(n, 3) int32 grid cell x, y, z; z = 0 is the bottom."""
    graph: Graph
    value: np.ndarray
    """(n,) float64 undiscounted profit of the block in CPIT."""
    periods: int
    rate: float
    """Discount rate per period; period 0 is not discounted."""
    use: np.ndarray
    """(n, R) float64 tonnes of each resource that the block takes in CPIT."""
    low: np.ndarray
    """(R, T) float64 lower limits, 0 or -inf where there is none."""
    high: np.ndarray
    """(R, T) float64 upper limits, inf where there is none."""
    destination_value: np.ndarray
    """(n, D) float64 undiscounted profit by destination in PCPSP."""
    destination_use: np.ndarray
    """(n, D, R) float64 tonnes of each resource by destination."""
    general: GeneralRows | None = None
    slopes: Slopes | None = None
    """Where the blocks are and how steep walls may be; None where a file lists precedences."""
    fields: dict[str, np.ndarray] = field(default_factory=dict)
    """Whatever else the blocks file tells, by column."""
    bench_advance: int = 0
    """Benches by which a column may be deepened per period; 0 means any number."""

    @property
    def blocks(self) -> int:
        """Number of blocks n."""
        return len(self.value)

    @property
    def resources(self) -> int:
        """Number of resources R."""
        return self.high.shape[0]

    @property
    def destinations(self) -> int:
        """Number of destinations D."""
        return self.destination_value.shape[1]

    @cached_property
    def discount(self) -> np.ndarray:
        """(T,) float64 factor by which money of period t is multiplied; 1 in the first."""
        return (1.0 + self.rate) ** -np.arange(self.periods)

    @cached_property
    def pit(self) -> np.ndarray:
        """(n,) bool blocks of the ultimate pit in CPIT, the smallest one of greatest value."""
        return max_closure(self.value, self.graph)

    @property
    def limit_names(self) -> list[str]:
        """What each limit is of: by name where a block model was read, else by number."""
        if self.slopes is not None and 2 <= self.resources <= 3:
            return ["mining", "milling", "stockpiling"][: self.resources]
        return [f"limit {r + 1}" for r in range(self.resources)]

    def without_limits_below(self) -> bool:
        """Whether every resource has upper limits only, so that doing nothing is feasible."""
        return bool(np.all(self.low <= 0))

    def restricted(self, keep: np.ndarray) -> Instance:
        """The problem on the blocks where `keep` (n,) bool; the graph must be closed under it."""
        return Instance(
            name=self.name,
            position=self.position[keep],
            graph=self.graph.restricted(keep),
            value=self.value[keep],
            periods=self.periods,
            rate=self.rate,
            use=self.use[keep],
            low=self.low,
            high=self.high,
            destination_value=self.destination_value[keep],
            destination_use=self.destination_use[keep],
            slopes=None if self.slopes is None else self.slopes.restricted(keep),
            fields={name: column[keep] for name, column in self.fields.items()},
            bench_advance=self.bench_advance,
        )
