"""A planner's first hour: a file in, a plain answer, a schedule and a page out."""

import csv
from dataclasses import replace

import numpy as np
import pytest

from frugal_rl.errors import ConfigError, DataError
from frugal_rl.run.building import build_as
from mine_rl_npv.data.block_model import read_csv, write_csv
from mine_rl_npv.data.economics import Economics, MinePlan
from mine_rl_npv.data.minelib_write import write_instance
from mine_rl_npv.data.solutions import period_of
from mine_rl_npv.data.synthetic import Deposit, block_model, varied_instance
from mine_rl_npv.data.units import Length, Units
from mine_rl_npv.tools.page import _verdict
from mine_rl_npv.tools.planner import UNSTATED, open_mine, run
from mine_rl_npv.tools.solve import solve
from mine_rl_npv.tools.solve_config import BoundKind, Kind, Method, SolveConfig
from mine_rl_npv.verify.__main__ import main

QUICK = Method.toposort


@pytest.fixture
def path(tmp_path):
    write_csv(block_model(Deposit(7, 6, 4, seed=5, richness=0.8)), tmp_path / "mine.csv")
    return tmp_path / "mine.csv"


def with_copper(path, copper):
    """The file with another copper grade in every row, and no molybdenum."""
    rows = list(csv.DictReader(path.open()))
    for row in rows:
        row["cu"], row["mo"] = copper, "0"
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, rows[0])
        table.writeheader()
        table.writerows(rows)


@pytest.mark.parametrize("method", list(Method))
@pytest.mark.parametrize("kind", list(Kind))
def test_a_barren_model_gets_a_plain_answer(path, method, kind):
    with_copper(path, "0")
    config = SolveConfig(model=str(path), method=method, problem=kind, seconds=1.0)
    solution = run(config)
    assert solution.verdict.value == 0
    assert solution.verdict.feasible
    if method is not Method.upit:
        assert "nothing    pays" in solution.report()
        assert "gap        0.0000 %" in solution.report()


@pytest.mark.parametrize("copper", ["0", "2.0"])
@pytest.mark.parametrize("method", [Method.toposort, Method.filling, Method.greedy, Method.pits])
def test_one_block_is_a_mine(tmp_path, copper, method):
    path = tmp_path / "one.csv"
    path.write_text(f"x,y,z,ton,cu\n10,10,10,1000,{copper}\n")
    solution = run(SolveConfig(model=str(path), method=method))
    assert (solution.verdict.value > 0) == (copper != "0")
    assert solution.gap_percent == pytest.approx(0.0, abs=1e-6)


def test_capacities_below_every_block_are_said_to_be_the_reason(path):
    config = SolveConfig(model=str(path), method=QUICK, plan=MinePlan(mining_rate=1.0))
    assert "no paying pit fits the capacities" in run(config).report()


def test_prices_periods_slopes_and_capacities_are_honoured(path):
    base = run(SolveConfig(model=str(path), method=QUICK))
    dear = run(SolveConfig(model=str(path), method=QUICK, economics=Economics(copper_price=8.0)))
    assert dear.upper > base.upper
    steep = run(SolveConfig(model=str(path), method=QUICK, plan=MinePlan(slope_degrees=70.0)))
    assert steep.instance.graph.arcs != base.instance.graph.arcs
    assert "70 degrees" in steep.report()
    tight = run(
        SolveConfig(model=str(path), method=QUICK, plan=MinePlan(periods=3, mining_rate=2e5))
    )
    assert tight.instance.periods == 3
    assert (tight.instance.high[0] == 2e5).all()


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_capacities_may_differ_by_period_and_be_nothing(path):
    plan = MinePlan(periods=3, mining_rates=(0.0, 3e5, 2e5), milling_rates=(5e4, 1e5, 0.0))
    found = run(SolveConfig(model=str(path), method=QUICK, plan=plan))
    assert found.verdict.feasible, found.report()
    assert found.instance.high.tolist() == [[0, 3e5, 2e5], [5e4, 1e5, 0]]
    period = period_of(found.shares)
    assert not (period == 0).any()
    assert 0 < found.verdict.value <= found.upper
    closed = MinePlan(periods=2, mining_rates=(0.0, 0.0))
    for method in (QUICK, Method.best):
        shut = run(SolveConfig(model=str(path), method=method, plan=closed, decodes=0, seconds=1))
        assert shut.verdict.value == 0, shut.report()


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"economics": {"copper_price": 8500}}, "copper_price=3.856"),
        ({"plan": {"rate": 8}}, "800% a period.*plan.rate=0.08"),
        ({"plan": {"slope_degrees": 0.8}}, "slope_degrees=45.84"),
        ({"plan": {"periods": 3, "mining_rates": [1e6, 2e6]}}, "each of the 3 periods"),
        ({"plan": {"periods": 1, "mining_rates": [-1]}}, "0 or more"),
        (
            {"plan": {"periods": 1, "milling_rates": [1e6], "milling_rate": 1e6}},
            "state the same limit",
        ),
        ({"plan": {"slope_sectors": ["0-180:30", "90-270:50"]}}, "another sector names"),
    ],
)
def test_values_in_other_units_are_refused_with_the_value_that_was_meant(values, words):
    with pytest.raises(ConfigError, match=words):
        build_as(SolveConfig, values)


