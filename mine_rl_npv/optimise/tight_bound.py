"""A bound below the LP relaxation: the best pit that fits by the end of each period.

What a schedule earns is a sum over periods of (discount now - discount next) times the undiscounted
value of the pit dug by then. That pit is closed under precedence and fits the capacities cumulated
so far, so `LimitedPit` bounds each term by branch and bound. The LP mixes pits in the same terms;
prices of the LP stand in for what the cumulated capacities do not see (capacities that bind in one
period alone, lower limits, pits that would shrink). Each stage is certified; more time lowers it.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from frugal_rl.errors import ConfigError
from mine_rl_npv.optimise.bound import Bound, Slots, inside_pit, priced_limits
from mine_rl_npv.optimise.closure import certified_closure, chain_flow
from mine_rl_npv.optimise.limited_pit import LimitedPit, cone_use

if TYPE_CHECKING:
    from mine_rl_npv.data.instance import Instance

_MEMORY = 8
_NESTED = 1e-7


@dataclass(frozen=True)
class CutsConfig:
    """When the tightening stops."""

    seconds: float = 300.0
    """By the clock; no new decision after that."""
    decisions: int = 0
    """Decisions in all instead of the clock: the same bound everywhere."""
    threads: int = 1
    """Periods decided side by side, by the clock alone: it changes the order of decisions."""

    @property
    def abreast(self) -> int:
        """Periods that one round of decisions takes."""
        return 1 if self.decisions else self.threads


@dataclass
class _Period:
    """The pit dug by the end of one period."""

    weights: np.ndarray
    """(n,) float64 what a block in the pit adds to the priced objective."""
    free: np.ndarray
    """(R,) what of the prices the tree finds again by itself."""
    room: np.ndarray
    """(R,) cumulated capacity; inf where there is none."""
    upper: float
    """Certified bound of this period's term."""
    tree: LimitedPit | None = None
    falls: deque[float] = field(default_factory=lambda: deque(maxlen=_MEMORY))

    @property
    def promise(self) -> float:
        """Money that a closure lowered the bound by, lately; inf until that is known."""
        if self.tree is None or self.tree.expansions < 2:
            return math.inf
        return sum(self.falls) / len(self.falls)

    def advance(self, slots: Slots, cone: np.ndarray) -> None:
        """Plants the tree, then decides one block at a time."""
        before, closures = self.upper, self.tree.closures if self.tree is not None else 0
        if self.tree is None:
            self.tree = self._plant(slots, cone)
        else:
            self.tree.expand()
        self.upper = min(self.upper, self.tree.upper - _whole_price(self.free, self.room))
        self.falls.append((before - self.upper) / (self.tree.closures - closures))

    def _plant(self, slots: Slots, cone: np.ndarray) -> LimitedPit:
        use = slots.use[:, 0]
        binding = np.isfinite(self.room) & (use.sum(axis=0) > self.room)
        value = self.weights + use @ self.free
        some, cone = (np.ascontiguousarray(array[:, binding]) for array in (use, cone))
        return LimitedPit(slots.graph, value, some, self.room[binding], cone)


def tighten(
    instance: Instance,
    bound: Bound,
    config: CutsConfig | None = None,
    watch: Callable[[float, int, float], None] | None = None,
) -> tuple[Bound, str]:
    """Lowers a certified bound of CPIT; Ctrl-C keeps what is reached.

    Args:
        instance: the mine.
        bound: its LP relaxation.
        config: budget.
        watch: told of seconds, decisions and the bound over the LP's.

    Returns:
        The bound with a lower `upper` and the stages of its pits; what was decided, as a line.

    Raises:
        ConfigError: the bound is that of blocks which choose their destination.
    """
    config = config or CutsConfig()
    if bound.fractions.shape[1] > 1:
        raise ConfigError(
            "bound=cuts knows one destination per block; problem=pcpsp takes bound=lp."
        )
    started = time.perf_counter()
    keep, slots = inside_pit(instance, False)
    if not keep.any():
        return bound, "tightened  not at all: nothing pays"
    constant, periods = _terms(slots, bound.prices)
    cone = cone_use(slots.graph, slots.use[:, 0])
    try:
        with ThreadPoolExecutor(config.abreast) as pool:
            while True:
                best = min(bound.upper, _total(constant, periods))
                spent = time.perf_counter() - started
                decisions = sum(p.tree.expansions for p in periods if p.tree is not None)
                if watch is not None:
                    watch(spent, decisions, best / bound.upper)
                late = (
                    decisions >= config.decisions if config.decisions else spent >= config.seconds
                )
                waiting = [p for p in periods if not _finished(p, slots)]
                if late or not waiting:
                    break
                urgent = sorted(waiting, key=_urgency, reverse=True)[: config.abreast]
                list(pool.map(lambda period: period.advance(slots, cone), urgent))
    except KeyboardInterrupt:  # after the threads have ended their decisions
        best = min(bound.upper, _total(constant, periods))
    line = _told(bound.upper, best, periods)
    seconds = bound.seconds + time.perf_counter() - started
    return replace(bound, upper=best, seconds=seconds, stage=_stage(keep, periods)), line


