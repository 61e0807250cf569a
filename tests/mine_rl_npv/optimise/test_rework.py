"""Reworking: never worse, always within the limits, the same for a seed, and it finds something."""

import math
from dataclasses import replace

import numpy as np
import pytest

from mine_rl_npv.data.instance import NEVER
from mine_rl_npv.data.synthetic import varied_instance
from mine_rl_npv.optimise.bound import relaxation
from mine_rl_npv.optimise.decode import Schedule, list_schedule
from mine_rl_npv.optimise.problem import prepare
from mine_rl_npv.optimise.rework import Rework, ranks
from mine_rl_npv.priority.task import Mine
from mine_rl_npv.tools import reworking
from mine_rl_npv.tools.methods import schedule
from mine_rl_npv.tools.reworking import Shares
from mine_rl_npv.tools.solve_config import BoundKind, Kind, SolveConfig


def begun(seed, choice, loose=1.0):
    """A mine's problem, bound and plan in an order by chance, with that order."""
    instance = varied_instance(seed, 5, 6)
    instance = replace(instance, high=np.floor(instance.high * loose))
    bound = relaxation(instance, choice)
    problem = prepare(instance, choice, bound.prices)
    order = np.random.default_rng(seed).random(problem.blocks)
    return problem, bound, list_schedule(problem, order, two_pass=True), order


def judged(problem, plan):
    """Value of a plan, block by block; fails where it breaks a precedence or a limit."""
    used, value = np.zeros(problem.room.shape, np.int64), 0.0
    graph, period = problem.graph, plan.period.tolist()
    for b, t in enumerate(period):
        if t == NEVER:
            continue
        for p in graph.index[graph.pointer[b] : graph.pointer[b + 1]].tolist():
            assert 0 <= period[p] <= t, (b, p)
        used[:, t] += problem.use[b, plan.destination[b]]
        value += problem.value[b, plan.destination[b]] * problem.discount[t]
    assert (used <= problem.room).all()
    assert np.array_equal(problem.room - used, plan.room)
    return value


@pytest.mark.parametrize(
    ("seed", "choice", "loose"),
    [(1, False, 1.0), (2, False, 0.5), (3, False, 0.7), (2, True, 1.0), (3, True, 0.5)],
)
def test_a_plan_gets_better_and_stays_feasible(seed, choice, loose):
    problem, bound, plan, order = begun(seed, choice, loose)
    first = value = judged(problem, plan)
    work = Rework(problem, plan, ranks(order), seed)
    for _ in range(20):
        gain = work.spend(2 * problem.blocks)
        now = judged(problem, plan)
        assert gain >= 0
        assert now == pytest.approx(value + gain, rel=1e-12)
        value = now
    assert first * (1 + 1e-4) < value <= bound.upper


def test_a_seed_gives_the_same_plan_and_another_one_another():
    def reworked(seed):
        problem, _, plan, order = begun(4, False)
        Rework(problem, plan, ranks(order), seed).spend(30 * problem.blocks)
        return plan.period.tolist()

    assert reworked(7) == reworked(7)
    assert reworked(7) != reworked(8)


def test_ranks_follow_the_priorities_and_ties_the_ids():
    assert ranks(np.array([0.5, 2.0, 0.5, -1.0])).tolist() == [0.25, 0.0, 0.5, 0.75]


def test_a_mine_of_one_period_or_one_block_has_nothing_to_rework():
    problem, _, plan, order = begun(1, False)
    flat = replace(problem, room=problem.room[:, :1], discount=problem.discount[:1])
    flat = replace(flat, preferred=problem.preferred[:, :1].copy())
    plan = list_schedule(flat, order, two_pass=True)
    value = judged(flat, plan)
    assert Rework(flat, plan, ranks(order), 1).spend(10 * flat.blocks) >= 0
    assert judged(flat, plan) >= value