def test_recoveries_as_shares_are_refused(tmp_path):
    rows = "x,y,z,ton,cu,rec\n0,0,0,1e4,1.0,0.85\n20,0,0,1e4,1.0,0.80\n"
    (tmp_path / "model.csv").write_text(rows)
    with pytest.raises(DataError, match=r"'rec' is at most 0\.85.*by 100"):
        run(SolveConfig(model=str(tmp_path / "model.csv")))


def unnamed_at(path, bottom):
    """Lets the file's heights begin at `bottom` in a column that says nothing about them."""
    rows = list(csv.DictReader(path.open()))
    lowest = min(float(row["z_up"]) for row in rows)
    for row in rows:
        row["z_up"] = repr(float(row["z_up"]) - lowest + bottom)
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, rows[0])
        table.writeheader()
        table.writerows(rows)
    path.write_text(path.read_text().replace("z_up", "z", 1))


@pytest.mark.parametrize(
    ("judged", "span"),
    [(True, "<span class='good'>"), (False, "<span class='bad'>"), (None, "<span>")],
)
def test_what_was_not_judged_has_no_colour(judged, span):
    assert _verdict("not audited", judged) == f"{span}not audited</span>"


def test_the_direction_of_heights_is_printed_and_the_page_says_it(tmp_path, path, capsys):
    page, plan = tmp_path / "page.html", tmp_path / "plan.csv"
    unnamed_at(path, 300)
    files = {"report": str(page), "schedule": str(plan)}
    run(SolveConfig(model=str(path), method=QUICK, **files))
    told = capsys.readouterr()
    written = page.read_text(encoding="utf-8")
    for words in (told.out, told.err, written):
        assert "upward (ASSUMED" in words
    head, certificate = written.split("<h1>")[1].split("<table>", 1)
    assert "<p class='if'>ONLY IF    z grows upward" in head
    assert "class='good'" not in certificate
    rows = list(csv.DictReader(plan.open()))
    assert {row["only_if"] for row in rows} == {"z_grows_upward"}
    assert main([str(plan), "--size", "20,20,15"]) == 0
    turned = {"z_direction": "up"}
    run(SolveConfig(model=str(path), method=QUICK, columns=turned))
    told = capsys.readouterr()
    assert "vertical   'z' grows upward (columns.z_direction says so)" in told.out
    assert "ASSUMED" not in told.err


def test_depths_give_the_schedule_of_their_elevations(tmp_path, path):
    plain = run(SolveConfig(model=str(path), method=QUICK))
    rows = list(csv.DictReader(path.open()))
    lines = [",".join(["depth", *list(rows[0])[:2], *list(rows[0])[3:]])]
    for row in rows:
        z = row.pop("z_up")
        lines.append(",".join([repr(52.5 - float(z)), *row.values()]))
    path.write_text("\n".join(lines))
    out = tmp_path / "plan.csv"
    turned = run(SolveConfig(model=str(path), method=QUICK, schedule=str(out)))
    assert np.array_equal(plain.shares, turned.shares)
    judge = [str(out), "--size", "20,20,15", "--columns", "z=depth"]
    assert main(judge) == 0
    assert main([*judge, "--up"]) == 1


