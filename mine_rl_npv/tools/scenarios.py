"""A plan against uncertain grades: equally likely models, expected value, value at risk.

Periods are fixed before the grades are known; where a block goes is decided when it is seen. What a
plan earns is then linear in the blocks' values, so the plan of greatest expected value is that of
the mean values, and its certified bound is a bound on the expected value of any plan.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from frugal_rl.errors import ConfigError
from mine_rl_npv.data.economics import MILL, model_money, money_source
from mine_rl_npv.data.instance import NEVER
from mine_rl_npv.data.realisations import CORRELATED, drillholes, realised_models
from mine_rl_npv.data.solutions import period_of
from mine_rl_npv.optimise.decode import list_schedule
from mine_rl_npv.optimise.problem import prepare
from mine_rl_npv.priority.features import block_features
from mine_rl_npv.priority.shipped import shipped_orders
from mine_rl_npv.tools.constrained import solve_mine
from mine_rl_npv.tools.solve_config import Kind, Method, SolveConfig

if TYPE_CHECKING:
    from mine_rl_npv.data.block_model import BlockModel
    from mine_rl_npv.data.instance import Instance
    from mine_rl_npv.tools.solution import Solution

MOST_BYTES = 2 << 30
"""Of the distances between blocks and drillholes, and of the values of all models; above it the
request is refused."""
AT_RISK = 5
"""Per cent of the models that may be worse than the value at risk."""


@dataclass(frozen=True)
class Realised:
    """Equally likely models of one mine. R models, n blocks."""

    instance: Instance
    """The mine of the reference grades."""
    value: np.ndarray
    """(R, n) float64 undiscounted."""
    milled: np.ndarray
    """(R, n) bool blocks that pay more in the mill than on the dump."""

    def npv(self, period: np.ndarray) -> np.ndarray:
        """(R,) of periods (n,), -1 for never; see `npv_matrix`."""
        factor = np.where(period == NEVER, 0.0, self.instance.discount[period])
        return self.value @ factor

    def seen(self, k: int) -> Instance:
        """The mine of one model: its best destinations, and the mill's tonnes."""
        return self._with(self.value[k], self.milled[k])

    def mean(self) -> Instance:
        """The mine of the mean values; milling limits hold for the mean ore."""
        return self._with(self.value.mean(axis=0), self.milled.mean(axis=0))

    def overloads(self, shares: np.ndarray) -> float:
        """Mean over models and periods of tonnes above the mill's limit, over that limit.

        Args:
            shares: (n, T) of each block by period.
        """
        high = self.instance.high[1]
        weighed = shares * self.instance.fields["ton"][:, None]
        above = [np.maximum(ore.astype(float) @ weighed - high, 0) for ore in self.milled]
        return float((np.array(above) / np.maximum(high, 1)).mean())

    def _with(self, value: np.ndarray, ore: np.ndarray) -> Instance:
        use = self.instance.use.copy()
        use[:, 1] = ore * self.instance.fields["ton"]
        return replace(self.instance, value=value, use=use)


@dataclass(frozen=True)
class Risk:
    """What plans earn on equally likely models."""

    npv: dict[str, np.ndarray]
    """(models,) float64 of each plan by name."""
    expected: Solution
    """The plan of the mean values; its bound is that of any plan's expected value."""
    overloads: float
    """Mean share by which the plan that was asked for exceeds the mill, where it does."""
    foresight: np.ndarray | None = None
    """(models,) float64 of each model's own plan by the shipped policies; None if not asked for."""

    def lines(self) -> Iterator[str]:
        """The table as lines of the report."""
        count = len(next(iter(self.npv.values())))
        yield f"risk       {count} equally likely models that honour the drillholes"
        heads = ("expected", "5 % at risk", "P10", "P50", "P90")
        yield " " * 33 + "".join(f"{head:>17s}" for head in heads)
        rows = dict(self.npv)
        if self.foresight is not None:
            rows["each model's own (zero_shot)"] = self.foresight
        for name, npv in rows.items():
            marks = np.percentile(npv, [AT_RISK, 10, 50, 90])
            yield f"{name:33s}" + "".join(f"{v:17,.0f}" for v in (npv.mean(), *marks))
        if self.foresight is not None:
            best = max(self.npv.values(), key=np.mean)
            yield (
                f"knowing the grades before planning earns {np.mean(self.foresight - best):,.0f} "
                "more on average than the better plan above"
            )
        upper, value = self.expected.upper, self.expected.verdict.value
        yield (
            f"no plan's expected value is above {upper:,.0f} (certified; milling limits hold for "
            f"the mean ore); the plan of mean values lacks {100 * (1 - value / upper):.4f} %"
            if upper > 0
            else "no plan pays in expectation"
        )
        yield f"mill       {100 * self.overloads:.2f} % above its limits, on average, by the plan"


