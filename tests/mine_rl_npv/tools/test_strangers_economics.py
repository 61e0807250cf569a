"""Odd prices, costs, rates, capacities of a tiny file: the best plan by enumeration, or a line."""

import itertools

import numpy as np
import pytest

from frugal_rl.errors import FrugalError
from frugal_rl.run.building import build_as
from mine_rl_npv.tools.planner import run
from mine_rl_npv.tools.solve_config import Kind, Method, SolveConfig

CELL = np.argwhere(np.ones((3, 1, 2), bool))
"""Three columns of two benches; at 45 degrees each lower block needs the one above it alone."""
TONNES = np.array([15_000.0, 12_000, 15_000, 18_000, 15_000, 15_000])
COPPER = np.array([0.9, 0.0, 1.4, 0.1, 0.6, 0.3])
POUNDS = 2204.62


def written(tmp_path, tonnes=TONNES, copper=COPPER, recovery=None, rows=slice(None)):
    """The file; of one block with `rows`."""
    names = ["x", "y", "elevation", "ton", "cu"]
    columns = [CELL[:, 0] * 20.0, CELL[:, 1] * 20.0, CELL[:, 2] * 15.0, tonnes, copper]
    if recovery is not None:
        names, columns = [*names, "rec"], [*columns, recovery]
    lines = [",".join(map(repr, row)) for row in np.column_stack(columns)[rows].tolist()]
    path = tmp_path / "tiny.csv"
    path.write_text("\n".join([",".join(names), *lines]))
    return str(path)


def best_of_all(economics, plan, tonnes=TONNES, copper=COPPER, recovery=None):
    """The greatest value of all CPIT plans; blocks go where they are worth most."""
    price = economics.get("copper_price", 3.8)
    mining = tonnes * economics.get("mining_cost", 2.5)
    mill = tonnes * (economics.get("processing_cost", 8.0) + economics.get("fixed_cost", 1.2))
    shares = economics.get("recovery", 0.85) if recovery is None else recovery / 100
    ore = tonnes * copper / 100 * shares * POUNDS * price - mining - mill
    milled = ore > -mining
    value, rate, periods = np.maximum(ore, -mining), plan.get("rate", 0.1), plan["periods"]
    best = 0.0
    for when in itertools.product(range(periods + 1), repeat=len(tonnes)):
        t = np.array(when)
        lower, upper = t[0::2], t[1::2]
        if np.any(lower < upper) or not fits(t, tonnes, milled, plan):
            continue
        dug = t < periods
        best = max(best, float((value[dug] * (1 + rate) ** -t[dug].astype(float)).sum()))
    return best


def fits(t, tonnes, milled, plan):
    """Whether the tonnes of each period keep the limits."""
    for now in range(plan["periods"]):
        dug = t == now
        if tonnes[dug].sum() > plan["mining_rates"][now] + 1e-6:
            return False
        if tonnes[dug & milled].sum() > plan["milling_rates"][now] + 1e-6:
            return False
    return True


ROOM = {"periods": 2, "mining_rates": [60_000.0, 60_000.0], "milling_rates": [30_000.0, 45_000.0]}
RIGHT = {
    "plain": ({}, ROOM, {}),
    "costs above prices": ({"mining_cost": 900.0}, ROOM, {}),
    "no price": ({"copper_price": 0.0, "molybdenum_price": 0.0}, ROOM, {}),
    "no costs": ({"mining_cost": 0.0, "processing_cost": 0.0, "fixed_cost": 0.0}, ROOM, {}),
    "recovery 0": ({"recovery": 0.0}, ROOM, {}),
    "recovery 0 in the file": ({}, ROOM, {"recovery": np.zeros(6)}),
    "recovery 0 of some blocks": ({}, ROOM, {"recovery": np.array([90.0, 0, 0, 80, 100, 70])}),
    "some blocks without tonnes": ({}, ROOM, {"tonnes": TONNES * [1, 1, 1, 0, 1, 0]}),
    "one period": ({}, {**ROOM, "periods": 1, "mining_rates": [4e4], "milling_rates": [2e4]}, {}),
    "no room at first": ({}, {**ROOM, "mining_rates": [0.0, 60_000.0]}, {}),
    "no mill at last": ({}, {**ROOM, "milling_rates": [30_000.0, 0.0]}, {}),
    "no room at all": ({}, {**ROOM, "mining_rates": [0.0, 0.0]}, {}),
    "rate 0": ({}, {**ROOM, "rate": 0.0}, {}),
    "rate 0.99": ({}, {**ROOM, "rate": 0.99}, {}),
    "rate below 0": ({}, {**ROOM, "rate": -0.1}, {}),
    "prices of a hundredth": ({"copper_price": 0.04, "mining_cost": 0.01, "processing_cost": 0.05,
                               "fixed_cost": 0.0}, ROOM, {}),
    "huge limits": ({}, {**ROOM, "mining_rates": [1e30, 1e30], "milling_rates": [1e30, 1e18]}, {}),
}  # fmt: skip