@pytest.mark.parametrize("kind", list(Kind))
def test_the_default_reworks_what_it_found(monkeypatch, kind):
    problem, bound, _, _ = begun(5, kind is Kind.pcpsp, 0.6)
    config = SolveConfig(problem=kind, decodes=40, bound=BoundKind.lp, threads=1)
    whole, _ = schedule(problem, bound, config)
    monkeypatch.setattr("mine_rl_npv.tools.methods.rework_best", lambda *_: None)
    half, _ = schedule(problem, bound, config)
    assert judged(problem, half) < judged(problem, whole)


def test_ctrl_c_ends_the_search_and_the_rework():
    problem, bound, _, _ = begun(5, False, 0.6)
    config = SolveConfig(decodes=400, bound=BoundKind.lp, threads=1)
    told = []

    def stop_after(looks):
        def watch(seconds, decodes, best):
            told.append((seconds, decodes, best))
            if len(told) == looks:
                raise KeyboardInterrupt

        told.clear()
        return schedule(problem, bound, config, watch)[0]

    judged(problem, stop_after(2))
    assert math.isnan(told[-1][0])
    assert len(told) == 3
    unbroken = stop_after(10**9)
    asked = Shares.of(config, 1.0).search_decodes
    searched = 1 + sum(decodes < asked for _, decodes, _ in told)
    assert told[-1][1] >= 400
    assert len(told) > searched + 5
    judged(problem, stop_after(searched + 5))
    assert math.isnan(told[-1][0])
    assert len(told) == searched + 6
    assert told[-1][1] < 400
    assert judged(problem, unbroken) >= told[-1][2] * bound.upper * (1 - 1e-12)


def test_threads_try_side_by_side_by_the_clock_and_go_on_from_the_best(monkeypatch):
    problem, bound, plan, order = begun(5, False, 0.6)
    before, seeds = judged(problem, plan), []

    class Told(Rework):
        def spend(self, blocks):
            seeds.append(self.seed)
            return super().spend(blocks)

    monkeypatch.setattr(reworking, "Rework", Told)
    config = SolveConfig(seconds=0.2, bound=BoundKind.lp, threads=2, seed=3)
    mine = Mine(problem, np.empty((problem.blocks, 0), np.float32), bound)
    shares = Shares.of(config, 1e-4)
    reworking.rework_best(mine, plan, order, config, shares, reworking.Heard(None))
    assert judged(problem, plan) > before
    assert set(seeds) == {3, 4}
    seeds.clear()
    counted = replace(config, decodes=20)
    shares = Shares.of(counted, 1e-4)
    reworking.rework_best(mine, plan, order, counted, shares, reworking.Heard(None))
    assert seeds == [3]


@pytest.mark.parametrize(
    ("each", "threads", "searched"),
    [(1e-3, 1, 20.0), (8e-3, 1, 24.0), (8e-3, 2, 20.0), (1.0, 1, 32.0)],
)
def test_the_search_gets_half_and_more_until_it_has_decoded_enough(each, threads, searched):
    config = SolveConfig(seconds=40.0, bound=BoundKind.lp, threads=threads)
    shares = Shares.of(config, each)
    assert shares.search_seconds == pytest.approx(searched)
    assert shares.search_seconds + shares.rework_seconds == pytest.approx(40.0)
    assert (shares.search_decodes, shares.rework_decodes) == (0, 0)


@pytest.mark.parametrize(("decodes", "searched"), [(1, 1), (2, 1), (100, 80), (9000, 4500)])
def test_counted_schedules_are_shared_out_whole(decodes, searched):
    shares = Shares.of(SolveConfig(decodes=decodes), 1.0)
    assert (shares.search_decodes, shares.rework_decodes) == (searched, decodes - searched)


def test_another_ones_plan_is_copied_and_not_shared():
    problem, _, plan, order = begun(2, False)
    own = Rework(problem, Schedule(*(a.copy() for a in plan)), ranks(order), 1)
    other = Rework(problem, plan, ranks(order), 2)
    other.spend(20 * problem.blocks)
    own.follow(other)
    assert judged(problem, own.plan) == judged(problem, other.plan)
    other.plan.period[:] = NEVER
    assert (own.plan.period >= 0).any()
