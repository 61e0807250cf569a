"""Money of a block model: raw grades in, dollars by destination out, and a scheduling instance."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated

import numpy as np

from frugal_rl.errors import ConfigError, DataError
from frugal_rl.ranges import between
from mine_rl_npv.data.formula import formula_values
from mine_rl_npv.data.instance import MOST_PERIODS, Graph, Instance
from mine_rl_npv.data.roles import VALUE
from mine_rl_npv.optimise.closure import max_closure
from mine_rl_npv.slopes.cone import PATTERNS, Slopes, runs_by_azimuth
from mine_rl_npv.slopes.graph import slope_graph

if TYPE_CHECKING:
    from mine_rl_npv.data.block_model import BlockModel

POUNDS_PER_TONNE = 2204.62
WASTE, MILL, STOCKPILE = 0, 1, 2
BESIDE_FORMULA = ("formula", "mining_cost", "stockpile_cost", "stockpile_periods")
"""Of `Economics`, what a formula of a block's money leaves to be read."""
MANY_BLOCKS, FEWER_LEVELS = 30_000, 8
DEAREST = 100.0
"""Price of a pound over the costs of a tonne of rock, above which it was that of a tonne."""


@dataclass(frozen=True)
class Economics:
    """Prices and costs in USD; specification A5, with a waste destination."""

    copper_price: float = 3.80
    """Per pound."""
    molybdenum_price: float = 15.00
    """Per pound."""
    mining_cost: float = 2.5
    """Per tonne moved."""
    processing_cost: float = 8.0
    """Per tonne milled."""
    fixed_cost: float = 1.2
    """Per tonne milled."""
    hardness_cost: float = 0.1
    """Per tonne milled and kWh/t of bond work index above 15."""
    clay_cost: float = 0.5
    """Per tonne milled and per cent of clays above 3."""
    recovery: float = 0.85
    """Share recovered where the model has no `rec` column."""
    stockpile_cost: float = -1.0
    """Per tonne rehandled; below 0 there is no stockpile destination."""
    stockpile_periods: int = 3
    """Periods that ore waits on the stockpile, where it needs no mill capacity; what would then be
    milled after the last period is not stocked."""
    formula: str = ""
    """USD of a block that is dug and milled, over the model's columns: `ton * (au * 54 - 14)`."""

    def __post_init__(self) -> None:
        for field in fields(self):
            number = getattr(self, field.name)
            if isinstance(number, str):
                continue
            low = -math.inf if field.name == "stockpile_cost" else 0
            if not (low <= number < math.inf) or math.isinf(number):
                raise ConfigError(f"economics.{field.name} is {number}; it must be 0 or more.")
        if self.recovery > 1:
            raise ConfigError(f"economics.recovery is {self.recovery}; it is a share, at most 1.")
        if self.stockpile_cost >= 0 and self.stockpile_periods < 1:
            raise ConfigError(
                "economics.stockpile_periods=0 would mill stocked ore at once, past the mill's "
                "limit; it must be 1 or more."
            )
        costs = self.mining_cost + self.processing_cost + self.fixed_cost
        if costs and self.copper_price > DEAREST * costs:
            raise ConfigError(
                f"economics.copper_price={self.copper_price:g} is the price of a pound, beside "
                f"costs of {costs:g} for a tonne of rock; for a price per tonne state "
                f"economics.copper_price={self.copper_price / POUNDS_PER_TONNE:.4g}."
            )