@pytest.mark.parametrize(
    "values",
    [
        {"economics": {"copper_price": -1}},
        {"economics": {"copper_price": float("nan")}},
        {"economics": {"mining_cost": float("inf")}},
        {"economics": {"recovery": 85}},
        {"economics": {"coper_price": 1}},
        {"plan": {"periods": 0}},
        {"plan": {"rate": float("nan")}},
        {"plan": {"slope_degrees": 90}},
        {"plan": {"pattern": "7"}},
        {"plan": {"slope_sectors": ["north:40"]}},
        {"plan": {"milling_rate": -1}},
        {"block_size": [10, 10]},
        {"units": {"length": "yard"}},
        {"decodes": -1},
        {"decodes": 10, "method": "greedy"},
        {"seconds": float("nan")},
        {"nonsense": 1},
    ],
)
def test_values_that_mean_nothing_are_refused(values):
    with pytest.raises(ConfigError):
        build_as(SolveConfig, values)


def test_prices_for_files_that_bring_their_own_money_are_refused(tmp_path, path):
    write_instance(varied_instance(3, 4, 5), tmp_path / "lib")
    prefix = str(tmp_path / "lib")
    assert open_mine(SolveConfig(instance=prefix))[0].slopes is None
    for config in (
        SolveConfig(instance=prefix, economics=Economics(copper_price=5)),
        SolveConfig(instance=prefix, plan=MinePlan(periods=3)),
        SolveConfig(instance=prefix, columns={"cu": "grade"}),
        SolveConfig(instance="porphyry_tiny", block_size=(1.0, 1.0, 1.0)),
        SolveConfig(instance="porphyry_tiny", units=Units(Length.ft)),
    ):
        with pytest.raises(ConfigError, match="would be ignored"):
            open_mine(config)
    text = path.read_text().splitlines()
    money = [f"{line},{7 * i - 500}" for i, line in enumerate(text[1:])]
    path.write_text("\n".join([text[0] + ",profit", *money]))
    stated = SolveConfig(model=str(path), columns={"value": "profit"})
    assert open_mine(stated)[0].value[-1] == 7 * (len(money) - 1) - 500
    with pytest.raises(ConfigError, match="would be ignored"):
        open_mine(
            SolveConfig(
                model=str(path), columns={"value": "profit"}, economics=Economics(copper_price=5)
            )
        )


def test_an_instance_without_periods_is_refused_but_for_its_pit(tmp_path):
    write_instance(varied_instance(3, 4, 5), tmp_path / "lib")
    for suffix in (".cpit", ".pcpsp"):
        (tmp_path / f"lib{suffix}").unlink()
    with pytest.raises(DataError, match=r"lib\.cpit does not exist"):
        run(SolveConfig(instance=str(tmp_path / "lib")))
    assert run(SolveConfig(instance=str(tmp_path / "lib"), method=Method.upit)).verdict.value > 0


@pytest.mark.parametrize("method", [Method.evolution, Method.gradient, Method.best])
def test_a_budget_of_decodes_gives_the_same_schedule_however_many_threads(method):
    instance = varied_instance(2, 5, 6)
    config = SolveConfig(method=method, decodes=60, seconds=1e-3, bound_decisions=3)
    found = [solve(instance, replace(config, threads=threads)) for threads in (1, 2)]
    assert np.array_equal(found[0].shares, found[1].shares)


@pytest.mark.parametrize("kind", list(Kind))
def test_the_default_is_no_worse_than_any_order_it_knows(kind):
    instance = varied_instance(2, 5, 6)
    config = SolveConfig(problem=kind, decodes=30, bound_decisions=3)
    assert config.method is Method.best
    best = solve(instance, config)
    assert best.verdict.feasible
    assert best.verdict.value <= best.upper
    for method in (Method.toposort, Method.cone, Method.filling, Method.zero_shot):
        other = solve(instance, replace(config, method=method, decodes=0, bound=BoundKind.lp))
        assert other.verdict.value <= best.verdict.value * (1 + 1e-9), method


def test_the_default_spends_its_clock_on_bound_and_search():
    config = SolveConfig(seconds=40)
    assert (config.cuts.seconds, config.search_seconds) == (20.0, 20.0)
    assert replace(config, bound=BoundKind.lp).search_seconds == 40.0
    assert replace(config, problem=Kind.pcpsp).search_seconds == 40.0
    assert replace(config, method=Method.evolution).search_seconds == 40.0


