"""What `scripts/solve.py` takes: methods, problems, bounds and budgets as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated

from frugal_rl.errors import ConfigError
from frugal_rl.ranges import above, at_least, check_ranges
from mine_rl_npv.data.economics import Economics, MinePlan
from mine_rl_npv.data.units import Units
from mine_rl_npv.optimise.decode import Decoder
from mine_rl_npv.optimise.tight_bound import CutsConfig
from mine_rl_npv.tools.board import Board


class Method(Enum):
    """How to schedule or bound."""

    upit = "upit"
    lp = "lp"
    lp_direct = "lp_direct"
    exact = "exact"
    random = "random"
    bench = "bench"
    greedy = "greedy"
    density = "density"
    gershon = "gershon"
    ratio = "ratio"
    cone = "cone"
    pits = "pits"
    filling = "filling"
    toposort = "toposort"
    zero_shot = "zero_shot"
    """The policies of the package, learned on synthetic deposits alone: one pass, no search."""
    window = "window"
    evolution = "evolution"
    gradient = "gradient"
    best = "best"
    """Every order that one of these knows and then evolution, for `seconds` in all."""
    compare = "compare"
    """Every fast method and decoder, in a table."""


class Kind(Enum):
    """Which problem: one destination per block, or a choice."""

    cpit = "cpit"
    pcpsp = "pcpsp"


class BoundKind(Enum):
    """Which certified bound a schedule is held against."""

    lp = "lp"
    """The LP relaxation."""
    cuts = "cuts"
    """The LP's, lowered by branch and bound over the pits that fit by the end of each period."""
    auto = "auto"
    """cuts where a policy learns from the relaxation (half of `seconds` goes first), else lp."""


DECISIONS = 60  # of bound=auto where schedules are counted instead of seconds
LEARNING = (Method.evolution, Method.gradient, Method.best)
BOUNDED_BY_ITSELF = (Method.upit, Method.lp, Method.lp_direct, Method.exact)


@dataclass(frozen=True)
class Constraints:
    """What machines and the mill ask of a block model's schedule beyond slopes and capacities."""

    mining_width: float = 0.0
    """Metres; every place that is dug out is at least so wide along both axes."""
    bench_advance: int = 0
    """Benches by which a column may be deepened per period; 0 means any number."""
    blend: tuple[str, ...] = ()
    """Means of the ore milled per period, as `cu:0.4-0.9` or `clays:-3`; needs problem=pcpsp."""

    def __post_init__(self) -> None:
        if not 0 <= self.mining_width < float("inf") or self.bench_advance < 0:
            raise ConfigError(
                f"constraints.mining_width={self.mining_width} and "
                f"constraints.bench_advance={self.bench_advance} must be 0 or more."
            )


@dataclass(frozen=True)
class RiskConfig:
    """Uncertain grades of a block model: equally likely models that honour its drillholes."""

    realisations: int = 0
    """Models on which the plans are tried; 0 asks for none."""
    spacing: int = 5
    """Every so many cells along x and y a column is a drillhole, whose grades are known."""
    ranges: tuple[float, ...] = (6.0, 6.0, 3.0)
    """Cells along x, y, z over which grades resemble each other (practical range)."""
    foresight: bool = False
    """Also plan each model by the shipped policies, its grades known: what knowing would earn."""
    schedule: str = ""
    """The plan of greatest expected value as CSV with the model's own columns."""

    def __post_init__(self) -> None:
        if self.realisations < 0 or self.spacing < 2:
            raise ConfigError(
                f"risk.realisations={self.realisations}, risk.spacing={self.spacing}: 0 or more "
                "models, and drillholes 2 or more cells apart."
            )
        if len(self.ranges) != 3 or not all(0 < r < float("inf") for r in self.ranges):
            raise ConfigError(f"risk.ranges={list(self.ranges)}: three lengths in cells above 0.")
        if self.schedule and not self.realisations:
            raise ConfigError("risk.schedule needs risk.realisations=N, the models to plan for.")
        if self.foresight and not self.realisations:
            raise ConfigError("risk.foresight needs risk.realisations=N, the models to plan.")


