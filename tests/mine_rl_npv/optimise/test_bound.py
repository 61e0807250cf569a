"""Bounds by decomposition against the LP in one piece, and exact optima."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from frugal_rl.errors import ConfigError
from mine_rl_npv.data.instance import GeneralRows
from mine_rl_npv.data.synthetic import varied_instance
from mine_rl_npv.optimise.bound import BoundConfig, relaxation
from mine_rl_npv.optimise.check import check_periods, check_shares
from mine_rl_npv.optimise.exact import direct_relaxation, exact_schedule


def small(seed):
    instance = varied_instance(seed, 4, 5)
    return replace(
        instance, periods=4, low=instance.low[:, :4], high=np.ceil(instance.high[:, :4] * 0.9)
    )


def tiny(seed):
    """Small enough to be proven optimal in a second."""
    instance = varied_instance(seed, 3, 3)
    return replace(instance, periods=3, low=instance.low[:, :3], high=2 * instance.high[:, :3])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("destinations", [False, True])
def test_the_decomposition_finds_the_optimum_of_the_lp(seed, destinations):
    instance = small(seed)
    bound = relaxation(instance, destinations)
    direct = direct_relaxation(instance, destinations)
    assert_allclose(bound.upper, direct.value, rtol=1e-7)
    assert bound.primal <= bound.upper
    assert check_shares(instance, bound.fractions, slack=1e-6).feasible
    assert_allclose(check_shares(instance, bound.fractions, 1e-6).value, bound.primal, rtol=1e-7)


def test_the_lp_in_one_piece_refuses_what_it_could_never_solve(monkeypatch):
    monkeypatch.setattr("mine_rl_npv.optimise.exact.LARGEST_ORDER_ROWS", 10)
    with pytest.raises(ConfigError, match="method=lp"):
        direct_relaxation(small(0))


def test_every_iteration_is_a_certificate():
    instance = small(1)
    optimum = direct_relaxation(instance).value
    seen = []
    relaxation(instance, watch=lambda i, upper, primal, cells: seen.append((upper, primal)))
    assert len(seen) > 1
    assert all(primal <= optimum * (1 + 1e-7) <= upper * (1 + 2e-7) for upper, primal in seen)


def test_a_bound_that_runs_out_of_time_is_still_above_the_optimum():
    instance = small(2)
    early = relaxation(instance, config=BoundConfig(max_iterations=1, pits=3))
    assert early.upper >= direct_relaxation(instance).value * (1 - 1e-9)


def test_the_exact_schedule_is_feasible_and_between_heuristics_and_bound():
    instance = tiny(3)
    result = exact_schedule(instance, seconds=20)
    verdict = check_periods(instance, result.period())
    assert verdict.feasible
    assert result.proven
    assert_allclose(verdict.value, result.value, rtol=1e-6)
    assert verdict.value <= relaxation(instance).upper * (1 + 1e-9)


def test_lower_limits_are_kept_by_the_exact_schedule_and_raise_nothing():
    instance = tiny(3)
    low = instance.low.copy()
    low[0, 2] = 0.3 * instance.high[0, 2]
    bound_with = direct_relaxation(replace(instance, low=low))
    assert bound_with.value <= direct_relaxation(instance).value * (1 + 1e-9)
    forced = exact_schedule(replace(instance, low=low), seconds=20)
    assert check_periods(replace(instance, low=low), forced.period()).feasible
    assert_allclose(relaxation(replace(instance, low=low)).upper, bound_with.value, rtol=1e-7)


def test_the_exact_schedule_shares_a_block_among_destinations():
    whole = varied_instance(3, 3, 3)
    top = np.flatnonzero(np.diff(whole.graph.pointer) == 0)[:1]
    one = replace(whole.restricted(np.isin(np.arange(whole.blocks), top)), periods=2, rate=0.1)
    waste, ore, tonnes = -30.0, 300.0, 90.0
    one = replace(
        one,
        destination_value=np.array([[waste, ore]]),
        destination_use=np.array([[[tonnes, 0.0], [tonnes, tonnes]]]),
        low=np.zeros((2, 2)),
        high=np.array([[100.0, 100.0], [30.0, 60.0]]),
    )
    result = exact_schedule(one, destinations=True)
    later = (waste + (ore - waste) * 60 / 90) / 1.1
    assert result.proven
    assert_allclose([result.value, result.upper], later, rtol=1e-6)
    assert_allclose(result.shares[0], [[0, 1 / 3], [0, 2 / 3]], atol=1e-9)
    verdict = check_shares(one, result.shares)
    assert verdict.feasible, verdict.faults
    assert_allclose(verdict.value, later)


def test_general_rows_are_kept_by_the_direct_lp_and_refused_elsewhere():
    instance = small(0)
    free = direct_relaxation(instance, destinations=True)
    best = int((free.shares[:, 1].sum(axis=1) * instance.value).argmax())
    rows = GeneralRows(
        np.zeros(4, np.int32),
        np.full(4, best, np.int32),
        np.ones(4, np.int32),
        np.arange(4, dtype=np.int32),
        np.ones(4),
        np.array([-np.inf]),
        np.array([0.25]),
    )
    limited = replace(instance, general=rows)
    result = direct_relaxation(limited, destinations=True)
    assert result.shares[best, 1].sum() <= 0.25 + 1e-6
    assert result.value < free.value
    with pytest.raises(ConfigError, match="general"):
        relaxation(limited, destinations=True)


def test_expected_periods_and_alpha_points_follow_the_fractions():
    bound = relaxation(small(1))
    by_period = bound.fractions.sum(axis=1)
    b = int(by_period.sum(axis=1).argmax())
    expected = sum(t * x for t, x in enumerate(by_period[b])) + 4 * (1 - by_period[b].sum())
    assert_allclose(bound.expected_period()[b], expected)
    reached = np.flatnonzero(np.cumsum(by_period[b]) >= 0.5 - 1e-9)
    assert bound.alpha_period(0.5)[b] == (reached[0] if len(reached) else 4)
