"""One door to every method: `solve(instance, config)` gives a checked schedule or bound."""

from __future__ import annotations

import resource
import time
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path

import numpy as np

from frugal_rl.errors import ConfigError
from mine_rl_npv.data.bundled import open_instance
from mine_rl_npv.data.instance import NEVER, Instance
from mine_rl_npv.data.solutions import period_of, write_pit
from mine_rl_npv.data.whole_files import write_whole
from mine_rl_npv.optimise import orders
from mine_rl_npv.optimise.bound import Bound, relaxation
from mine_rl_npv.optimise.check import Verdict, check_shares
from mine_rl_npv.optimise.closure import max_closure
from mine_rl_npv.optimise.decode import Schedule, list_schedule
from mine_rl_npv.optimise.destinations import best_destinations
from mine_rl_npv.optimise.exact import direct_relaxation, exact_schedule
from mine_rl_npv.optimise.problem import Problem, prepare
from mine_rl_npv.optimise.window import slide_windows
from mine_rl_npv.priority.features import block_features
from mine_rl_npv.priority.search import evolve
from mine_rl_npv.priority.task import Decoder, Mine, PriorityTask


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


@dataclass(frozen=True)
class SolveConfig:
    """What `scripts/solve.py` takes."""

    instance: str = "porphyry_small"
    """A bundled deposit, a .csv block model, or the path prefix of MineLib files."""
    method: Method = Method.toposort
    problem: Kind = Kind.cpit
    decoder: Decoder = Decoder.two_pass
    """For priority methods: forward, two_pass or shift."""
    polish: bool = False
    """Close with group moves and an optimal prune."""
    seed: int = 0
    seconds: float = 60.0
    """Clock of evolution, window and exact."""
    lp_features: bool = True
    """Whether the learned policy sees the LP relaxation."""
    threads: int = 2
    output: str = ""
    """Where to write the MineLib solution file; empty writes none."""
    pictures: str = ""
    """Folder for pictures of the schedule; empty draws none."""
    solid: str = ""
    """File for the mine in 3D by PyVista: .png, or .vtu for ParaView; empty writes none."""

    def __post_init__(self) -> None:
        if self.seconds <= 0 or self.threads < 1:
            raise ConfigError(
                f"seconds={self.seconds} and threads={self.threads} must both be positive."
            )


@dataclass(frozen=True)
class Solution:
    """A schedule with its certificate."""

    instance: Instance
    method: str
    shares: np.ndarray | None
    """(n, D, T) float64; None where the method gives a bound or a pit only."""
    verdict: Verdict
    upper: float
    """Certified bound; nan where none was computed."""
    seconds: float
    bound_seconds: float
    pit: np.ndarray | None = None
    notes: tuple[str, ...] = field(default=())

    @property
    def gap_percent(self) -> float:
        """100 (bound - value) / bound."""
        return 100.0 * (self.upper - self.verdict.value) / abs(self.upper)

    def report(self) -> str:
        """The lines that the script prints; values with all their digits."""
        lines = [
            f"instance   {self.instance.name} ({self.instance.blocks} blocks, "
            f"{self.instance.graph.arcs} arcs, {self.instance.periods} periods)",
            f"method     {self.method}",
            f"value      {self.verdict.value!r}",
            f"bound      {self.upper!r}",
            f"gap        {self.gap_percent:.4f} %",
            f"time       {self.seconds:.3f} s (bound {self.bound_seconds:.3f} s)",
            f"memory     {peak_mib():.0f} MiB peak",
            f"feasible   {'yes' if self.verdict.feasible else '; '.join(self.verdict.faults)}",
            f"slopes     {self.slopes_line()}",
        ]
        return "\n".join([*lines, *self.notes])

    def slopes_line(self) -> str:
        """The audit in one line, or why there is none."""
        if self.verdict.slopes is not None:
            return self.verdict.slopes.line()
        if self.instance.slopes is None:
            return "not audited: this instance lists precedences, no angles"
        return "not audited: a pit or bound alone"


def peak_mib() -> float:
    """Peak resident memory of this process in MiB (Linux counts in KiB)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def run(config: SolveConfig) -> Solution:
    """Opens the instance, solves it, and writes what was asked for."""
    solution = solve(open_instance(config.instance), config)
    if config.pictures and solution.shares is not None:
        from mine_rl_npv.tools.views import draw_schedule  # imports matplotlib

        draw_schedule(solution.instance, solution.shares, config.pictures)
    if config.solid and solution.shares is not None:
        from mine_rl_npv.tools.solid import save_solid  # imports PyVista

        save_solid(solution.instance, period_of(solution.shares), config.solid)
    if config.output:
        write_solution(solution, config.output)
    return solution


def solve(instance: Instance, config: SolveConfig) -> Solution:
    """Applies one method; every schedule passes the independent checker."""
    if config.method is Method.upit:
        return _ultimate_pit(instance, config)
    choice = config.problem is Kind.pcpsp
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
    if config.method is Method.lp:
        verdict = check_shares(instance, bound.fractions, slack=1e-6)
        return Solution(
            instance, "lp", bound.fractions, verdict, bound.upper, bound.seconds, bound.seconds
        )
    if config.method is Method.compare:
        return _compared(instance, bound, config)
    return _scheduled(instance, bound, config)


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


def _scheduled(instance: Instance, bound: Bound, config: SolveConfig) -> Solution:
    """One method's schedule, checked."""
    choice = config.problem is Kind.pcpsp
    started = time.perf_counter()
    problem = prepare(instance, choice, bound.prices)
    plan = _schedule(problem, bound, config)
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
    )


def _name(config: SolveConfig) -> str:
    tail = " + polish" if config.polish else ""
    return f"{config.method.value} ({config.decoder.value}){tail}"


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


def _schedule(problem: Problem, bound: Bound, config: SolveConfig) -> Schedule:
    mine = Mine(problem, np.empty((problem.blocks, 0), np.float32), bound)
    if config.method in (Method.evolution, Method.gradient):
        features = block_features(problem, bound if config.lp_features else None)
        mine = Mine(problem, features, bound)
        plan = mine.decode(_learned_priority(mine, config), config.decoder)
    else:
        keys = _keys(problem, bound, config)
        plans = [mine.decode(key, config.decoder) for key in keys]
        plan = max(plans, key=mine.worth)
    if config.method is Method.window:
        slide_windows(problem, plan, seconds=config.seconds)
    if config.polish:
        mine.polish(plan)
    return plan


def _learned_priority(mine: Mine, config: SolveConfig) -> np.ndarray:
    """Priorities (m,) learned on this mine for `config.seconds`."""
    task = PriorityTask([mine], config.decoder, config.threads)
    try:
        if config.method is Method.evolution:
            learned = evolve([mine], task, config.seconds, config.seed)
            return learned.net.scores(learned.weights, mine.features)
        from mine_rl_npv.priority.gradient import ascend  # imports torch

        return ascend([mine], task, config.seconds, config.seed).priority(mine.features)
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


def write_solution(solution: Solution, path: str | Path) -> None:
    """Writes the MineLib solution file: `block destination period fraction`, or the pit's ids."""
    if solution.pit is not None:
        write_pit(solution.pit, path)
        return
    rows = np.argwhere(solution.shares > 5e-7)
    write_whole(
        Path(path),
        (f"{b} {d} {t} {solution.shares[b, d, t]:.6f}" for b, d, t in rows.tolist()),
    )


__all__ = ["Kind", "Method", "Solution", "SolveConfig", "list_schedule", "run", "solve"]