@pytest.mark.parametrize("case", RIGHT)
def test_the_plan_is_the_best_of_all_plans(case, tmp_path):
    economics, plan, file = RIGHT[case]
    best = best_of_all(economics, plan, **file)
    values = {"model": written(tmp_path, **file), "economics": economics, "plan": plan}
    for method in (Method.exact, Method.best, Method.toposort):
        counted = {"decodes": 60, "threads": 1} if method is Method.best else {}
        found = run(build_as(SolveConfig, {**values, "method": method.value, **counted}))
        assert found.verdict.feasible, found.report()
        assert found.upper >= best * (1 - 1e-9) - 1e-6, found.report()
        assert found.verdict.value <= best * (1 + 1e-9) + 1e-6, found.report()
        late_pays = plan.get("rate", 0.1) < 0  # orders dig early, and print their gap
        if method is Method.exact or (method is Method.best and not late_pays):
            assert found.verdict.value == pytest.approx(best, rel=1e-6), (case, method)


REFUSED = {
    "negative price": ({"copper_price": -1.0}, {}, {}, r"copper_price is -1\.0"),
    "negative cost": ({"mining_cost": -2.5}, {}, {}, r"mining_cost is -2\.5"),
    "recovery in per cent": ({"recovery": 85.0}, {}, {}, "it is a share"),
    "recovery above 100": ({}, {}, {"recovery": np.full(6, 120.0)}, "'rec' is 120"),
    "recovery as shares": ({}, {}, {"recovery": np.full(6, 0.85)}, "Multiply shares by 100"),
    "no tonnes": ({}, {}, {"tonnes": TONNES * 0}, "no block has any tonnage"),
    "rate 1": ({}, {"rate": 1.0}, {}, r"100% a period"),
    "rate -1": ({}, {"rate": -1.0}, {}, "rate above -1"),
    "limits below 0": ({}, {"mining_rates": [-1.0, 1.0]}, {}, "0 or more"),
    "no period": ({}, {"periods": 0}, {}, "periods must be 1 or more"),
    "tonnes beyond counting": ({}, {}, {"tonnes": TONNES * 1e13}, "larger unit"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_nobody_means_is_refused_in_one_line(case, tmp_path):
    economics, plan, file, words = REFUSED[case]
    values = {"model": written(tmp_path, **file), "economics": economics, "plan": {**ROOM, **plan}}
    with pytest.raises(FrugalError, match=words) as refused:
        run(build_as(SolveConfig, {**values, "method": "toposort"}))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize("copper", [2.0, 0.0])
def test_one_block_is_dug_where_it_pays(tmp_path, kind, copper):
    path = written(tmp_path, copper=COPPER * 0 + copper, rows=slice(0, 1))
    for method in ("exact", "best", "toposort"):
        config = SolveConfig(
            model=path,
            method=Method(method),
            problem=kind,
            decodes=10 if method == "best" else 0,
        )
        found = run(config)
        alone = 15_000 * (copper / 100 * 0.85 * POUNDS * 3.8 - 11.7)
        assert found.verdict.value == pytest.approx(max(alone, 0.0))
