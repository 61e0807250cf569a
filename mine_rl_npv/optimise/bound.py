"""LP bound of CPIT and PCPSP by decomposition, certified at every iteration.

Bienstock and Zuckerberg (IPCO 2010), in the form of Munoz et al. (Computational Optimization and
Applications 69, 2018). With z "extracted, and sent no further than slot s, by then", every row
except the resource limits says z_i <= z_j. For given prices of the resources, the best z is a
maximum closure, whose value plus the priced limits bounds the LP from above (the certificate).
The closures cut the nodes into cells; a small LP with one variable per cell gives the primal value
and the next prices. Slots are (period, destination), destinations fastest, so that one destination
is CPIT.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numba import njit
from scipy.optimize import linprog

from frugal_rl.errors import ConfigError
from mine_rl_npv.data.instance import Graph, Instance
from mine_rl_npv.optimise.closure import max_closure, paying_pit, rounding_bound
from mine_rl_npv.optimise.nested import first_closures

_MERGE_ABOVE_CELLS = 1200
LARGE_BLOCKS = 150_000
"""Mines of more blocks get a coarser LP bound, none below it, and no search."""


@dataclass(frozen=True)
class BoundConfig:
    """When the decomposition stops."""

    tolerance: float = 1e-8
    """Relative distance of bound and primal value."""
    max_iterations: int = 200
    max_seconds: float = 600.0
    """No new iteration starts after this; the bound stays certified, only less tight."""
    pits: int = 40
    """Nested pits that cut the first cells."""

    @classmethod
    def of_size(cls, blocks: int) -> BoundConfig:
        """As fine as a mine of that size can use: an iteration of a large one takes a minute."""
        return cls(tolerance=1e-4) if blocks > LARGE_BLOCKS else cls()


@dataclass(frozen=True)
class Bound:
    """An LP relaxation, solved or enclosed.

    n blocks of the whole instance, D destinations, T periods, R resources.
    """

    upper: float
    """Certified: no schedule is worth more."""
    primal: float
    """Value of the feasible LP solution `fractions`."""
    fractions: np.ndarray
    """(n, D, T) float64 share of the block extracted in that period for that destination."""
    prices: np.ndarray
    """(R, T) float64 prices of the resources at the bound."""
    iterations: int
    seconds: float
    stage: np.ndarray | None = None
    """(n,) int64 periods whose best pit, as a tightened bound found it, lacks the block."""

    def expected_period(self) -> np.ndarray:
        """(n,) float64 mean extraction period; the share left in the ground counts as period T.

        Where stages are known they come first, and the mean decides within a stage.
        """
        by_period = self.fractions.sum(axis=1)
        periods = np.arange(by_period.shape[1])
        mean = by_period @ periods + (1 - by_period.sum(axis=1)) * len(periods)
        return mean if self.stage is None else self.stage + mean / (len(periods) + 1)

    def alpha_period(self, alpha: float) -> np.ndarray:
        """(n,) int64 first period by whose end the share `alpha` is extracted, T if none."""
        cumulated = np.cumsum(self.fractions.sum(axis=1), axis=1)
        reached = cumulated >= alpha - 1e-9
        return np.where(reached.any(axis=1), reached.argmax(axis=1), cumulated.shape[1])


@dataclass(frozen=True)
class Slots:
    """The problem on the blocks of the pit, by slots (period, destination)."""

    graph: Graph
    money: np.ndarray  # (n, T * D) discounted value of extracting in a slot
    use: np.ndarray  # (n, D, R)
    low: np.ndarray  # (R, T)
    high: np.ndarray
    destinations: int

    @property
    def count(self) -> int:
        """Number of slots S."""
        return self.money.shape[1]

    def node_weights(self, prices: np.ndarray) -> np.ndarray:
        """(n, S) what a node's membership adds to the priced objective."""
        charge = np.einsum("ndr,rt->ntd", self.use, prices).reshape(self.money.shape)
        return _steps(self.money - charge)


def _steps(by_slot: np.ndarray) -> np.ndarray:
    weights = by_slot.copy()
    weights[:, :-1] -= by_slot[:, 1:]
    return weights


