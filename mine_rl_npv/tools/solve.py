"""One door to every method: `solve(instance, config)` gives a checked schedule or bound."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from frugal_rl.doing import doing
from frugal_rl.errors import ConfigError
from mine_rl_npv.data.economics import Economics, MinePlan
from mine_rl_npv.data.instance import NEVER, Instance
from mine_rl_npv.optimise import orders
from mine_rl_npv.optimise.bound import Bound, relaxation
from mine_rl_npv.optimise.check import Verdict, check_shares
from mine_rl_npv.optimise.closure import max_closure
from mine_rl_npv.optimise.destinations import best_destinations
from mine_rl_npv.optimise.exact import direct_relaxation, exact_schedule
from mine_rl_npv.optimise.problem import Problem, prepare
from mine_rl_npv.optimise.tight_bound import CutsConfig, tighten
from mine_rl_npv.optimise.window import slide_windows
from mine_rl_npv.priority.features import block_features
from mine_rl_npv.priority.search import evolve
from mine_rl_npv.priority.task import Decoder, Mine, PriorityTask
from mine_rl_npv.tools.board import Board
from mine_rl_npv.tools.solution import Solution, peak_mib

if TYPE_CHECKING:
    from mine_rl_npv.optimise.decode import Schedule
    from mine_rl_npv.priority.watch import Watch


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
    window = "window"
    evolution = "evolution"
    gradient = "gradient"
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
LEARNING = (Method.evolution, Method.gradient)
BOUNDED_BY_ITSELF = (Method.upit, Method.lp, Method.lp_direct, Method.exact)


@dataclass(frozen=True)
class SolveConfig:
    """What `scripts/solve.py` takes."""

    instance: str = "porphyry_small"
    """A bundled deposit, a .csv block model, or the path prefix of MineLib files."""
    model: str = ""
    """A block model in any table of words, whatever its ending; goes before `instance`."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """The model's name for a role (x, y, z, ton, density, cu, value, ...); the rest is guessed."""
    block_size: tuple[float, ...] = ()
    """Metres along x, y, z of the model's blocks; empty finds them."""
    economics: Economics = field(default_factory=Economics)
    """Prices and costs of a block model; MineLib files bring their own money."""
    plan: MinePlan = field(default_factory=lambda: MinePlan(slope_levels=0))
    """Periods, rate, slopes and capacities of a block model."""
    method: Method = Method.toposort
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
    seconds: float = 60.0
    """Clock of evolution, gradient, window and exact."""
    decodes: int = 0
    """Schedules that evolution and gradient decode instead of a clock: the same everywhere."""
    lp_features: bool = True
    """Whether the learned policy sees the LP relaxation."""
    threads: int = 2
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
    leaderboard: str = ""
    """Folder of MineLib instances, each solved by the methods of `board`; empty solves one."""
    board: Board = field(default_factory=Board)

    def __post_init__(self) -> None:
        if not 0 < self.seconds < float("inf") or self.threads < 1 or self.decodes < 0:
            raise ConfigError(
                f"seconds={self.seconds} and threads={self.threads} must both be positive, "
                f"decodes={self.decodes} 0 or more."
            )
        if self.decodes and self.method not in LEARNING:
            raise ConfigError(
                f"decodes={self.decodes} counts schedules of method=evolution and method=gradient; "
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
        if self.block_size and (len(self.block_size) != 3 or not min(self.block_size) > 0):
            raise ConfigError(f"block_size={list(self.block_size)}: three lengths above 0.")

    @property
    def cuts(self) -> CutsConfig | None:
        """The budget of a bound below the LP's; None for the LP's."""
        if self.bound is BoundKind.cuts:
            return CutsConfig(self.bound_seconds, self.bound_decisions)
        sees_it = self.method in LEARNING and self.lp_features and self.problem is Kind.cpit
        if self.bound is BoundKind.lp or not sees_it:
            return None
        counted = self.bound_decisions or DECISIONS * bool(self.decodes)
        return CutsConfig(min(self.bound_seconds, self.seconds / 2), counted)


def solve(instance: Instance, config: SolveConfig, watch: Watch | None = None) -> Solution:
    """Applies one method; every schedule passes the independent checker.

    Args:
        instance: the mine.
        config: method and budget.
        watch: told how a search goes on.
    """
    if config.method is Method.upit:
        return _ultimate_pit(instance, config)
    choice = config.problem is Kind.pcpsp
    direct = config.method in (Method.lp_direct, Method.exact)
    if direct and instance.without_limits_below() and not _some_pit_pays(instance, choice):
        return _nothing_pays(instance, config, 0.0)
    if config.method is Method.lp_direct:
        result = direct_relaxation(instance, choice)
        verdict = check_shares(instance, result.shares, slack=1e-6)
        return Solution(
            instance, "lp_direct", result.shares, verdict, result.upper, result.seconds, 0.0
        )
    if config.method is Method.exact:
        result = exact_schedule(instance, config.seconds, destinations=choice)
        verdict = check_shares(instance, result.shares)
        note = "proven optimal" if result.proven else "time limit reached"
        return Solution(
            instance,
            "exact",
            result.shares,
            verdict,
            result.upper,
            result.seconds,
            0.0,
            notes=(note,),
        )
    bound = relaxation(instance, choice)
    if bound.upper == 0 and instance.without_limits_below():
        return _nothing_pays(instance, config, bound.seconds)
    if config.method is Method.lp:
        verdict = check_shares(instance, bound.fractions, slack=1e-6)
        return Solution(
            instance, "lp", bound.fractions, verdict, bound.upper, bound.seconds, bound.seconds
        )
    told: list[str] = []
    if config.cuts is not None:
        with doing("lowering the bound"):
            bound, line = tighten(instance, bound, config.cuts)
        told.append(line)
    if config.method is Method.compare:
        solution = _compared(instance, bound, config)
    else:
        solution = _scheduled(instance, bound, config, watch)
    return replace(solution, notes=(*solution.notes, *told))


FAST = (
    Method.random,
    Method.bench,
    Method.greedy,
    Method.density,
    Method.gershon,
    Method.ratio,
    Method.cone,
    Method.pits,
    Method.filling,
    Method.toposort,
)


def _compared(instance: Instance, bound: Bound, config: SolveConfig) -> Solution:
    """The best of every fast method in every decoder; the notes hold the table of all."""
    found = {}
    for method in FAST:
        for decoder in Decoder:
            one = replace(config, method=method, decoder=decoder)
            found[f"{method.value} ({decoder.value})"] = _scheduled(instance, bound, one)
    rows = {
        name: {"value": s.verdict.value, "seconds": s.seconds, "mib": peak_mib()}
        for name, s in found.items()
    }
    if config.pictures:
        from mine_rl_npv.tools.views import method_table, save  # imports matplotlib

        save(method_table(rows, bound.upper), Path(config.pictures) / "methods.png")
    order = sorted(found, key=lambda name: -found[name].verdict.value)
    lines = [f"{'method':24s} {'NPV':>22s} {'gap %':>9s} {'seconds':>9s}"]
    lines += [
        f"{name:24s} {found[name].verdict.value:22,.2f} {found[name].gap_percent:9.3f} "
        f"{found[name].seconds:9.3f}"
        for name in order
    ]
    return replace(found[order[0]], notes=tuple(lines))


def _scheduled(
    instance: Instance, bound: Bound, config: SolveConfig, watch: Watch | None = None
) -> Solution:
    """One method's schedule, checked."""
    choice = config.problem is Kind.pcpsp
    started = time.perf_counter()
    problem = prepare(instance, choice, bound.prices)
    plan = _schedule(problem, bound, config, watch)
    shares = plan_shares(problem, plan)
    spent = time.perf_counter() - started
    return Solution(
        instance,
        _name(config),
        shares,
        check_shares(instance, shares),
        bound.upper,
        spent,
        bound.seconds,
        notes=() if shares.any() else ("nothing    is mined: no paying pit fits the capacities",),
    )


def _name(config: SolveConfig) -> str:
    tail = " + polish" if config.polish else ""
    return f"{config.method.value} ({config.decoder.value}){tail}"


def _some_pit_pays(instance: Instance, choice: bool) -> bool:
    value = instance.destination_value.max(axis=1) if choice else instance.value
    return bool(max_closure(value, instance.graph).any())


def _nothing_pays(instance: Instance, config: SolveConfig, bound_seconds: float) -> Solution:
    """The plain answer for a mine whose best pit is none."""
    best = instance.destination_value if config.problem is Kind.pcpsp else instance.value[:, None]
    shares = np.zeros((instance.blocks, best.shape[1], instance.periods))
    positive = int((best.max(axis=1) > 0).sum())
    why = (
        f"nothing    pays: the best pit is empty. {positive} of {instance.blocks} blocks are worth "
        f"mining by themselves (the best earns {best.max():,.2f}), none pays for what lies above it"
    )
    return Solution(
        instance,
        config.method.value,
        shares,
        check_shares(instance, shares),
        0.0,
        0.0,
        bound_seconds,
        notes=(why,),
    )


def _ultimate_pit(instance: Instance, config: SolveConfig) -> Solution:
    started = time.perf_counter()
    pit = max_closure(instance.value, instance.graph)
    spent = time.perf_counter() - started
    value = float(np.sum(instance.value[pit]))
    return Solution(
        instance,
        "upit",
        None,
        Verdict(value, ()),
        value,
        spent,
        0.0,
        pit,
        (f"pit        {int(pit.sum())} blocks",),
    )


def _schedule(
    problem: Problem, bound: Bound, config: SolveConfig, watch: Watch | None = None
) -> Schedule:
    mine = Mine(problem, np.empty((problem.blocks, 0), np.float32), bound)
    if config.method in LEARNING:
        features = block_features(problem, bound if config.lp_features else None)
        mine = Mine(problem, features, bound)
        plan = mine.decode(_learned_priority(mine, config, watch), config.decoder)
    else:
        keys = _keys(problem, bound, config)
        plans = [mine.decode(key, config.decoder) for key in keys]
        plan = max(plans, key=mine.worth)
    if config.method is Method.window:
        slide_windows(problem, plan, seconds=config.seconds)
    if config.polish:
        mine.polish(plan)
    return plan


def _learned_priority(mine: Mine, config: SolveConfig, watch: Watch | None) -> np.ndarray:
    """Priorities (m,) learned on this mine for `config.seconds`."""
    task = PriorityTask([mine], config.decoder, config.threads)
    budget = {"decodes": config.decodes, "watch": watch}
    try:
        if config.method is Method.evolution:
            learned = evolve([mine], task, config.seconds, config.seed, **budget)
            return learned.net.scores(learned.weights, mine.features)
        from mine_rl_npv.priority.gradient import ascend  # imports torch

        return ascend([mine], task, config.seconds, config.seed, **budget).priority(mine.features)
    finally:
        task.close()


def _keys(problem: Problem, bound: Bound, config: SolveConfig) -> list[np.ndarray]:
    simple = {
        Method.bench: orders.bench_order,
        Method.greedy: orders.value_order,
        Method.density: orders.density_order,
        Method.gershon: orders.gershon_order,
        Method.ratio: orders.ratio_order,
        Method.cone: orders.cone_order,
        Method.pits: orders.nested_pit_order,
    }
    if config.method in simple:
        return [simple[config.method](problem)]
    if config.method is Method.random:
        return [orders.random_order(problem, config.seed)]
    if config.method is Method.filling:
        return list(orders.filling_orders(problem).values())
    return list(orders.toposort_orders(problem, bound).values())


def plan_shares(problem: Problem, plan: Schedule) -> np.ndarray:
    """A plan as shares (n, D, T); with a choice of destinations, the best ones for its periods."""
    instance = problem.instance
    period = problem.whole(plan.period)
    sent = np.zeros(instance.blocks, np.int64)
    sent[problem.inside] = plan.destination
    if problem.value.shape[1] > 1:
        return best_destinations(instance, period, sent)
    shares = np.zeros((instance.blocks, 1, instance.periods))
    mined = np.flatnonzero(period != NEVER)
    shares[mined, 0, period[mined]] = 1.0
    return shares
