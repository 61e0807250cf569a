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
from mine_rl_npv.data.economics import MILL, model_money
from mine_rl_npv.data.realisations import CORRELATED, drillholes, realised_models
from mine_rl_npv.data.roles import VALUE
from mine_rl_npv.data.solutions import period_of
from mine_rl_npv.tools.constrained import solve_mine
from mine_rl_npv.tools.risk import npv_matrix
from mine_rl_npv.tools.solve_config import Kind, Method, SolveConfig

if TYPE_CHECKING:
    from mine_rl_npv.data.block_model import BlockModel
    from mine_rl_npv.data.instance import Instance
    from mine_rl_npv.tools.solution import Solution

MOST_BYTES = 2 << 30
"""Of the distances between blocks and drillholes; above it the request is refused."""
AT_RISK = 5
"""Per cent of the models that may be worse than the value at risk."""


@dataclass(frozen=True)
class Risk:
    """What plans earn on equally likely models."""

    npv: dict[str, np.ndarray]
    """(models,) float64 of each plan by name."""
    expected: Solution
    """The plan of the mean values; its bound is that of any plan's expected value."""
    overloads: float
    """Mean share by which the plan that was asked for exceeds the mill, where it does."""

    def lines(self) -> Iterator[str]:
        """The table as lines of the report."""
        count = len(next(iter(self.npv.values())))
        yield f"risk       {count} equally likely models that honour the drillholes"
        heads = ("expected", "5 % at risk", "P10", "P50", "P90")
        yield " " * 33 + "".join(f"{head:>17s}" for head in heads)
        for name, npv in self.npv.items():
            marks = np.percentile(npv, [AT_RISK, 10, 50, 90])
            yield f"{name:33s}" + "".join(f"{v:17,.0f}" for v in (npv.mean(), *marks))
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
    models = realised_models(model, risk.realisations, config.seed, risk.spacing, risk.ranges)
    seen = [_seen(instance, one, config) for one in models]
    mean = _mean(seen)
    expected = solve_mine(mean, replace(config, method=_quick(config), decodes=0))
    assert expected.shares is not None
    plans = {
        f"plan asked for ({config.method.value})": period_of(solution.shares),
        f"plan of mean values ({_quick(config).value})": period_of(expected.shares),
    }
    npv = dict(zip(plans, npv_matrix(seen, list(plans.values())), strict=True))
    return Risk(npv, expected, _overloads(seen, solution.shares.sum(axis=1)))


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
    if model is None or VALUE in model.columns or model.edge is not None:
        raise ConfigError(
            "risk.* varies the grades of model=FILE.csv on a lattice; this mine has none to vary "
            "(MineLib files, stated values, blocks of unequal size)."
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
    return model


def _seen(instance: Instance, model: BlockModel, config: SolveConfig) -> Instance:
    """The instance with one model's grades: best destinations, and the mill's tonnes."""
    money = model_money(model, config.economics)
    use = instance.use.copy()
    use[:, 1] = np.where(money.argmax(axis=1) == MILL, model.columns["ton"], 0.0)
    return replace(instance, value=money.max(axis=1), use=use)


def _mean(seen: list[Instance]) -> Instance:
    value = np.mean([one.value for one in seen], axis=0)
    return replace(seen[0], value=value, use=np.mean([one.use for one in seen], axis=0))


def _overloads(seen: list[Instance], shares: np.ndarray) -> float:
    """Mean over models and periods of tonnes above the mill's limit, over that limit."""
    high = seen[0].high[1]
    milled = np.array([one.use[:, 1] @ shares for one in seen])
    return float((np.maximum(milled - high, 0) / np.maximum(high, 1)).mean())
