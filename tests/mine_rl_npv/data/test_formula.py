"""A formula over a model's columns is that arithmetic for every block, or refused in a line."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from frugal_rl.errors import ConfigError
from mine_rl_npv.data.economics import Economics, MinePlan
from mine_rl_npv.data.formula import formula_values
from mine_rl_npv.tools.planner import run
from mine_rl_npv.tools.solve_config import Kind, Method, RiskConfig, SolveConfig

COLUMNS = {"ton": np.array([10.0, 20.0, 30.0]), "au": np.array([0.5, 2.0, 0.0])}


@pytest.mark.parametrize(
    ("formula", "found"),
    [
        ("ton * (au * 54 - 14)", [130, 1880, -420]),
        ("-TON + AU**2 / 4", [-9.9375, -19, -30]),
        ("where(au >= 0.5, ton, -1)", [10, 20, -1]),
        ("min(ton, 15) + max(au, 1)", [11, 17, 16]),
        (" 7 ", [7, 7, 7]),
    ],
)
def test_a_formula_is_its_arithmetic(formula, found):
    assert_allclose(formula_values(formula, COLUMNS), found)


@pytest.mark.parametrize(
    ("formula", "words"),
    [
        ("ton * ag", "no column of numbers 'ag'.*columns ton, au"),
        ("ton *", "cannot be read"),
        ("", "cannot be read"),
        ("__import__('os').system('x')", "none of what it knows"),
        ("ton.real", "none of what it knows"),
        ("(lambda: 1)()", "none of what it knows"),
        ("True", "none of what it knows"),
        ("min(ton)", "min takes 2 values"),
        ("ton if au else 1", "none of what it knows"),
        ("ton / au", "no finite number for 1 of 3 blocks, the first of which is block 3"),
        ("9**9**9**9", "no finite number for 3"),
        ("ton" + "+ton" * 400, "1603 characters"),
        ("(" * 400 + "1" + ")" * 400, "cannot be read|none"),
    ],
)
def test_what_is_no_formula_is_refused_in_a_line(formula, words):
    with pytest.raises(ConfigError, match=words) as refused:
        formula_values(formula, COLUMNS)
    assert "\n" not in str(refused.value)


def test_a_number_for_missing_assays_is_not_reckoned_with():
    missing = {**COLUMNS, "au": np.array([-99.0, 2.0, -99.0])}
    with pytest.raises(ConfigError, match=r"'au' holds -99 in 2 blocks.*columns\.absent=-99"):
        formula_values("ton * au", missing)


@pytest.fixture
def gold(tmp_path):
    """A file of 5 x 5 x 3 blocks with gold in its middle, and none assayed at its rim."""
    cells = np.argwhere(np.ones((5, 5, 3)))
    rim = (np.abs(cells[:, :2] - 2) == 2).any(axis=1)
    au = ["-99" if r else "1.5" for r in rim]
    rows = [f"{x * 10},{y * 10},{z * 10},2700,{a}" for (x, y, z), a in zip(cells, au, strict=True)]
    (tmp_path / "gold.csv").write_text("\n".join(["x,y,elevation,ton,Au", *rows]))
    return str(tmp_path / "gold.csv"), rim


def under(gold, method=Method.toposort, **economics):
    plan = MinePlan(periods=2, rate=0.0, mining_rate=1e9, milling_rate=1e9)
    return SolveConfig(
        model=gold[0],
        columns={"absent": "-99"},
        method=method,
        plan=plan,
        economics=Economics(mining_cost=2.0, **economics),
    )


def test_a_gold_mine_is_scheduled_by_its_formula(gold):
    found = run(under(gold, formula="ton * (au * 0.9 * 60 - 14)"))
    ore = found.instance.destination_value[:, 1]
    assert_allclose(ore, np.where(gold[1], 2700 * -14.0, 2700 * (1.5 * 54 - 14)))
    assert_allclose(found.instance.destination_value[:, 0], -2700 * 2.0)
    assert found.verdict.feasible
    assert found.verdict.value > 0
    upit = run(under(gold, Method.upit, formula="ton * (au * 0.9 * 60 - 14)"))
    assert found.verdict.value == pytest.approx(upit.verdict.value)


def test_prices_beside_a_formula_are_refused(gold):
    with pytest.raises(ConfigError, match=r"formula states .*economics\.copper_price would be ig"):
        run(under(gold, formula="ton", copper_price=4.0))
    with pytest.raises(ConfigError, match=r"risk\.\* varies"):
        run(replace(under(gold, formula="ton"), risk=RiskConfig(3)))


def test_ore_of_a_formula_may_wait_on_a_stockpile(gold):
    piled = {"stockpile_cost": 0.5, "stockpile_periods": 1}
    formula = "ton * (au * 0.9 * 60 - 14)"
    with pytest.raises(ConfigError, match="third destination"):
        run(under(gold, formula=formula, **piled))
    base = under(gold, formula=formula)
    economics = replace(base.economics, **piled)
    found = run(replace(base, economics=economics, problem=Kind.pcpsp))
    dump, mill, stock = found.instance.destination_value.T
    assert_allclose(stock, dump + mill - dump - 0.5 * 2700)
    assert found.verdict.feasible