@dataclass(frozen=True)
class MinePlan:
    """How a block model becomes a scheduling instance."""

    periods: Annotated[int, between(1, MOST_PERIODS)] = 10
    rate: float = 0.10
    """Discount rate per period."""
    pattern: str = "slope"
    """Precedence: `5`, `9`, `1-5-9`, or `slope` for angle and levels."""
    slope_degrees: float = 45.0
    slope_levels: int = 8
    """Benches above a block over which the slope is kept exactly; 0 means the whole height, and 8
    above 30,000 blocks."""
    slope_sectors: tuple[str, ...] = ()
    """Other slopes by azimuth, `FROM-TO:DEGREES`, as `90-180:38`; 0 is north, clockwise."""
    mining_rate: float = 0.0
    """Tonnes moved per period at most; 0 means 1.15 times the pit's tonnage over the periods."""
    milling_rate: float = 0.0
    """Tonnes milled per period at most; 0 means 1.05 times the pit's ore over the periods."""
    mining_rates: tuple[float, ...] = ()
    """Tonnes moved at most in each period; goes in place of `mining_rate`."""
    milling_rates: tuple[float, ...] = ()
    """Tonnes milled at most in each period; goes in place of `milling_rate`."""

    def __post_init__(self) -> None:
        if self.periods < 1 or not self.rate > -1 or not 0 < self.slope_degrees < 90:
            raise ConfigError(
                f"periods={self.periods}, rate={self.rate}, slope_degrees={self.slope_degrees}: "
                "periods must be 1 or more, the rate above -1, the slope between 0 and 90."
            )
        if self.rate >= 1:
            raise ConfigError(
                f"plan.rate={self.rate:g} would be {self.rate:.0%} a period; it is a share, below "
                f"1: state plan.rate={self.rate / 100:g} for {self.rate:g} %."
            )
        if self.slope_degrees < math.pi / 2:
            raise ConfigError(
                f"plan.slope_degrees={self.slope_degrees:g} is flatter than any wall; radians? "
                f"state plan.slope_degrees={math.degrees(self.slope_degrees):.4g}."
            )
        self._refuse_lists()
        if self.pattern not in ("slope", *PATTERNS):
            raise ConfigError(
                f"plan.pattern={self.pattern} is unknown; choose slope, {', '.join(PATTERNS)}."
            )
        if self.slope_levels < 0 or not (self.mining_rate >= 0 and self.milling_rate >= 0):
            raise ConfigError(
                f"plan.slope_levels={self.slope_levels}, plan.mining_rate={self.mining_rate}, "
                f"plan.milling_rate={self.milling_rate}: all must be 0 or more."
            )
        runs_by_azimuth(self.slope_degrees, self.slope_sectors)

    def _refuse_lists(self) -> None:
        """Raises ConfigError where limits by period are too few, too many, or stated twice."""
        for name in ("mining_rate", "milling_rate"):
            tonnes = getattr(self, f"{name}s")
            if not tonnes:
                continue
            if getattr(self, name):
                raise ConfigError(f"plan.{name} and plan.{name}s state the same limit; give one.")
            if len(tonnes) != self.periods or not all(0 <= t < math.inf for t in tonnes):
                raise ConfigError(
                    f"plan.{name}s={list(tonnes)}: one number of tonnes, 0 or more, for each of "
                    f"the {self.periods} periods (plan.periods)."
                )

    def limits(self, moved: float, milled: float, heaviest: float) -> np.ndarray:
        """Tonnes (2, T) moved and milled per period at most.

        Args:
            moved: tonnes of the pit.
            milled: tonnes of its ore.
            heaviest: tonnes of one block, which the limits of this rule leave room for.
        """
        mining = self.mining_rate or max(1.15 * moved / self.periods, heaviest)
        milling = self.milling_rate or max(1.05 * milled / self.periods, heaviest)
        return np.ceil(
            np.array(
                [
                    self.mining_rates or [mining] * self.periods,
                    self.milling_rates or [milling] * self.periods,
                ]
            )
        )

    def slopes(self, model: BlockModel) -> Slopes:
        """The slope rule at the places of a block model's blocks."""
        run = runs_by_azimuth(self.slope_degrees, self.slope_sectors, model.bearing)
        if self.pattern == "slope":
            deep = self.slope_levels == 0 and len(model.cell) > MANY_BLOCKS
            return model.slopes(run, FEWER_LEVELS if deep else self.slope_levels)
        if model.edge is not None:
            raise ConfigError(
                f"plan.pattern={self.pattern} counts cells, and the blocks differ in size; use "
                "plan.pattern=slope."
            )
        return model.slopes(run, 0, self.pattern)


def block_values(columns: dict[str, np.ndarray], economics: Economics) -> np.ndarray:
    """Undiscounted USD of each block as waste and as ore.

    Returns:
        (N, 2) float64 by destination WASTE, MILL.
    """
    tonnes = columns["ton"]
    zero = np.zeros_like(tonnes)
    recovered = (
        columns["rec"] / 100.0 if "rec" in columns else np.full_like(tonnes, economics.recovery)
    )
    per_grade = tonnes / 100.0 * recovered * POUNDS_PER_TONNE
    revenue = (
        columns.get("cu", zero) * economics.copper_price
        + columns.get("mo", zero) * economics.molybdenum_price
    ) * per_grade
    extra = economics.hardness_cost * np.maximum(columns.get("bwi", zero) - 15.0, 0.0)
    extra = extra + economics.clay_cost * np.maximum(columns.get("clays", zero) - 3.0, 0.0)
    mining = tonnes * economics.mining_cost
    milling = tonnes * (economics.processing_cost + economics.fixed_cost + extra)
    return np.column_stack((-mining, revenue - mining - milling))


def model_money(model: BlockModel, economics: Economics) -> np.ndarray:
    """(N, 2) float64 USD as waste and as ore: by prices, a formula, or the file's `value`.

    Raises:
        ConfigError: the money is stated elsewhere, and prices or costs were changed as well.
    """
    source = money_source(model, economics)
    tonnes = model.columns["ton"]
    if not source:
        return block_values(model.columns, economics)
    read = ("mining_cost",) if VALUE in model.columns else BESIDE_FORMULA
    ignored = [
        f"economics.{field.name}"
        for field in fields(economics)
        if field.name not in read and getattr(economics, field.name) != field.default
    ]
    if ignored:
        raise ConfigError(
            f"{source}, so that {', '.join(ignored)} would be ignored; leave one of both out."
        )
    if VALUE not in model.columns:
        waste = -tonnes * economics.mining_cost
        return np.column_stack((waste, formula_values(economics.formula, model.columns)))
    stated = model.columns[VALUE]
    pays = stated > 0
    waste = np.where(pays, -tonnes * economics.mining_cost, stated)
    return np.column_stack((waste, np.where(pays, stated, stated - tonnes)))