def _stage(keep: np.ndarray, periods: list[_Period]) -> np.ndarray | None:
    """How many of the best pits found lack each block (n,); None without such a pit."""
    pits = [p.tree.pit for p in periods if p.tree is not None and p.tree.pit is not None]
    if not pits:
        return None
    stage = np.full(len(keep), len(pits))
    stage[keep] = np.sum([~pit for pit in pits], axis=0)
    return stage


def _urgency(period: _Period) -> tuple[float, int]:
    return period.promise, -period.tree.closures if period.tree is not None else 0


def _finished(period: _Period, slots: Slots) -> bool:
    if period.tree is not None:
        return period.tree.solved
    use = slots.use[:, 0].sum(axis=0)
    return not (use > period.room).any()


def _terms(slots: Slots, prices: np.ndarray) -> tuple[float, list[_Period]]:
    """The constant of the priced objective, and a term per period: their sum bounds the mine."""
    weights = slots.node_weights(prices)
    together = certified_closure(weights, slots.graph, 1)[1]
    apart = _separate(weights, slots)
    if sum(apart) > together + _NESTED * abs(together):
        chained = weights + chain_flow(weights, slots.graph, 1)
        nested = _separate(chained, slots)
        if sum(nested) < sum(apart):
            weights, apart = chained, nested
    none_negative = (slots.use.min(axis=(0, 1)) >= 0)[:, None]
    room = np.where(none_negative, np.cumsum(slots.high, axis=1), np.inf)
    free = np.where(np.isfinite(room), falls_of_prices(prices), 0.0)
    periods = [
        _Period(np.ascontiguousarray(weights[:, t]), free[:, t], room[:, t], upper)
        for t, upper in enumerate(apart)
    ]
    return priced_limits(slots, prices), periods


def falls_of_prices(prices: np.ndarray) -> np.ndarray:
    """(R, T) what each cumulated limit may take over of the prices (R, T) of single periods.

    A limit cumulated to period t stands for a price on every period up to t, so those taken over
    must sum to no more than the price of any of them: of a price that rises again, only what all
    earlier periods charge as well. The rest of it stays with its own period.
    """
    common = np.minimum.accumulate(np.maximum(prices, 0.0), axis=1)
    return common - np.append(common[:, 1:], np.zeros((len(prices), 1)), axis=1)


def _separate(weights: np.ndarray, slots: Slots) -> list[float]:
    columns = np.ascontiguousarray(weights.T)
    return [certified_closure(column, slots.graph)[1] for column in columns]


def _whole_price(free: np.ndarray, room: np.ndarray) -> float:
    used = free > 0
    return math.fsum(free[used] * room[used])


def _total(constant: float, periods: list[_Period]) -> float:
    """The sum, rounded outward."""
    terms = [constant, *(p.upper for p in periods)]
    sizes = math.fsum(map(abs, terms)) + sum(_whole_price(p.free, p.room) for p in periods)
    return math.fsum(terms) + 16 * float(np.finfo(float).eps) * sizes


def _told(before: float, after: float, periods: list[_Period]) -> str:
    trees = [(t, p.tree) for t, p in enumerate(periods) if p.tree is not None]
    decisions = sum(tree.expansions for _, tree in trees)
    solved = sum(tree.solved for _, tree in trees)
    return (
        f"tightened  from the LP's {before!r} by {100 * (before - after) / abs(before):.4f} %: "
        f"{decisions} decisions in the pits of {len(trees)} periods, {solved} of them solved"
    )
