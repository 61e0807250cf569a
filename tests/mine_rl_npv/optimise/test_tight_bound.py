"""Bounds below the LP relaxation: against exact optima, by brute force, and their certificates."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from frugal_rl.errors import ConfigError
from mine_rl_npv.data.instance import Graph
from mine_rl_npv.data.synthetic import varied_instance
from mine_rl_npv.optimise import closure, limited_pit
from mine_rl_npv.optimise.bound import relaxation
from mine_rl_npv.optimise.decode import list_schedule
from mine_rl_npv.optimise.exact import exact_schedule
from mine_rl_npv.optimise.limited_pit import LimitedPit
from mine_rl_npv.optimise.orders import toposort_orders
from mine_rl_npv.optimise.problem import prepare
from mine_rl_npv.optimise.tight_bound import CutsConfig, tighten
from mine_rl_npv.tools.solve import solve
from mine_rl_npv.tools.solve_config import BoundKind, Kind, Method, SolveConfig

BUDGET = CutsConfig(decisions=24)


def tiny(seed, growing=False):
    """Small enough to be proven optimal in a second; `growing` capacities bind period by period."""
    instance = varied_instance(seed, 3, 3)
    shape = np.array([0.4, 1.1, 2.5]) if growing else np.ones(3)
    high = 2 * instance.high[:, :3] * shape
    return replace(instance, periods=3, low=instance.low[:, :3], high=high)


@cache
def bounded(seed, growing=False):
    """Optimum, LP bound and tightened bound of a tiny mine."""
    instance = tiny(seed, growing)
    optimum = exact_schedule(instance, seconds=20)
    assert optimum.proven
    lp = relaxation(instance)
    return optimum.value, lp, tighten(instance, lp, BUDGET)[0]


def tangle(rng, n):
    """Each block but the first three needs two of those before it."""
    index = [rng.choice(b, 2, replace=False) for b in range(3, n)]
    pointer = np.concatenate((np.zeros(3, np.int64), 2 * np.arange(n - 2)))
    return Graph(pointer, np.ravel(index).astype(np.int32))


def is_closed(graph, inside):
    owner = np.repeat(np.arange(graph.blocks), np.diff(graph.pointer))
    return bool((inside[graph.index] | ~inside[owner]).all())


def best_pit(graph, value, use, room):
    """The best closed set within the room, of all subsets."""
    sets = (np.arange(2 ** len(value))[:, None] >> np.arange(len(value))) & 1 == 1
    fit = sets[(sets @ use <= room).all(axis=1)]
    return max(float(value[s].sum()) for s in fit if is_closed(graph, s))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("limits", [1, 2])
def test_the_tree_ends_at_the_best_pit_that_fits(seed, limits):
    rng = np.random.default_rng(seed)
    graph = tangle(rng, 12)
    value = rng.integers(-9, 12, 12).astype(float)
    use = rng.integers(1, 9, (12, limits)).astype(float)
    room = np.floor(use.sum(axis=0) * 0.4)
    best = best_pit(graph, value, use, room)
    pit = LimitedPit(graph, value, use, room)
    seen = [pit.relaxed, pit.upper]
    while not pit.solved:
        pit.expand()
        seen.append(pit.upper)
    assert (np.diff(seen) <= 1e-9).all()
    assert min(seen) >= best
    assert pit.upper == pytest.approx(best, abs=1e-5)
    assert pit.found == pytest.approx(best, abs=1e-5)
    assert is_closed(graph, pit.pit)
    assert (use[pit.pit].sum(axis=0) <= room).all()


@pytest.mark.parametrize("seed", [1, 2, 3, 5])
@pytest.mark.parametrize("growing", [False, True])
def test_the_bound_lies_between_the_optimum_and_the_relaxation(seed, growing):
    optimum, lp, tight = bounded(seed, growing)
    assert optimum * (1 - 1e-9) <= tight.upper <= lp.upper


def test_the_bound_closes_half_of_the_distance_to_the_optimum():
    found = [bounded(seed) for seed in (1, 2, 3, 5)]
    before = sum(lp.upper - optimum for optimum, lp, _ in found)
    assert sum(tight.upper - optimum for optimum, _, tight in found) < 0.5 * before


def test_lower_limits_stay_in_the_bound():
    instance = tiny(3)
    low = instance.low.copy()
    low[0, 2] = 0.3 * instance.high[0, 2]
    forced = replace(instance, low=low)
    lp = relaxation(forced)
    optimum = exact_schedule(forced, seconds=20)
    assert optimum.proven
    assert optimum.value * (1 - 1e-9) <= tighten(forced, lp, BUDGET)[0].upper <= lp.upper


def test_the_pits_of_the_bound_order_blocks_better_than_its_mixture():
    """Schedules by the stages earn more than TopoSort's, over several mines."""
    gained = []
    for seed in (1, 2, 3, 5):
        _, lp, tight = bounded(seed)
        problem = prepare(tiny(seed), prices=lp.prices)
        plain, staged = (_best_toposort(problem, bound) for bound in (lp, tight))
        gained.append((staged - plain) / lp.upper)
    assert np.mean(gained) > 1e-3


