"""One door to every method: `solve(instance, config)` gives a checked schedule or bound."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from frugal_rl.doing import doing
from mine_rl_npv.data.blending import by_period_alone
from mine_rl_npv.optimise.bound import LARGE_BLOCKS, Bound, relaxation
from mine_rl_npv.optimise.check import Verdict, check_shares
from mine_rl_npv.optimise.closure import paying_pit
from mine_rl_npv.optimise.decode import Decoder
from mine_rl_npv.optimise.exact import direct_relaxation, exact_schedule, may_split
from mine_rl_npv.optimise.problem import prepare
from mine_rl_npv.optimise.tight_bound import tighten
from mine_rl_npv.tools.methods import plan_shares, schedule
from mine_rl_npv.tools.solution import Solution, peak_mib, too_heavy
from mine_rl_npv.tools.solve_config import BoundKind, Kind, Method, SolveConfig

if TYPE_CHECKING:
    from mine_rl_npv.data.instance import Instance
    from mine_rl_npv.priority.watch import Watch


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
    if direct:
        return _direct(instance, config)
    free = _without_side_rows(instance, choice)
    bound = relaxation(free, choice)
    if bound.upper == 0 and instance.without_limits_below():
        return _nothing_pays(instance, config, bound.seconds)
    if config.method is Method.lp:
        verdict = check_shares(instance, bound.fractions, 1e-6, choice)
        return Solution(
            instance, "lp", bound.fractions, verdict, bound.upper, bound.seconds, bound.seconds
        )
    told: list[str] = []
    cuts = config.cuts
    wanted = config.bound is BoundKind.cuts or instance.blocks <= LARGE_BLOCKS
    if cuts is not None and wanted:
        with doing("lowering the bound"):
            bound, line = tighten(instance, bound, cuts)
        told.append(line)
    if config.method is Method.compare:
        solution = _compared(instance, bound, config)
    else:
        solution = _scheduled(instance, bound, config, watch)
    if free is not instance:
        told.append(
            f"bound      is that of the mine without its {len(instance.general.low)} side rows "
            "(blending), which the schedule keeps"
        )
    return replace(solution, notes=(*solution.notes, *told))


def _without_side_rows(instance: Instance, choice: bool) -> Instance:
    """The instance as orders schedule it: side rows of single periods are left to destinations.

    A destination that no row knows must be left, which any block may go to.
    """
    rows = instance.general
    apart = choice and rows is not None and by_period_alone(rows)
    apart = apart and len(np.unique(rows.destination)) < instance.destinations
    return replace(instance, general=None) if apart else instance


def _direct(instance: Instance, config: SolveConfig) -> Solution:
    """HiGHS's answer in one piece: the LP, or branch and bound."""
    choice = config.problem is Kind.pcpsp
    if config.method is Method.lp_direct:
        result = direct_relaxation(instance, choice)
        verdict, notes = check_shares(instance, result.shares, 1e-6, choice), ()
    else:
        result = exact_schedule(instance, config.seconds, destinations=choice)
        verdict = check_shares(instance, result.shares, choice=choice)
        notes = ("proven optimal" if result.proven else "time limit reached",)
        if choice and not may_split(instance):
            notes += ("among plans that send each block whole to one destination",)
    name, spent = config.method.value, result.seconds
    return Solution(instance, name, result.shares, verdict, result.upper, spent, 0.0, notes=notes)


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
    problem = prepare(_without_side_rows(instance, choice), choice, bound.prices)
    plan, order = schedule(problem, bound, config, watch)
    shares = plan_shares(problem, plan, instance)
    spent = time.perf_counter() - started
    return Solution(
        instance,
        _name(config, order),
        shares,
        check_shares(instance, shares, choice=choice),
        bound.upper,
        spent,
        bound.seconds,
        notes=_notes(instance, choice, shares),
    )


def _notes(instance: Instance, choice: bool, shares: np.ndarray) -> tuple[str, ...]:
    """Why blocks that pay are left: those that no period has room for, and an empty plan."""
    empty = () if shares.any() else ("nothing    is mined: no paying pit fits the capacities",)
    return (*empty, *too_heavy(instance, choice))


def _name(config: SolveConfig, order: str) -> str:
    tail = " + polish" if config.polish else ""
    found = f": {order}" if order else ""
    return f"{config.method.value}{found} ({config.decoder.value}){tail}"


def _some_pit_pays(instance: Instance, choice: bool) -> bool:
    value = instance.destination_value.max(axis=1) if choice else instance.value
    return bool(paying_pit(value, instance.discount, instance.graph).any())


def _nothing_pays(instance: Instance, config: SolveConfig, bound_seconds: float) -> Solution:
    """The plain answer for a mine whose best pit is none."""
    choice = config.problem is Kind.pcpsp
    best = instance.destination_value if choice else instance.value[:, None]
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
        check_shares(instance, shares, choice=choice),
        0.0,
        0.0,
        bound_seconds,
        notes=(why,),
    )


def _ultimate_pit(instance: Instance, config: SolveConfig) -> Solution:
    started = time.perf_counter()
    pit = instance.pit
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