def relaxation(
    instance: Instance,
    destinations: bool = False,
    config: BoundConfig | None = None,
    watch: Callable[[int, float, float, int], None] | None = None,
) -> Bound:
    """Bounds CPIT (or PCPSP when `destinations`) from above and solves its LP relaxation.

    Args:
        instance: upper limits let the search stay inside the ultimate pit; lower limits do not.
        destinations: whether blocks choose among the instance's destinations.
        config: tolerances; None: those of the mine's size.
        watch: called per iteration with number, upper bound, primal value, cells.

    Raises:
        ConfigError: the instance has general side constraints, which this method does not price.
    """
    config = config or BoundConfig.of_size(instance.blocks)
    if destinations and instance.general is not None:
        raise ConfigError(
            f"Instance {instance.name} has general side constraints; use method=lp_direct."
        )
    started = time.perf_counter()
    keep, slots = inside_pit(instance, destinations)
    if not keep.any():
        return _nothing(instance, slots)
    cell = _first_cells(slots, config.pits)
    prices = np.zeros_like(slots.high)
    best, best_prices, primal, level = np.inf, prices, -np.inf, np.zeros(0)
    iteration = 0
    while True:
        iteration += 1
        level, primal, prices, names = _solve_cells(slots, cell)
        weights = slots.node_weights(prices)
        inside = max_closure(weights, slots.graph, slots.destinations)
        bound = (
            float(weights[inside].sum()) + rounding_bound(weights) + priced_limits(slots, prices)
        )
        if bound < best:
            best, best_prices = bound, prices
        if watch is not None:
            watch(iteration, best, primal, len(names))
        late = time.perf_counter() - started > config.max_seconds
        close = best - primal <= config.tolerance * max(abs(best), 1.0)
        if close or late or iteration >= config.max_iterations:
            break
        cell = _refine(cell, inside, level)
    z = level[cell]
    share = np.diff(z, axis=1, prepend=0.0).clip(0.0)
    periods = instance.periods
    fractions = np.zeros((instance.blocks, slots.destinations, periods))
    fractions[keep] = share.reshape(-1, periods, slots.destinations).transpose(0, 2, 1)
    seconds = time.perf_counter() - started
    return Bound(best, primal, fractions, best_prices, iteration, seconds)


def _nothing(instance: Instance, slots: Slots) -> Bound:
    """The bound of a mine in which no pit pays: leaving everything in the ground is best."""
    fractions = np.zeros((instance.blocks, slots.destinations, instance.periods))
    return Bound(0.0, 0.0, fractions, np.zeros_like(slots.high), 0, 0.0)


def inside_pit(instance: Instance, destinations: bool) -> tuple[np.ndarray, Slots]:
    """Which blocks (n,) bool can pay at all, and the problem on them."""
    value = instance.destination_value if destinations else instance.value[:, None]
    use = instance.destination_use if destinations else instance.use[:, None]
    keep = np.ones(instance.blocks, bool)
    if instance.without_limits_below():
        keep = paying_pit(value.max(axis=1), instance.discount, instance.graph)
    slots = instance.periods * value.shape[1]
    money = np.einsum("nd,t->ntd", value[keep], instance.discount).reshape(-1, slots)
    graph = instance.graph.restricted(keep)
    return keep, Slots(graph, money, use[keep], instance.low, instance.high, value.shape[1])


def priced_limits(slots: Slots, prices: np.ndarray) -> float:
    """Value of the limits at their prices; positive prices belong to upper limits."""
    high = np.where(prices > 0, slots.high, 0.0)
    low = np.where(prices < 0, slots.low, 0.0)
    return float((prices * (high + low)).sum())


def _first_cells(slots: Slots, pits: int) -> np.ndarray:
    """(n, S) int32 cells: nested pits by penalised tonnage, times slots."""
    level = np.zeros(slots.money.shape[0], np.int64)
    value = slots.money[:, : slots.destinations].max(axis=1)
    tonnes = slots.use.max(axis=1).sum(axis=1)
    if tonnes.sum() > 0:
        density = np.maximum(value, 0)[tonnes > 0] / tonnes[tonnes > 0]
        rich = density[density > 0]
        if len(rich):
            penalty = np.quantile(rich, np.linspace(0.98, 0, pits))
            first = first_closures(lambda k: value - penalty[k] * tonnes, pits, slots.graph)
            level = (pits - first).astype(np.int64)
    return _dense_ids(level[:, None] * slots.count + np.arange(slots.count))


