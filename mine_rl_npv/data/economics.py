"""Money of a block model: raw grades in, dollars by destination out, and a scheduling instance."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

from frugal_rl.errors import ConfigError, DataError
from mine_rl_npv.data.instance import Graph, Instance
from mine_rl_npv.data.roles import VALUE
from mine_rl_npv.optimise.closure import max_closure
from mine_rl_npv.slopes.cone import PATTERNS, Slopes, runs_by_azimuth
from mine_rl_npv.slopes.graph import slope_graph

if TYPE_CHECKING:
    from mine_rl_npv.data.block_model import BlockModel

POUNDS_PER_TONNE = 2204.62
WASTE, MILL, STOCKPILE = 0, 1, 2
MANY_BLOCKS, FEWER_LEVELS = 30_000, 8


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
    """Periods that ore waits on the stockpile, where it needs no mill capacity."""

    def __post_init__(self) -> None:
        for field in fields(self):
            number = getattr(self, field.name)
            low = -math.inf if field.name == "stockpile_cost" else 0
            if not (low <= number < math.inf) or math.isinf(number):
                raise ConfigError(f"economics.{field.name} is {number}; it must be 0 or more.")
        if self.recovery > 1:
            raise ConfigError(f"economics.recovery is {self.recovery}; it is a share, at most 1.")


@dataclass(frozen=True)
class MinePlan:
    """How a block model becomes a scheduling instance."""

    periods: int = 10
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

    def __post_init__(self) -> None:
        if self.periods < 1 or not -1 < self.rate < math.inf or not 0 < self.slope_degrees < 90:
            raise ConfigError(
                f"periods={self.periods}, rate={self.rate}, slope_degrees={self.slope_degrees}: "
                "periods must be 1 or more, the rate above -1, the slope between 0 and 90."
            )
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
    """(N, 2) float64 USD as waste and as ore: by the formula, or as the file's `value` states.

    Raises:
        ConfigError: the file states values, and prices or costs were changed as well.
    """
    if VALUE not in model.columns:
        return block_values(model.columns, economics)
    kept = Economics(mining_cost=economics.mining_cost)
    if economics != kept:
        raise ConfigError(
            "columns.value takes each block's money from the file, so that economics.* (other than "
            "mining_cost, for waste) would be ignored; leave one of both out."
        )
    stated, tonnes = model.columns[VALUE], model.columns["ton"]
    pays = stated > 0
    waste = np.where(pays, -tonnes * economics.mining_cost, stated)
    return np.column_stack((waste, np.where(pays, stated, stated - tonnes)))


def stockpile_values(
    money: np.ndarray, tonnes: np.ndarray, economics: Economics, rate: float
) -> np.ndarray:
    """Value (N,) of stocking a block: mined now, milled `stockpile_periods` later, rehandled."""
    milled = money[:, MILL] - money[:, WASTE] - economics.stockpile_cost * tonnes
    return money[:, WASTE] + milled / (1.0 + rate) ** economics.stockpile_periods


def _precedence(model: BlockModel, slopes: Slopes) -> Graph:
    """The slope graph; what is wrong with the places is said of their file."""
    try:
        return Graph(*slope_graph(slopes))
    except DataError as error:
        where = f"{model.table.path}: " if model.table is not None else ""
        raise DataError(f"{where}{error}") from error


def model_instance(
    model: BlockModel,
    economics: Economics | None = None,
    plan: MinePlan | None = None,
    name: str = "model",
) -> Instance:
    """A scheduling instance of a block model, with a waste dump, a mill, perhaps a stockpile.

    A tonne sent to the mill counts against mining and milling, any other against mining only. CPIT
    knows dump and mill; the stockpile is a third destination of PCPSP.
    """
    economics, plan = economics or Economics(), plan or MinePlan()
    money = model_money(model, economics)
    slopes = plan.slopes(model)
    graph = _precedence(model, slopes)
    tonnes = model.columns["ton"]
    whole = money.max(axis=1)
    if economics.stockpile_cost >= 0:
        stocked = stockpile_values(money, tonnes, economics, plan.rate)
        money = np.column_stack((money, stocked))
    use = np.zeros((*money.shape, 2))
    use[:, :, 0] = tonnes[:, None]
    use[:, MILL, 1] = tonnes
    best = money[:, :2].argmax(axis=1)
    rows = np.arange(len(tonnes))
    pit = max_closure(whole, graph)
    moved, milled = tonnes[pit].sum(), tonnes[pit & (best == MILL)].sum()
    mining = plan.mining_rate or max(1.15 * moved / plan.periods, tonnes.max())
    milling = plan.milling_rate or max(1.05 * milled / plan.periods, tonnes.max())
    high = np.repeat([[np.ceil(mining)], [np.ceil(milling)]], plan.periods, axis=1)
    return Instance(
        name=name,
        position=model.cell,
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
