"""From a method's name to a schedule: one order, the best of several, or a learned one."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from mine_rl_npv.data.instance import NEVER
from mine_rl_npv.optimise import orders
from mine_rl_npv.optimise.bound import LARGE_BLOCKS
from mine_rl_npv.optimise.decode import prune
from mine_rl_npv.optimise.destinations import best_destinations, without_losses
from mine_rl_npv.optimise.pits import nested_pit_order
from mine_rl_npv.optimise.window import slide_windows
from mine_rl_npv.priority.features import block_features
from mine_rl_npv.priority.search import evolve
from mine_rl_npv.priority.shipped import shipped_orders
from mine_rl_npv.priority.task import Mine, PriorityTask
from mine_rl_npv.tools.reworking import Heard, Shares, rework_best
from mine_rl_npv.tools.solve_config import LEARNING, Method, SolveConfig

if TYPE_CHECKING:
    from mine_rl_npv.data.instance import Instance
    from mine_rl_npv.optimise.bound import Bound
    from mine_rl_npv.optimise.decode import Schedule
    from mine_rl_npv.optimise.problem import Problem
    from mine_rl_npv.priority.watch import Watch


def schedule(
    problem: Problem, bound: Bound, config: SolveConfig, watch: Watch | None = None
) -> tuple[Schedule, str]:
    """A feasible plan by the chosen method, and which order it came from ("" for the only one)."""
    if config.method is Method.best:
        return _best(problem, bound, config, watch)
    mine = _mine(problem, bound)
    if config.method in LEARNING:
        mine = replace(mine, features=_features(problem, bound, config))
        plan = mine.decode(_learned_priority(mine, config, watch), config.decoder)
    else:
        plans = [mine.decode(key, config.decoder) for key in _keys(problem, bound, config).values()]
        plan = max(plans, key=mine.worth)
    if config.method is Method.window:
        slide_windows(problem, plan, seconds=config.seconds)
    if config.polish:
        mine.polish(plan)
    return plan, ""


def _best(
    problem: Problem, bound: Bound, config: SolveConfig, watch: Watch | None
) -> tuple[Schedule, str]:
    """The best of TopoSort's orders, filling pits, cones, shipped policies and evolution, reworked.

    Large mines keep to TopoSort and cones; plans that keep a pace are not reworked.
    """
    mine, heard = _mine(problem, bound), Heard(watch)
    large = problem.blocks > LARGE_BLOCKS
    reworked = not large and problem.pace is None
    keys = {"cone": orders.cone_order(problem), **_named("toposort", problem, bound)}
    features = None if large else _features(problem, bound, config)
    if features is not None:
        keys |= _named("filling", problem, bound) | shipped_orders(features)
    found, each = _decoded(mine, keys, config)
    shares = Shares.of(config, each)
    if features is not None:
        learner = replace(mine, features=features)
        asked = shares if reworked else None
        keys["evolution"] = _learned_priority(learner, config, heard, asked)
        found["evolution"] = mine.decode(keys["evolution"], config.decoder)
    name = max(found, key=lambda one: mine.worth(found[one]))
    plan = found[name]
    if config.polish or not large:
        mine.polish(plan)
    else:
        prune(problem, plan)
    if reworked:
        rework_best(mine, plan, keys[name], config, shares, heard)
        mine.polish(plan)
    return plan, name


def _decoded(
    mine: Mine, keys: dict[str, np.ndarray], config: SolveConfig
) -> tuple[dict[str, Schedule], float]:
    """The plan of each order, and the seconds that one took: the median, as the first compiles."""
    found: dict[str, Schedule] = {}
    spent: list[float] = []
    for name, key in keys.items():
        started = time.perf_counter()
        found[name] = mine.decode(key, config.decoder)
        spent.append(time.perf_counter() - started)
    return found, float(np.median(spent))


def _named(name: str, problem: Problem, bound: Bound) -> dict[str, np.ndarray]:
    of = {
        "filling": lambda: orders.filling_orders(problem),
        "toposort": lambda: orders.toposort_orders(problem, bound),
    }
    return {f"{name} {key}": order for key, order in of[name]().items()}


def _mine(problem: Problem, bound: Bound) -> Mine:
    return Mine(problem, np.empty((problem.blocks, 0), np.float32), bound)


def _features(problem: Problem, bound: Bound, config: SolveConfig) -> np.ndarray:
    return block_features(problem, bound if config.lp_features else None)


def _learned_priority(
    mine: Mine, config: SolveConfig, watch: Watch | None, shares: Shares | None = None
) -> np.ndarray:
    """Priorities (m,) learned on this mine for the search's whole budget, or its share of it."""
    task = PriorityTask([mine], config.decoder, config.threads)
    seconds, decodes = config.search_seconds, config.decodes
    if shares is not None:
        seconds, decodes = shares.search_seconds, shares.search_decodes
    seed = config.seed
    try:
        if config.method is not Method.gradient:
            learned = evolve([mine], task, seconds, seed, watch=watch, decodes=decodes)
            return learned.net.scores(learned.weights, mine.features)
        from mine_rl_npv.priority.gradient import ascend  # imports torch

        found = ascend([mine], task, seconds, seed, decodes=decodes, watch=watch)
        return found.priority(mine.features)
    finally:
        task.close()


def _keys(problem: Problem, bound: Bound, config: SolveConfig) -> dict[str, np.ndarray]:
    """Priorities (m,) by name of a method that learns nothing."""
    simple = {
        Method.bench: orders.bench_order,
        Method.greedy: orders.value_order,
        Method.density: orders.density_order,
        Method.gershon: orders.gershon_order,
        Method.ratio: orders.ratio_order,
        Method.cone: orders.cone_order,
        Method.pits: nested_pit_order,
    }
    if config.method in simple:
        return {"": simple[config.method](problem)}
    if config.method is Method.random:
        return {"": orders.random_order(problem, config.seed)}
    if config.method is Method.filling:
        return orders.filling_orders(problem)
    if config.method is Method.zero_shot:
        return shipped_orders(block_features(problem))
    return orders.toposort_orders(problem, bound)


def plan_shares(problem: Problem, plan: Schedule, instance: Instance | None = None) -> np.ndarray:
    """A plan as shares (n, D, T); with a choice of destinations, the best ones for its periods.

    Args:
        problem: what was scheduled.
        plan: of the pit's blocks.
        instance: with side rows that the problem leaves out; None: the problem's own.
    """
    instance = instance or problem.instance
    period = problem.whole(plan.period)
    if problem.choice:
        shares = best_destinations(instance, period, problem.sent(plan.destination))
        return without_losses(instance, shares)
    shares = np.zeros((instance.blocks, 1, instance.periods))
    mined = np.flatnonzero(period != NEVER)
    shares[mined, 0, period[mined]] = 1.0
    return shares