def _dense_ids(labels: np.ndarray) -> np.ndarray:
    return np.unique(labels, return_inverse=True)[1].reshape(labels.shape).astype(np.int32)


def _refine(cell: np.ndarray, inside: np.ndarray, level: np.ndarray) -> np.ndarray:
    """Cells cut by the new closure; cells with equal values are joined when there are many."""
    if len(level) > _MERGE_ABOVE_CELLS:
        cell = _dense_ids(np.round(level, 12))[cell]
    return _dense_ids(cell.astype(np.int64) * 2 + inside)


def _solve_cells(
    slots: Slots, cell: np.ndarray
) -> tuple[np.ndarray, float, np.ndarray, np.ndarray]:
    """The LP with one variable per cell.

    Returns:
        Values (cells,), objective, prices (R, T), and the ids of the cells.
    """
    cells = int(cell.max()) + 1
    profit = np.bincount(cell.ravel(), _steps(slots.money).ravel(), minlength=cells)
    pairs = np.argwhere(
        _cell_pairs(cell, slots.graph.pointer, slots.graph.index, slots.destinations, cells)
    )
    k = len(pairs)
    order_rows = sp.csr_matrix(
        (np.tile([1.0, -1.0], k), (np.repeat(np.arange(k), 2), pairs.ravel())), shape=(k, cells)
    )
    usage = _cell_usage(slots, cell, cells)
    high, low = slots.high.ravel(), slots.low.ravel()
    upper, lower = np.flatnonzero(np.isfinite(high)), np.flatnonzero(low > 0)
    sizes = np.concatenate((high[upper], low[lower]))
    unit = np.where(sizes > 0, sizes, 1.0)
    limits = sp.csr_matrix(np.vstack((usage[upper], -usage[lower])) / unit[:, None])
    money_unit = max(float(np.abs(profit).max()), 1.0)
    result = linprog(
        -profit / money_unit,
        A_ub=sp.vstack((limits, order_rows)).tocsr(),
        b_ub=np.concatenate(
            (high[upper] / unit[: len(upper)], -low[lower] / unit[len(upper) :], np.zeros(k))
        ),
        bounds=(0, 1),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9},
    )
    if result.status != 0:
        raise ConfigError(f"The relaxation could not be solved: {result.message}")
    dual = -result.ineqlin.marginals[: len(unit)] / unit * money_unit
    prices = np.zeros(high.shape)
    prices[upper] += np.maximum(dual[: len(upper)], 0)
    prices[lower] -= np.maximum(dual[len(upper) :], 0)
    return (
        np.clip(result.x, 0, 1),
        -result.fun * money_unit,
        prices.reshape(slots.high.shape),
        np.arange(cells),
    )


def _cell_usage(slots: Slots, cell: np.ndarray, cells: int) -> np.ndarray:
    """(R * T, cells) tonnes that each cell adds to each limit."""
    resources, periods = slots.high.shape
    usage = np.zeros((resources, periods, cells))
    for r in range(resources):
        for s in range(slots.count):
            t, d = divmod(s, slots.destinations)
            tonnes = slots.use[:, d, r]
            if not tonnes.any():
                continue
            usage[r, t] += np.bincount(cell[:, s], tonnes, minlength=cells)
            if s > 0:
                usage[r, t] -= np.bincount(cell[:, s - 1], tonnes, minlength=cells)
    return usage.reshape(-1, cells)


@njit(cache=True)
def _cell_pairs(cell, pointer, index, stride, cells):
    """Which cells must not exceed which, bool (cells, cells): row needs column."""
    need = np.zeros((cells, cells), np.bool_)
    n, slots = cell.shape
    for b in range(n):
        for s in range(slots):
            i = cell[b, s]
            if s + 1 < slots:
                need[i, cell[b, s + 1]] = True
            if (s + 1) % stride == 0:
                for k in range(pointer[b], pointer[b + 1]):
                    need[i, cell[index[k], s]] = True
    for i in range(cells):
        need[i, i] = False
    return need
