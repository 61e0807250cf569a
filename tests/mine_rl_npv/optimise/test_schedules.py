"""Decoders, searches and the checker that trusts none of them."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from frugal_rl.errors import ConfigError
from mine_rl_npv.data.synthetic import varied_instance
from mine_rl_npv.optimise import orders
from mine_rl_npv.optimise.bound import relaxation
from mine_rl_npv.optimise.check import check_periods, check_shares
from mine_rl_npv.optimise.decode import Decoder, list_schedule, prune
from mine_rl_npv.optimise.problem import prepare
from mine_rl_npv.optimise.shift import shift_search
from mine_rl_npv.optimise.window import slide_windows
from mine_rl_npv.tools.methods import plan_shares
from mine_rl_npv.tools.solve import solve
from mine_rl_npv.tools.solve_config import Kind, Method, SolveConfig

SEEDS = (1, 2, 3)


@cache
def mine(seed):
    """Made when first asked for: its kernels are compiled by one process of the tests alone."""
    return varied_instance(seed, 5, 7)


def slow_list_schedule(problem, priority):
    """The most urgent available block goes to its earliest feasible period; plain Python."""
    room = problem.room.copy()
    period = np.full(problem.blocks, -1)
    graph = problem.graph
    tried = set()
    while True:
        available = [
            b
            for b in range(problem.blocks)
            if b not in tried
            and all(period[p] >= 0 for p in graph.index[graph.pointer[b] : graph.pointer[b + 1]])
        ]
        if not available:
            return period
        b = max(available, key=lambda i: (priority[i], -i))
        tried.add(b)
        needed = graph.index[graph.pointer[b] : graph.pointer[b + 1]]
        for t in range(max(period[needed], default=0), room.shape[1]):
            if (problem.use[b, 0] <= room[:, t]).all():
                period[b] = t
                room[:, t] -= problem.use[b, 0]
                break


@pytest.mark.parametrize("seed", SEEDS)
def test_list_scheduling_equals_its_slow_twin(seed):
    problem = prepare(mine(seed))
    priority = orders.random_order(problem, seed)
    assert_array_equal(
        list_schedule(problem, priority).period, slow_list_schedule(problem, priority)
    )


@settings(max_examples=25)
@given(st.sampled_from(SEEDS), st.integers(0, 10**6), st.booleans())
def test_every_step_of_a_search_stays_feasible_and_never_loses(seed, key, destinations):
    instance = mine(seed)
    problem = prepare(instance, destinations)
    plan = list_schedule(problem, orders.random_order(problem, key))
    worth = problem.worth(plan.period, plan.destination)
    for improve in (
        lambda: shift_search(problem, plan, 3, 0),
        lambda: shift_search(problem, plan, 5, 50),
        lambda: prune(problem, plan),
    ):
        improve()
        assert check_shares(instance, plan_shares(problem, plan)).feasible
        again = problem.worth(plan.period, plan.destination)
        assert again >= worth - 1e-6 * abs(worth)
        worth = again
        room = problem.room.copy()
        for b in np.flatnonzero(plan.period >= 0):
            room[:, plan.period[b]] -= problem.use[b, plan.destination[b]]
        assert_array_equal(plan.room, room)


def test_shift_search_reports_its_gain():
    problem = prepare(varied_instance(2))
    plan = list_schedule(problem, orders.random_order(problem, 0))
    before = problem.worth(plan.period, plan.destination)
    gain = shift_search(problem, plan, 10, 60)
    assert gain > 0
    assert_allclose(problem.worth(plan.period, plan.destination) - before, gain, rtol=1e-9)


def test_windows_only_gain():
    problem = prepare(mine(1))
    plan = list_schedule(problem, orders.value_order(problem), two_pass=True)
    before = problem.worth(plan.period, plan.destination)
    gain = slide_windows(problem, plan, seconds=10, rounds=1)
    assert gain >= 0
    assert_allclose(problem.worth(plan.period, plan.destination), before + gain, rtol=1e-12)
    assert check_periods(mine(1), problem.whole(plan.period)).feasible


@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize(
    "method", [m for m in Method if m not in (Method.upit, Method.exact, Method.lp_direct)]
)
def test_every_method_stays_below_its_certified_bound(method, kind):
    config = SolveConfig(method=method, problem=kind, seconds=0.3, decoder=Decoder.two_pass)
    solution = solve(mine(3), config)
    assert solution.verdict.feasible
    assert solution.verdict.value <= solution.upper * (1 + 1e-9)
    assert "gap" in solution.report()


def test_the_lp_of_an_instance_bounds_its_exact_schedule():
    lp = relaxation(varied_instance(3, 3, 3))
    exact = solve(varied_instance(3, 3, 3), SolveConfig(method=Method.exact, seconds=4.0))
    assert exact.verdict.feasible
    assert exact.verdict.value <= lp.upper


def test_heuristics_refuse_minimum_tonnages_in_words():
    instance = mine(1)
    low = instance.low.copy()
    low[0, 0] = 1.0
    from dataclasses import replace

    with pytest.raises(ConfigError, match="method=exact"):
        prepare(replace(instance, low=low))


@pytest.fixture
def good():
    problem = prepare(mine(1))
    plan = list_schedule(problem, orders.value_order(problem), two_pass=True)
    return problem.whole(plan.period)


def fault(period):
    verdict = check_periods(mine(1), period)
    assert not verdict.feasible
    return verdict.faults[0]


def test_the_checker_rejects_a_block_before_its_predecessor(good):
    graph = mine(1).graph
    for b in np.flatnonzero(good > 0):
        needed = graph.index[graph.pointer[b] : graph.pointer[b + 1]]
        if len(needed) and good[needed].max() == good[b]:
            good[b] -= 1
            assert f"block {b} is mined by period" in fault(good)
            return
    pytest.fail("no block shares its period with a predecessor")


def test_the_checker_rejects_a_missing_predecessor(good):
    graph = mine(1).graph
    b = next(b for b in np.flatnonzero(good >= 0) if graph.pointer[b + 1] > graph.pointer[b])
    top = graph.index[graph.pointer[b]]
    good[top] = -1
    assert f"before block {top}, which it needs" in fault(good)


def test_the_checker_rejects_too_many_tonnes(good):
    tampered = np.where(good >= 0, 0, good)
    assert "resource" in fault(tampered)


def test_the_checker_rejects_impossible_periods_and_shapes(good):
    good[0] = mine(1).periods
    assert "no such period" in fault(good)
    assert "periods for" in fault(good[:-1])


def test_the_checker_rejects_blocks_mined_twice_and_shares_outside_0_and_1(good):
    instance = mine(1)
    share = np.zeros((instance.blocks, 1, instance.periods))
    mined = np.flatnonzero(good >= 0)
    share[mined, 0, good[mined]] = 1.0
    assert check_shares(instance, share).feasible
    twice = share.copy()
    b = int(mined[0])
    twice[b, 0, -1] += 1.0
    assert not check_shares(instance, twice).feasible
    share[b, 0, 0] = -0.5
    assert "outside [0, 1]" in check_shares(instance, share).faults[0]


def test_the_checker_values_a_plan_as_plain_arithmetic_does(good):
    instance = mine(1)
    slow = sum(
        instance.value[b] / (1 + instance.rate) ** t for b, t in enumerate(good.tolist()) if t >= 0
    )
    assert_allclose(check_periods(instance, good).value, slow, rtol=1e-12)
