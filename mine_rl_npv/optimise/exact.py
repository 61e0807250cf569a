"""Direct models for HiGHS: the exact CPIT of small mines and the LP with every kind of row."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.optimize import Bounds, LinearConstraint, OptimizeResult, linprog, milp

from frugal_rl.errors import ConfigError
from mine_rl_npv.data.blending import by_period_alone
from mine_rl_npv.data.instance import NEVER, Instance
from mine_rl_npv.optimise.closure import paying_pit
from mine_rl_npv.optimise.destinations import best_destinations

LARGEST_EXACT_BLOCKS = 3000
LARGEST_ORDER_ROWS = 1_000_000


@dataclass(frozen=True)
class ExactResult:
    """What HiGHS returned."""

    value: float
    """Of the plan, in its own arithmetic; the checker's value is the one to report."""
    upper: float
    """HiGHS's bound on the optimum."""
    shares: np.ndarray
    """(n, D, T) float64."""
    proven: bool
    """Whether the solver closed the gap."""
    seconds: float

    def period(self) -> np.ndarray:
        """(n,) int32 periods of a whole-block solution."""
        by_period = self.shares.sum(axis=1)
        return np.where(by_period.max(axis=1) > 0.5, by_period.argmax(axis=1), NEVER).astype(
            np.int32
        )


@dataclass(frozen=True)
class _Model:
    """max profit . z  with order rows z_i <= z_j and limit rows low <= A z <= high, 0 <= z <= 1."""

    profit: np.ndarray
    order: sp.csr_matrix
    limits: sp.csr_matrix
    low: np.ndarray
    high: np.ndarray
    keep: np.ndarray
    shape: tuple[int, int, int]

    def shares(self, z: np.ndarray, blocks: int) -> np.ndarray:
        kept, periods, destinations = self.shape
        steps = np.diff(z.reshape(kept, -1), axis=1, prepend=0.0).clip(0, 1)
        shares = np.zeros((blocks, destinations, periods))
        shares[self.keep] = steps.reshape(kept, periods, destinations).transpose(0, 2, 1)
        return shares


def _model(instance: Instance, destinations: bool) -> _Model:
    """The cumulative formulation over slots (period, destination); see `bound`."""
    value = instance.destination_value if destinations else instance.value[:, None]
    use = instance.destination_use if destinations else instance.use[:, None]
    general = instance.general if destinations else None
    keep = np.ones(instance.blocks, bool)
    if instance.without_limits_below() and general is None:
        keep = paying_pit(value.max(axis=1), instance.discount, instance.graph)
    n, d, t = int(keep.sum()), value.shape[1], instance.periods
    slots = d * t
    money = np.einsum("nd,t->ntd", value[keep], instance.discount).reshape(n, slots)
    step = sp.identity(n * slots, format="csr") - sp.diags(
        [np.where(np.arange(1, n * slots) % slots == 0, 0.0, 1.0)], [-1], format="csr"
    )
    rows, low, high = [], [], []
    for r in range(instance.resources):
        for period in range(t):
            y = np.zeros((n, t, d))
            y[:, period] = use[keep][:, :, r]
            if np.isfinite(instance.high[r, period]) or instance.low[r, period] > 0:
                rows.append(sp.csr_matrix(y.reshape(1, -1)))
                low.append(instance.low[r, period] if instance.low[r, period] > 0 else -np.inf)
                high.append(instance.high[r, period])
    if general is not None:
        y = sp.csr_matrix(
            (
                general.value,
                (general.row, general.block * slots + general.period * d + general.destination),
            ),
            shape=(len(general.low), n * slots),
        )
        rows.append(y)
        low.extend(general.low)
        high.extend(general.high)
    limits = sp.vstack(rows).tocsr() @ step if rows else sp.csr_matrix((0, n * slots))
    return _Model(
        np.asarray(step.T @ money.ravel()),
        _order_rows(instance, keep, slots, d),
        limits.tocsr(),
        np.array(low, float),
        np.array(high, float),
        keep,
        (n, t, d),
    )


def _order_rows(instance: Instance, keep: np.ndarray, slots: int, d: int) -> sp.csr_matrix:
    graph = instance.graph.restricted(keep)
    n = graph.blocks
    owner = np.repeat(np.arange(n), np.diff(graph.pointer))
    closing = np.arange(d - 1, slots, d)
    later = (np.arange(n)[:, None] * slots + np.arange(slots - 1)).ravel()
    i = np.concatenate(((owner[:, None] * slots + closing).ravel(), later))
    j = np.concatenate(((graph.index[:, None].astype(int) * slots + closing).ravel(), later + 1))
    k = len(i)
    return sp.csr_matrix(
        (np.tile([1.0, -1.0], k), (np.repeat(np.arange(k), 2), np.column_stack((i, j)).ravel())),
        shape=(k, n * slots),
    )