@pytest.mark.parametrize(("column", "assumed"), [("z", True), ("z_up", False), ("depth", False)])
def test_an_answer_about_an_unstated_direction_says_if(path, column, assumed):
    unnamed_at(path, 300)
    path.write_text(path.read_text().replace("x,y,z,", f"x,y,{column},", 1))
    solution = run(SolveConfig(model=str(path), method=QUICK))
    assert solution.report().endswith(UNSTATED) is assumed
    assert (UNSTATED in solution.summary()["notes"]) is assumed
    assert (solution.summary()["only_if"] == "z grows upward") is assumed
    for word in ("feasible   yes, ONLY IF z grows", "slopes     ONLY IF z grows upward: kept"):
        assert (word in solution.report()) is assumed
    stated = run(SolveConfig(model=str(path), method=QUICK, columns={"z_direction": "up"}))
    assert UNSTATED not in stated.report()


def test_ctrl_c_keeps_the_best(monkeypatch):
    instance = varied_instance(2, 5, 6)
    told = []

    def watch(seconds, decodes, best):
        told.append((seconds, decodes))
        if len(told) == 3:
            raise KeyboardInterrupt

    config = SolveConfig(method=Method.evolution, decodes=10**9, bound_decisions=3)
    solution = solve(instance, config, watch)
    assert solution.verdict.feasible
    assert np.isnan(told[-1][0])
    assert told[-1][1] == told[-2][1]


@pytest.mark.parametrize("divide", [",", ";"])
def test_the_schedule_comes_back_with_the_models_own_columns(tmp_path, path, divide):
    text = path.read_text()
    path.write_text(text.replace(",", ";") if divide == ";" else text)
    out = tmp_path / "schedule.csv"
    solution = run(SolveConfig(model=str(path), method=QUICK, schedule=str(out)))
    rows = list(csv.DictReader(out.open(encoding="utf-8"), delimiter=divide))
    model = read_csv(path)
    assert len(rows) == len(model.cell)
    assert [float(row["ton"]) for row in rows] == model.columns["ton"].tolist()
    periods = np.array([int(row["period"] or 0) for row in rows])
    assert np.array_equal(periods > 0, solution.shares.any(axis=(1, 2)))
    worth = sum(float(row["discounted_value"] or 0) for row in rows)
    assert worth == pytest.approx(solution.verdict.value, abs=0.01 * len(rows))


@pytest.mark.parametrize(
    ("held", "tail"), [("Period", "_2"), ("period,DESTINATION_2", "_3"), ("discounted_value", "_2")]
)
def test_a_model_that_has_a_period_column_keeps_it(tmp_path, path, capsys, held, tail):
    out, lines = tmp_path / "schedule.csv", path.read_text().splitlines()
    cells = ",9" * (held.count(",") + 1)
    path.write_text("\n".join([f"{lines[0]},{held}", *(line + cells for line in lines[1:])]))
    solution = run(SolveConfig(model=str(path), method=QUICK, schedule=str(out)))
    rows = list(csv.DictReader(out.open(encoding="utf-8")))
    assert {row[name] for row in rows for name in held.split(",")} == {"9"}
    worth = sum(float(row[f"discounted_value{tail}"] or 0) for row in rows)
    assert worth == pytest.approx(solution.verdict.value, abs=0.01 * len(rows))
    assert f"its columns are period{tail}, destination{tail}" in capsys.readouterr().out
    again = run(SolveConfig(model=str(out), method=QUICK))
    assert again.verdict.value == solution.verdict.value


def test_an_empty_last_cell_shifts_no_column_of_the_schedule(tmp_path, path):
    out, lines = tmp_path / "schedule.csv", path.read_text().splitlines()
    rows = [lines[0] + ",remark", *(line + "," for line in lines[1:])]
    path.write_text("\n".join(rows).replace(",", "\t"))
    solution = run(SolveConfig(model=str(path), method=QUICK, schedule=str(out)))
    rows = list(csv.DictReader(out.open(encoding="utf-8"), delimiter="\t"))
    assert {row["remark"] for row in rows} == {""}
    worth = sum(float(row["discounted_value"] or 0) for row in rows)
    assert worth == pytest.approx(solution.verdict.value, abs=0.01 * len(rows))


def test_the_page_stands_alone_and_tells_what_the_script_prints(tmp_path, path):
    page = tmp_path / "page.html"
    solution = run(SolveConfig(model=str(path), method=QUICK, report=str(page)))
    text = page.read_text(encoding="utf-8")
    assert "src='http" not in text
    assert text.count("data:image/png;base64,") == 5
    for words in ("kept: 45 degrees", f"{solution.upper:,.2f}", "copper price +20 %"):
        assert words in text, words
    assert "BROKEN" not in text