def assess(solution: Solution, model: BlockModel | None, config: SolveConfig) -> Risk:
    """Tries a solution, and the plan of the mean values, on `config.risk.realisations` models.

    Raises:
        ConfigError: there are no grades to vary, or too many blocks.
    """
    model = varied(model, config)
    instance, risk = solution.instance, config.risk
    assert solution.shares is not None
    models = realised_values(instance, model, config)
    expected = solve_mine(models.mean(), replace(config, method=_quick(config), decodes=0))
    assert expected.shares is not None
    plans = {
        f"plan asked for ({config.method.value})": period_of(solution.shares),
        f"plan of mean values ({_quick(config).value})": period_of(expected.shares),
    }
    npv = {name: models.npv(period) for name, period in plans.items()}
    foresight = None
    if risk.foresight:
        foresight = np.array([_foreseen(models.seen(k)) for k in range(risk.realisations)])
    return Risk(npv, expected, models.overloads(solution.shares.sum(axis=1)), foresight)


def _quick(config: SolveConfig) -> Method:
    """The method of the second plan: the first one's where it is exact, else TopoSort."""
    return Method.exact if config.method is Method.exact else Method.toposort


def varied(model: BlockModel | None, config: SolveConfig) -> BlockModel:
    """The model, if its grades can vary and the method schedules whole blocks.

    Raises:
        ConfigError: they cannot; nothing was computed yet.
    """
    if config.method in (Method.upit, Method.lp, Method.lp_direct):
        raise ConfigError(f"risk.* needs a schedule; method={config.method.value} gives none.")
    if config.problem is not Kind.cpit:
        raise ConfigError("risk.* decides destinations when grades are seen; use problem=cpit.")
    stated = model is not None and bool(money_source(model, config.economics))
    if model is None or stated or model.edge is not None:
        raise ConfigError(
            "risk.* varies the grades of model=FILE.csv on a lattice; this mine has none to vary "
            "(MineLib files, stated values or a formula, blocks of unequal size)."
        )
    if not any(name in model.columns for name in CORRELATED):
        raise ConfigError(f"risk.* varies {', '.join(CORRELATED)}; the model has no such column.")
    holes = len(drillholes(model, config.risk.spacing))
    if not holes:
        raise ConfigError(
            f"risk.spacing={config.risk.spacing}: no column of the model lies on that grid of "
            "drillholes; use a smaller spacing."
        )
    if holes * len(model.cell) * 8 > MOST_BYTES:
        raise ConfigError(
            f"risk.spacing={config.risk.spacing} makes {holes:,} known blocks for "
            f"{len(model.cell):,}: too many distances. Use a wider spacing."
        )
    held = 9 * config.risk.realisations * len(model.cell)
    if held > MOST_BYTES:
        raise ConfigError(
            f"risk.realisations={config.risk.realisations} of {len(model.cell):,} blocks hold "
            f"{held / 2**30:.1f} GiB; at most {MOST_BYTES // (9 * len(model.cell)):,} fit."
        )
    return model


def realised_values(instance: Instance, model: BlockModel, config: SolveConfig) -> Realised:
    """What every block is worth on every model, at its best destination."""
    risk, blocks = config.risk, instance.blocks
    value = np.empty((risk.realisations, blocks))
    milled = np.empty((risk.realisations, blocks), bool)
    models = realised_models(model, risk.realisations, config.seed, risk.spacing, risk.ranges)
    for k, one in enumerate(models):
        money = model_money(one, config.economics)
        value[k], milled[k] = money.max(axis=1), money.argmax(axis=1) == MILL
    return Realised(instance, value, milled)


def _foreseen(instance: Instance) -> float:
    """Value of the best schedule of the shipped policies on one model, its grades known."""
    problem = prepare(instance)
    if not problem.blocks:
        return 0.0
    found = [
        list_schedule(problem, key, two_pass=True)
        for key in shipped_orders(block_features(problem)).values()
    ]
    return max(0.0, *(problem.worth(plan.period, plan.destination) for plan in found))