@dataclass(frozen=True)
class SolveConfig:
    """What `scripts/solve.py` takes."""

    instance: str = "porphyry_small"
    """A bundled deposit, a .csv block model, or the path prefix of MineLib files."""
    model: str = ""
    """A block model in any table of words, whatever its ending; goes before `instance`."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """The model's name for a role (x, y, z, ton, density, cu, value, ...); the rest is guessed."""
    units: Units = field(default_factory=Units)
    """In what the model's file counts; results are in metres and tonnes."""
    block_size: tuple[float, ...] = ()
    """Metres along x, y, z of the model's blocks; empty finds them."""
    economics: Economics = field(default_factory=Economics)
    """Prices and costs of a block model; MineLib files bring their own money."""
    plan: MinePlan = field(default_factory=lambda: MinePlan(slope_levels=0))
    """Periods, rate, slopes and capacities of a block model."""
    method: Method = Method.best
    problem: Kind = Kind.cpit
    bound: BoundKind = BoundKind.auto
    bound_seconds: float = 300.0
    """Clock of bound=cuts."""
    bound_decisions: int = 0
    """Decisions of bound=cuts instead of its clock: the same bound everywhere."""
    decoder: Decoder = Decoder.two_pass
    """For priority methods: forward, two_pass or shift."""
    polish: bool = False
    """Close with group moves and an optimal prune."""
    seed: int = 0
    seconds: Annotated[float, above(0)] = 60.0
    """Clock of best (its bound below the LP's included), evolution, gradient, window and exact."""
    decodes: Annotated[int, at_least(0)] = 0
    """Schedules that best, evolution, gradient decode, not a clock: the same everywhere."""
    lp_features: bool = True
    """Whether the learned policy sees the LP relaxation."""
    threads: Annotated[int, at_least(1)] = 2
    report: str = ""
    """One HTML file with figures, pictures and the audit; empty writes none."""
    schedule: str = ""
    """The schedule as CSV with the model's own columns; empty writes none."""
    output: str = ""
    """Where to write the MineLib solution file; empty writes none."""
    pictures: str = ""
    """Folder for pictures of the schedule; empty draws none."""
    solid: str = ""
    """File for the mine in 3D by PyVista: .png, or .vtu for ParaView; empty writes none."""
    constraints: Constraints = field(default_factory=Constraints)
    risk: RiskConfig = field(default_factory=RiskConfig)
    leaderboard: str = ""
    """Folder of MineLib instances, each solved by the methods of `board`; empty solves one."""
    board: Board = field(default_factory=Board)

    def __post_init__(self) -> None:
        check_ranges(self)
        if self.decodes and self.method not in LEARNING:
            raise ConfigError(
                f"decodes={self.decodes} counts schedules of method=best, evolution and gradient; "
                f"method={self.method.value} decodes none of its own."
            )
        alone = self.method in BOUNDED_BY_ITSELF or self.problem is Kind.pcpsp
        if self.bound is BoundKind.cuts and alone:
            raise ConfigError(
                f"bound=cuts belongs to schedules of one destination per block; leave it out with "
                f"method={self.method.value} problem={self.problem.value}."
            )
        if not 0 < self.bound_seconds < float("inf") or self.bound_decisions < 0:
            raise ConfigError(
                f"bound_seconds={self.bound_seconds} must be positive, "
                f"bound_decisions={self.bound_decisions} 0 or more."
            )
        self._refuse_constraints()
        if self.block_size and (len(self.block_size) != 3 or not min(self.block_size) > 0):
            raise ConfigError(f"block_size={list(self.block_size)}: three lengths above 0.")

    def _refuse_constraints(self) -> None:
        """Raises ConfigError where a method or problem would not honour `constraints`."""
        asked, pcpsp = self.constraints, self.problem is Kind.pcpsp
        if self.economics.stockpile_cost >= 0 and not pcpsp:
            raise ConfigError(
                f"economics.stockpile_cost={self.economics.stockpile_cost:g}: a stockpile is a "
                "third destination; add problem=pcpsp."
            )
        if asked.blend and not pcpsp:
            raise ConfigError("constraints.blend decides where blocks go; add problem=pcpsp.")
        if (asked.mining_width or asked.bench_advance) and pcpsp:
            raise ConfigError(
                "constraints.mining_width and constraints.bench_advance belong to problem=cpit."
            )
        deaf = (*BOUNDED_BY_ITSELF, Method.window)
        if (asked.mining_width or asked.bench_advance) and self.method in deaf:
            raise ConfigError(
                f"method={self.method.value} knows no constraints.mining_width and no "
                "constraints.bench_advance; use method=best or an order."
            )
        if asked != Constraints() and self.risk.foresight:
            raise ConfigError("risk.foresight knows no constraints.*; leave it out.")
        if (asked.mining_width or asked.bench_advance) and self.bound is BoundKind.cuts:
            raise ConfigError("bound=cuts knows no constraints.*; leave it out.")

    @property
    def cuts(self) -> CutsConfig | None:
        """The budget of a bound below the LP's; None for the LP's."""
        if self.bound is BoundKind.cuts:
            return CutsConfig(self.bound_seconds, self.bound_decisions, self.threads)
        sees_it = self.method in LEARNING and self.lp_features and self.problem is Kind.cpit
        if self.bound is BoundKind.lp or not sees_it:
            return None
        counted = self.bound_decisions or DECISIONS * bool(self.decodes)
        return CutsConfig(min(self.bound_seconds, self.seconds / 2), counted, self.threads)

    @property
    def search_seconds(self) -> float:
        """Clock of the search: best spends what its bound leaves, others all of `seconds`."""
        bounded = self.cuts is not None and self.bound is BoundKind.auto
        return self.seconds / 2 if self.method is Method.best and bounded else self.seconds
