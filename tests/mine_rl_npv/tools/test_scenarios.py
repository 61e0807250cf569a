"""Plans against uncertain grades: expected value, value at risk, and a bound on the first."""

import csv
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from frugal_rl.errors import ConfigError
from mine_rl_npv.data.block_model import write_csv
from mine_rl_npv.data.economics import Economics, block_values
from mine_rl_npv.data.realisations import realised_models
from mine_rl_npv.data.synthetic import Deposit, block_model
from mine_rl_npv.optimise.bound import relaxation
from mine_rl_npv.optimise.check import check_shares
from mine_rl_npv.tools.planner import open_mine, run
from mine_rl_npv.tools.scenarios import assess, realised_values
from mine_rl_npv.tools.solve import solve
from mine_rl_npv.tools.solve_config import Kind, Method, RiskConfig, SolveConfig

DEPOSIT = Deposit(8, 7, 5, seed=5, richness=0.4)


@pytest.fixture
def config(tmp_path):
    write_csv(block_model(DEPOSIT), tmp_path / "mine.csv")
    cheap = Economics(copper_price=2.0, molybdenum_price=5.0)
    risk = RiskConfig(realisations=6, spacing=3, schedule=str(tmp_path / "robust.csv"))
    mine = str(tmp_path / "mine.csv")
    return SolveConfig(model=mine, method=Method.toposort, economics=cheap, risk=risk)


def test_the_plan_of_mean_values_earns_its_value_on_average(config):
    instance, model = open_mine(config)
    risk = assess(solve(instance, config), model, config)
    asked, expected = risk.npv.values()
    assert expected.mean() == pytest.approx(risk.expected.verdict.value, rel=1e-9)
    assert expected.mean() <= risk.expected.upper
    assert check_shares(risk.expected.instance, risk.expected.shares).feasible
    assert len(set(asked.tolist())) == len(asked) == 6
    table = list(risk.lines())
    assert f"{np.percentile(asked, 5):,.0f}" in table[2]
    assert f"{expected.mean():,.0f}" in table[3]


def test_foresight_plans_each_model_and_no_plan_beats_its_bound(config):
    config = replace(config, risk=replace(config.risk, foresight=True))
    instance, model = open_mine(config)
    risk = assess(solve(instance, config), model, config)
    assert risk.foresight.mean() > max(npv.mean() for npv in risk.npv.values())
    models = realised_values(instance, model, config)
    for k, found in enumerate(risk.foresight):
        one = models.seen(k)
        assert found <= relaxation(one).upper
        money = block_values(list(realised_models(model, 6, 0, 3))[k].columns, config.economics)
        assert_array_equal(one.value, money.max(axis=1))
    assert f"{risk.foresight.mean():,.0f}" in "\n".join(risk.lines())


def test_more_models_than_memory_holds_are_refused_with_how_many_fit(config):
    many = replace(config.risk, realisations=10**7)
    with pytest.raises(ConfigError, match=r"GiB; at most [\d,]+ fit"):
        run(replace(config, risk=many))


def test_risk_is_told_and_the_robust_plan_is_written(config):
    report = run(config).report()
    assert "6 equally likely models" in report
    assert "plan of mean values (toposort)" in report
    with open(config.risk.schedule, encoding="utf-8") as file:
        periods = [row["period"] for row in csv.DictReader(file)]
    assert any(periods)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"method": Method.upit}, "needs a schedule"),
        ({"problem": Kind.pcpsp}, "problem=cpit"),
        ({"model": "", "instance": "porphyry_tiny"}, "none to vary"),
        ({"risk": RiskConfig(realisations=3, spacing=40)}, "drillholes"),
    ],
)
def test_what_has_no_grades_to_vary_is_refused_before_it_is_solved(config, changed, words):
    with pytest.raises(ConfigError, match=words):
        run(replace(config, **changed))


def test_impossible_risks_are_refused():
    for values in (
        {"realisations": -1},
        {"spacing": 1},
        {"ranges": (1.0,)},
        {"schedule": "x"},
        {"foresight": True},
    ):
        with pytest.raises(ConfigError, match="risk"):
            RiskConfig(**values)
