"""Schedules and bounds of eight blocks against every plan there is, from the file alone."""

import itertools
import math
from functools import cache

import numpy as np
import pytest
from scipy.optimize import linprog

from mine_rl_npv.data.economics import Economics, MinePlan
from mine_rl_npv.tools.constrained import solve_mine
from mine_rl_npv.tools.planner import open_mine
from mine_rl_npv.tools.solve_config import Constraints, Kind, Method, SolveConfig

PERIODS, RATE, MINED, MILLED = 2, 0.1, 0.6, 0.2
MONEY = Economics(copper_price=1.5)
CU, CLAYS = 4, 5
ASKED = {
    "plain": (Kind.cpit, {}),
    "advance": (Kind.cpit, {"bench_advance": 1}),
    "destinations": (Kind.pcpsp, {}),
    "blend": (Kind.pcpsp, {"blend": ("cu:0.8-", "clays:-5")}),
}


def rows_of(seed):
    """Rows (8, 6): x, y, z, tonnes, copper, clays of 2 x 2 x 2 blocks."""
    rng = np.random.default_rng([seed, 7])
    places = itertools.product((0.0, 20.0), (0.0, 20.0), (0.0, 15.0))
    grades = rng.choice([0.0, 0.2, 0.9, 1.5, 2.2], 8), rng.uniform(1, 8, 8).round(2)
    tonnes = 15_000.0 + 500 * rng.integers(0, 3, 8)
    return np.column_stack((list(places), tonnes, *grades))


def best_of_all(rows, kind, asked):
    """The greatest value of all plans, by enumeration; destinations by a small LP."""
    tonnes, cu, clays = rows[:, 3], rows[:, CU], rows[:, CLAYS]
    waste = -tonnes * MONEY.mining_cost
    paid = cu / 100 * MONEY.recovery * 2204.62 * MONEY.copper_price
    spent = MONEY.processing_cost + MONEY.fixed_cost + MONEY.clay_cost * np.maximum(clays - 3, 0)
    ore = waste + tonnes * (paid - spent)
    mined, milled = math.ceil(MINED * tonnes.sum()), math.ceil(MILLED * tonnes.sum())

    @cache
    def worth(dug):
        """Undiscounted money of blocks dug in one period; None where they do not fit."""
        ids = list(dug)
        if tonnes[ids].sum() > mined:
            return None
        if kind is Kind.cpit:
            fits = tonnes[ids][ore[ids] > waste[ids]].sum() <= milled
            return np.maximum(waste, ore)[ids].sum() if fits else None
        limits = [tonnes[ids]]
        if "blend" in asked:
            limits += [tonnes[ids] * (0.8 - cu[ids]), tonnes[ids] * (clays[ids] - 5)]
        most = [milled, 0, 0][: len(limits)]
        gain = ore[ids] - waste[ids]
        return waste[ids].sum() - linprog(-gain, np.array(limits), most, bounds=(0, 1)).fun

    best = 0.0
    for plans in itertools.product(column_plans("bench_advance" in asked), repeat=4):
        period = list(itertools.chain(*plans))
        dug = [tuple(b for b, t in enumerate(period) if t == now) for now in range(PERIODS)]
        money = [worth(ids) if ids else 0.0 for ids in dug]
        if None not in money:
            best = max(best, sum(m / (1 + RATE) ** t for t, m in enumerate(money)))
    return best


def column_plans(sinks_once):
    """Periods of a column's lower and upper block: at 70 degrees cones hold no others."""
    pairs = itertools.product(range(PERIODS + 1), repeat=2)
    pairs = [(low, up) for low, up in pairs if low >= up]
    return [pair for pair in pairs if not (sinks_once and pair[0] == pair[1] < PERIODS)]


@pytest.mark.parametrize("asked", ASKED)
def test_no_plan_beats_the_best_of_all_and_no_bound_lies_below_it(tmp_path, asked):
    rows, (kind, limits) = rows_of(1), ASKED[asked]
    lines = [",".join(map(repr, row)) for row in rows.tolist()]
    (tmp_path / "m.csv").write_text("\n".join(["x,y,z_up,ton,cu,clays", *lines]))
    total = rows[:, 3].sum()
    plan = MinePlan(
        PERIODS,
        RATE,
        slope_degrees=70.0,
        slope_levels=0,
        mining_rate=MINED * total,
        milling_rate=MILLED * total,
    )
    best = best_of_all(rows, kind, limits)
    assert best > 0
    methods = [Method.toposort, *([] if asked == "advance" else [Method.exact])]
    for method in methods:
        config = SolveConfig(
            model=str(tmp_path / "m.csv"),
            method=method,
            problem=kind,
            economics=MONEY,
            plan=plan,
            constraints=Constraints(**limits),
        )
        found = solve_mine(open_mine(config)[0], config)
        assert found.verdict.feasible, found.report()
        assert found.verdict.value <= best * (1 + 1e-6)
        assert found.upper >= best * (1 - 1e-6)
        if method is Method.exact:
            assert found.verdict.value == pytest.approx(best, rel=1e-5)