def direct_relaxation(instance: Instance, destinations: bool = False) -> ExactResult:
    """The LP in one piece; handles lower limits and general rows, for small instances.

    Raises:
        ConfigError: the LP would have too many rows, or has no solution.
    """
    slots = instance.periods * (instance.destination_value.shape[1] if destinations else 1)
    if instance.graph.arcs * slots > LARGEST_ORDER_ROWS:
        raise ConfigError(
            f"method=lp_direct takes up to {LARGEST_ORDER_ROWS:,} precedence rows, "
            f"{instance.name} has {instance.graph.arcs * slots:,}; use method=lp."
        )
    started = time.perf_counter()
    model = _model(instance, destinations)
    finite_high, finite_low = np.isfinite(model.high), np.isfinite(model.low)
    unit = max(float(np.abs(model.profit).max()), 1.0)
    result = linprog(
        -model.profit / unit,
        A_ub=sp.vstack((model.order, model.limits[finite_high], -model.limits[finite_low])),
        b_ub=np.concatenate(
            (np.zeros(model.order.shape[0]), model.high[finite_high], -model.low[finite_low])
        ),
        bounds=(0, 1),
        method="highs",
    )
    if result.status != 0:
        raise ConfigError(f"The relaxation of {instance.name} has no solution: {result.message}")
    value = -result.fun * unit
    shares = model.shares(result.x, instance.blocks)
    return ExactResult(value, value, shares, True, time.perf_counter() - started)


def exact_schedule(
    instance: Instance, seconds: float = 300.0, gap: float = 1e-7, destinations: bool = False
) -> ExactResult:
    """The best schedule by branch and bound: each block in one period.

    Destinations share a block, as in PCPSP, where `may_split`; else each block goes to one of
    them. No solution in time is an error.

    Raises:
        ConfigError: the mine is too large for this method, or nothing was found in time.
    """
    if instance.blocks > LARGEST_EXACT_BLOCKS:
        raise ConfigError(
            f"method=exact takes up to {LARGEST_EXACT_BLOCKS} blocks, {instance.name} has "
            f"{instance.blocks}; use method=window."
        )
    started = time.perf_counter()
    model = _model(instance, destinations)
    unit = max(float(np.abs(model.profit).max()), 1.0)
    constraints = [LinearConstraint(model.order, -np.inf, 0.0)]
    if model.limits.shape[0]:
        constraints.append(LinearConstraint(model.limits, model.low, model.high))
    split = destinations and may_split(instance)
    whole = np.ones(model.shape)
    if split:
        whole[:, :, :-1] = 0.0  # what is mined by the end of a period, in whichever shares

    def solved(integral: np.ndarray, left: float) -> OptimizeResult:
        return milp(
            -model.profit / unit,
            integrality=integral.ravel(),
            bounds=Bounds(0, 1),
            constraints=constraints,
            options={"time_limit": max(left, 1.0), "mip_rel_gap": gap},
        )

    result = solved(whole, seconds)
    if result.x is None:
        among = "" if split or not destinations else " (each block whole to one destination)"
        raise ConfigError(f"No schedule of {instance.name} found{among}: {result.message}")
    upper = -float(result.mip_dual_bound) * unit
    if destinations and not split:
        shared = np.zeros(model.shape)
        shared[:, :, -1] = (
            1.0  # plans that share a block may earn more, and the bound holds for them
        )
        left = seconds - (time.perf_counter() - started)
        found = solved(shared, left).mip_dual_bound
        apart = found is None or not np.isfinite(found)
        upper = direct_relaxation(instance, True).upper if apart else -float(found) * unit
    shares = model.shares(
        np.where(whole.ravel() > 0, np.round(result.x), result.x), instance.blocks
    )
    if split:
        shares = _polished(instance, shares)
    spent = time.perf_counter() - started
    return ExactResult(-result.fun * unit, upper, shares, result.status == 0, spent)


def may_split(instance: Instance) -> bool:
    """Whether the destinations of a period can be found again by themselves, exact to the limits.

    Lower limits, and side rows over several periods, leave HiGHS's tolerance as all there is;
    whole blocks meet them to the last digit.
    """
    rows = instance.general
    return instance.without_limits_below() and (rows is None or by_period_alone(rows))


def _polished(instance: Instance, shares: np.ndarray) -> np.ndarray:
    """The same periods with shares (n, D, T) that keep every limit without a tolerance."""
    by_period = shares.sum(axis=1)
    period = np.where(by_period.max(axis=1) > 0.5, by_period.argmax(axis=1), NEVER)
    spared = instance.destination_use.sum(axis=2).argmin(axis=1)
    start = np.eye(instance.destinations)[spared]
    return best_destinations(instance, period, start)