def _best_toposort(problem, bound):
    plans = [list_schedule(problem, key, True) for key in toposort_orders(problem, bound).values()]
    return max(problem.worth(plan.period, plan.destination) for plan in plans)


def test_budgets_of_decisions_reproduce():
    instance = tiny(1)
    lp = relaxation(instance)
    first, again = (tighten(instance, lp, BUDGET)[0].upper for _ in range(2))
    assert first == again


@pytest.mark.parametrize("seed", [1, 3])
def test_periods_side_by_side_give_a_certified_bound(seed):
    """All of the tree decided: the order of decisions changes nothing that is claimed."""
    instance = tiny(seed)
    optimum, lp, _ = bounded(seed)
    told = []
    budget = CutsConfig(seconds=60.0, threads=3)
    tight, _ = tighten(instance, lp, budget, lambda *now: told.append(now[1]))
    assert optimum * (1 - 1e-9) <= tight.upper < lp.upper
    assert tight.upper <= bounded(seed)[2].upper * (1 + 1e-9)
    assert max(np.diff(told)) > 1, "no round decided in several periods"


def test_decisions_that_are_counted_come_one_by_one_with_any_threads():
    instance, told = tiny(1), []
    lp = relaxation(instance)
    alone, one = tighten(instance, lp, CutsConfig(decisions=4))
    three = CutsConfig(decisions=4, threads=3)
    beside, many = tighten(instance, lp, three, lambda *now: told.append(now[1]))
    assert (alone.upper, one) == (beside.upper, many)
    assert max(np.diff(told)) == 1


def test_ctrl_c_keeps_a_certified_bound():
    instance = tiny(2)
    lp = relaxation(instance)

    def stop(seconds, decisions, ratio):
        if decisions == 2:
            raise KeyboardInterrupt

    tight, line = tighten(instance, lp, BUDGET, stop)
    assert exact_schedule(instance, seconds=20).value * (1 - 1e-9) <= tight.upper <= lp.upper
    assert " 2 decisions" in line


def test_a_flow_off_the_arcs_is_no_certificate(monkeypatch):
    rng = np.random.default_rng(0)
    graph, weight = tangle(rng, 12), rng.integers(-9, 10, 12).astype(float)
    inside, upper = closure.certified_closure(weight, graph)
    assert weight[inside].sum() <= upper <= weight[inside].sum() + 1e-9
    honest = closure._pseudoflow

    def lying(*words):
        found, parent, flow, upward = honest(*words)
        free = np.flatnonzero(parent < 0)[:2]
        parent[free[0]], flow[free[0]], upward[free[0]] = free[1], 5, graph.arcs > 0
        if free[1] in graph.index[graph.pointer[free[0]] : graph.pointer[free[0] + 1]]:
            upward[free[0]] = False
        return found, parent, flow, upward

    monkeypatch.setattr(closure, "_pseudoflow", lying)
    with pytest.raises(AssertionError, match="arcs"):
        closure.certified_closure(weight, graph)


