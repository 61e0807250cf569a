"""A stockpile gives back only what is milled before the mine closes: by hand and by all plans."""

import itertools
from dataclasses import replace

import pytest

from frugal_rl.errors import ConfigError
from mine_rl_npv.data.economics import STOCKPILE, Economics, MinePlan
from mine_rl_npv.optimise.check import check_shares
from mine_rl_npv.tools.constrained import solve_mine
from mine_rl_npv.tools.planner import open_mine
from mine_rl_npv.tools.solve_config import Kind, Method, SolveConfig

TONNES, PERIODS, RATE, WAIT = 15_600.0, 3, 0.1, 2
GRADES = (2.0, 1.6, 1.2, 1.0, 0.9)
MONEY = Economics(copper_price=1.0, stockpile_cost=0.5, stockpile_periods=WAIT)
PLAN = MinePlan(PERIODS, RATE, mining_rate=2 * TONNES, milling_rate=TONNES)
WASTE_WORTH = -2.5 * TONNES


def config_of(folder, **changes):
    """Five blocks beside each other, two dug and one milled per period at most."""
    lines = [f"{20 * i},0,0,{TONNES},{grade}" for i, grade in enumerate(GRADES)]
    (folder / "row.csv").write_text("\n".join(["x,y,z,ton,cu", *lines]))
    values = {"model": str(folder / "row.csv"), "problem": Kind.pcpsp, "method": Method.exact}
    config = SolveConfig(economics=MONEY, plan=PLAN, block_size=(20.0, 20.0, 15.0), **values)
    return replace(config, **changes)


def milled(grade):
    """USD of milling a block that is already dug."""
    return TONNES * (grade / 100 * 0.85 * 2204.62 * 1.0 - 8.0 - 1.2)


def best_of_all():
    """Each block is left, dumped, milled or stocked, in any period, if ore is back in time."""
    choices = [None, *itertools.product(range(PERIODS), "dms")]
    choices = [c for c in choices if not (c and c[1] == "s" and c[0] + WAIT >= PERIODS)]
    best = 0.0
    for plan in itertools.product(choices, repeat=len(GRADES)):
        dug = [c[0] for c in plan if c]
        sent = [c[0] for c in plan if c and c[1] == "m"]
        if any(dug.count(t) > 2 or sent.count(t) > 1 for t in range(PERIODS)):
            continue
        value = 0.0
        for grade, choice in zip(GRADES, plan, strict=True):
            if choice is None:
                continue
            t, where = choice
            value += WASTE_WORTH / (1 + RATE) ** t
            value += milled(grade) / (1 + RATE) ** t if where == "m" else 0.0
            back = milled(grade) - 0.5 * TONNES
            value += back / (1 + RATE) ** (t + WAIT) if where == "s" else 0.0
        best = max(best, value)
    return best


def test_ore_that_would_come_back_after_the_last_period_is_not_stocked(tmp_path):
    best = best_of_all()
    for method in (Method.exact, Method.toposort, Method.lp):
        config = config_of(tmp_path, method=method)
        found = solve_mine(open_mine(config)[0], config)
        assert found.verdict.feasible, found.report()
        assert found.upper >= best * (1 - 1e-9)
        assert not found.shares[:, STOCKPILE, PERIODS - WAIT :].any()
        if method is not Method.lp:
            assert found.verdict.value <= best * (1 + 1e-6)
    exact = solve_mine(open_mine(config_of(tmp_path))[0], config_of(tmp_path))
    assert exact.verdict.value == pytest.approx(best)
    assert exact.shares[:, STOCKPILE, 0].sum() == pytest.approx(1.0)
    assert "none is stocked in the last 2" in exact.report()


def test_the_checker_sees_ore_that_is_stocked_too_late(tmp_path):
    mine, _ = open_mine(config_of(tmp_path))
    shares = solve_mine(mine, config_of(tmp_path)).shares.copy()
    last = shares[:, :, -1].argmax(axis=0).max()
    shares[last], shares[last, STOCKPILE, -1] = 0.0, 1.0
    assert "resource 2" in check_shares(mine, shares).faults[0]


@pytest.mark.parametrize(("wait", "words"), [(3, "after the last period"), (0, "1 or more")])
def test_a_wait_that_no_plan_can_keep_is_refused(tmp_path, wait, words):
    with pytest.raises(ConfigError, match=words):
        open_mine(config_of(tmp_path, economics=replace(MONEY, stockpile_periods=wait)))