def money_source(model: BlockModel, economics: Economics) -> str:
    """What states the blocks' money in place of prices, in words; empty where prices do."""
    if VALUE in model.columns:
        return "columns.value takes each block's money from the file"
    return "economics.formula states each block's money" if economics.formula else ""


def stockpile_values(
    money: np.ndarray, tonnes: np.ndarray, economics: Economics, rate: float
) -> np.ndarray:
    """Value (N,) of stocking a block: mined now, milled `stockpile_periods` later, rehandled."""
    milled = money[:, MILL] - money[:, WASTE] - economics.stockpile_cost * tonnes
    return money[:, WASTE] + milled / (1.0 + rate) ** economics.stockpile_periods


def stockpile_limits(economics: Economics, plan: MinePlan) -> np.ndarray:
    """(T,) tonnes stocked at most: any while the ore is milled by the last period, then none.

    Raises:
        ConfigError: no period is early enough.
    """
    last = plan.periods - economics.stockpile_periods
    if last < 1:
        raise ConfigError(
            f"economics.stockpile_periods={economics.stockpile_periods} with plan.periods="
            f"{plan.periods}: stocked ore would be milled after the last period; let it wait for "
            f"fewer than {plan.periods} periods."
        )
    return np.where(np.arange(plan.periods) < last, math.inf, 0.0)


def _precedence(model: BlockModel, slopes: Slopes) -> Graph:
    """The slope graph; what is wrong with the places is said of their file."""
    try:
        return Graph(*slope_graph(slopes))
    except DataError as error:
        where = f"{model.table.path}: " if model.table is not None else ""
        raise DataError(f"{where}{error}") from error


def _same(one: Slopes | None, other: Slopes) -> bool:
    """Whether two slope rules and the places that they are for are equal."""
    names = [part.name for part in fields(Slopes)]
    return one is not None and all(
        np.array_equal(getattr(one, name), getattr(other, name)) for name in names
    )


def model_instance(
    model: BlockModel,
    economics: Economics | None = None,
    plan: MinePlan | None = None,
    name: str = "model",
    like: Instance | None = None,
) -> Instance:
    """A scheduling instance of a block model, with a waste dump, a mill, perhaps a stockpile.

    A tonne sent to the mill counts against mining and milling, one sent to the dump against mining
    only, one sent to the stockpile against a limit that closes it when its ore would come back
    after the last period. CPIT knows dump and mill; the stockpile is a third destination of PCPSP.

    Args:
        model: the blocks.
        economics: what they cost and bring.
        plan: slopes, periods and limits.
        name: of the instance.
        like: one of the same kind; where its blocks lie in the same places under the same slopes,
            places, slopes and precedence are shared with it.
    """
    economics, plan = economics or Economics(), plan or MinePlan()
    money = model_money(model, economics)
    slopes, position = plan.slopes(model), model.cell
    if like is not None and _same(like.slopes, slopes) and np.array_equal(like.position, position):
        slopes, position, graph = like.slopes, like.position, like.graph
    else:
        graph = _precedence(model, slopes)
    tonnes = model.columns["ton"]
    whole = money.max(axis=1)
    piled = economics.stockpile_cost >= 0
    if piled:
        stocked = stockpile_values(money, tonnes, economics, plan.rate)
        money = np.column_stack((money, stocked))
    use = np.zeros((*money.shape, money.shape[1]))
    use[:, :, 0] = tonnes[:, None]
    use[:, MILL, 1] = tonnes
    if piled:
        use[:, STOCKPILE, 2] = tonnes
    best = money[:, :2].argmax(axis=1)
    rows = np.arange(len(tonnes))
    pit = max_closure(whole, graph)
    moved, milled = tonnes[pit].sum(), tonnes[pit & (best == MILL)].sum()
    high = plan.limits(moved, milled, tonnes.max())
    if piled:
        high = np.vstack((high, stockpile_limits(economics, plan)))
    instance = Instance(
        name=name,
        position=position,
        graph=graph,
        value=whole,
        periods=plan.periods,
        rate=plan.rate,
        use=use[rows, best],
        low=np.zeros_like(high),
        high=high,
        destination_value=money,
        destination_use=use,
        slopes=slopes,
        fields=dict(model.columns),
    )
    vars(instance)["pit"] = pit  # found for its limits: whoever asks for it need not again
    return instance