def test_a_search_that_stops_early_only_loosens_the_bound(monkeypatch):
    """The certificate comes from the flow: a wrong pit must not lower the bound."""
    rng = np.random.default_rng(3)
    graph, weight = tangle(rng, 12), rng.integers(-9, 10, 12).astype(float)
    upper = closure.certified_closure(weight, graph)[1]
    honest = closure._pseudoflow

    def lazy(*words):
        found, parent, flow, upward = honest(*words)
        return np.zeros_like(found), parent, np.zeros_like(flow), upward

    monkeypatch.setattr(closure, "_pseudoflow", lazy)
    inside, loose = closure.certified_closure(weight, graph)
    assert not inside.any()
    assert loose == pytest.approx(np.maximum(weight, 0).sum(), rel=1e-9)
    assert loose >= upper


def test_the_flow_along_slots_lets_them_be_solved_one_by_one():
    rng = np.random.default_rng(1)
    graph, weight = tangle(rng, 10), rng.integers(-9, 12, (10, 3)).astype(float)
    together = closure.certified_closure(weight, graph)[1]
    settled = weight + closure.chain_flow(weight, graph)
    apart = sum(closure.certified_closure(settled[:, s].copy(), graph)[1] for s in range(3))
    plain = sum(closure.certified_closure(weight[:, s].copy(), graph)[1] for s in range(3))
    assert apart == pytest.approx(together, abs=1e-6)
    assert plain > together + 1


def test_blocks_that_cannot_fit_are_left_before_any_decision():
    """The covers alone: two blocks over a rich one, room for two of the three."""
    graph = Graph(np.array([0, 0, 0, 2]), np.array([0, 1], np.int32))
    value, use = np.array([-1.0, -1.0, 10.0]), np.ones((3, 1))
    pit = LimitedPit(graph, value, use, np.array([2.0]))
    assert pit.relaxed == pytest.approx(16 / 3, rel=1e-6)
    assert pit.upper == pytest.approx(0.0, abs=1e-6)


def test_cones_that_take_too_long_to_weigh_only_loosen_the_bound():
    rng = np.random.default_rng(4)
    graph = tangle(rng, 12)
    value = rng.integers(-9, 12, 12).astype(float)
    use = rng.integers(1, 9, (12, 1)).astype(float)
    room = np.floor(use.sum(axis=0) * 0.4)
    whole = limited_pit.cone_use(graph, use)
    hidden = limited_pit._cone_use(graph.pointer, graph.index, graph.order, use, 6)
    assert np.isinf(hidden).any()
    known = np.isfinite(hidden)
    np.testing.assert_array_equal(hidden[known], whole[known])
    tight = LimitedPit(graph, value, use, room).upper
    assert LimitedPit(graph, value, use, room, hidden).upper == tight  # they are looked at again
    unseen = LimitedPit(graph, value, use, room, np.zeros_like(whole))
    assert unseen.upper == pytest.approx(unseen.relaxed)
    assert best_pit(graph, value, use, room) <= tight <= unseen.upper


def test_the_scripts_bound_is_lower_and_says_so():
    instance = tiny(2)
    plain = solve(instance, SolveConfig(method=Method.greedy))
    config = SolveConfig(method=Method.greedy, bound=BoundKind.cuts, bound_decisions=5)
    tight = solve(instance, config)
    assert tight.verdict.value == plain.verdict.value
    assert tight.verdict.value <= tight.upper < plain.upper
    assert "tightened" in tight.report()


def test_learning_gets_the_bound_by_itself_where_it_reads_it():
    learning = SolveConfig(method=Method.evolution, seconds=40)
    assert learning.cuts == CutsConfig(20.0, 0, learning.threads)
    assert replace(learning, decodes=500).cuts == CutsConfig(20.0, 60, learning.threads)
    assert replace(learning, bound_seconds=5.0).cuts == CutsConfig(5.0, 0, learning.threads)
    for other in ({"lp_features": False}, {"problem": Kind.pcpsp}, {"bound": BoundKind.lp}):
        assert replace(learning, **other).cuts is None
    assert SolveConfig(method=Method.toposort).cuts is None


@pytest.mark.parametrize(
    "changed", [{"method": Method.exact}, {"problem": Kind.pcpsp}, {"bound_seconds": 0.0}]
)
def test_what_the_bound_does_not_know_is_refused(changed):
    with pytest.raises(ConfigError, match="bound"):
        SolveConfig(**({"bound": BoundKind.cuts} | changed))
