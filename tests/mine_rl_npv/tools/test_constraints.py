"""Mining width, bench advance and blending: honoured, checked by other code, bounded."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from frugal_rl.errors import ConfigError
from frugal_rl.run.building import build_as
from mine_rl_npv.data.blending import blending_rows, by_period_alone
from mine_rl_npv.data.block_model import read_csv
from mine_rl_npv.data.economics import MILL, Economics, MinePlan, model_instance
from mine_rl_npv.data.panels import best_panels, narrow_blocks
from mine_rl_npv.data.solutions import period_of
from mine_rl_npv.data.synthetic import Deposit, block_model
from mine_rl_npv.optimise.check import check_shares
from mine_rl_npv.optimise.problem import pace_of
from mine_rl_npv.tools.constrained import solve_mine
from mine_rl_npv.tools.solve import solve
from mine_rl_npv.tools.solve_config import Constraints, Kind, Method, SolveConfig

CHEAP = Economics(copper_price=1.2, molybdenum_price=4.0)
QUICK = SolveConfig(method=Method.toposort)


@cache
def mine():
    """Made when first asked for: its kernels are compiled by one process of the tests alone."""
    blocks = block_model(Deposit(9, 8, 6, seed=5, richness=0.5))
    return model_instance(blocks, CHEAP, MinePlan(periods=6, slope_levels=0))


def under(**asked):
    problem = Kind.pcpsp if "blend" in asked else Kind.cpit
    return replace(QUICK, problem=problem, constraints=Constraints(**asked))


def test_every_place_is_as_wide_as_the_machines_and_the_bound_holds():
    free = solve(mine(), QUICK)
    wide = solve_mine(mine(), under(mining_width=60.0))
    assert wide.verdict.feasible, wide.report()
    assert wide.verdict.slopes.kept
    assert wide.verdict.value < free.verdict.value
    assert wide.upper == pytest.approx(free.upper)
    period = period_of(wide.shares)
    assert (period >= 0).any()
    assert not narrow_blocks(mine(), period, (3, 3)).any()
    assert narrow_blocks(mine(), period_of(free.shares), (3, 3)).any()
    assert "3 x 3 blocks are dug whole" in wide.report()


@pytest.mark.parametrize(
    ("heights", "words"),
    [(lambda z: -z, "needs z to grow upward"), (lambda z: 15 * z, "which are 15 apart")],
)
def test_benches_that_files_do_not_count_upward_are_refused(heights, words):
    """Depths let a column sink from below; metres took any two blocks for far enough apart."""
    position = mine().position.copy()
    position[:, 2] = heights(position[:, 2])
    counted = replace(mine(), slopes=None)
    assert solve_mine(counted, under(bench_advance=2)).verdict.feasible
    with pytest.raises(ConfigError, match=words):
        solve_mine(replace(counted, position=position), under(bench_advance=2))


@pytest.mark.parametrize(
    ("upper", "taken"),
    [
        ("0,0,15,1000,3,10,10,10\n10,0,15,1000,3,10,10,10", True),  # uneven benches, whole blocks
        ("0,0,12.5,500,3,10,10,5\n0,0,17.5,500,3,10,10,5\n10,0,15,1000,3,10,10,10", False),
        ("-2.5,0,15,500,3,5,10,10\n2.5,0,15,500,3,5,10,10\n10,0,15,1000,3,10,10,10", False),
    ],
)
def test_sub_blocks_have_no_benches_to_count(tmp_path, upper, taken):
    """A column sank by 22.5 m where one bench of 15 m was asked for, and the report said kept."""
    path = tmp_path / "parts.csv"
    lower = "0,0,5,1000,3,10,10,10\n10,0,5,1000,3,10,10,10"
    path.write_text(f"x,y,z_up,ton,cu,dx,dy,dz\n{lower}\n{upper}\n")
    instance = model_instance(read_csv(path), CHEAP, MinePlan(periods=2, slope_levels=0))
    if taken:
        assert solve_mine(instance, under(bench_advance=1)).verdict.feasible
        return
    with pytest.raises(ConfigError, match="reaches over several of them"):
        solve_mine(instance, under(bench_advance=1))


def test_narrow_places_are_seen_block_by_block():
    flat = replace(mine(), position=mine().position)
    bench = flat.position[:, 2] == flat.position[:, 2].max()
    x, y = flat.position[:, 0], flat.position[:, 1]
    dug = bench & (x >= 2) & (x < 5) & (y >= 2) & (y < 4)
    period = np.where(dug, 0, -1)
    assert not narrow_blocks(flat, period, (3, 2)).any()
    assert narrow_blocks(flat, period, (2, 3)).sum() == 6
    period[bench & (x == 5) & (y == 2)] = 1
    assert narrow_blocks(flat, period, (3, 2)).sum() == 1


def test_a_column_sinks_no_faster_than_asked_and_the_checker_would_see_it():
    free = solve(mine(), QUICK)
    slow = solve_mine(mine(), under(bench_advance=1))
    assert slow.verdict.feasible, slow.report()
    assert 0 < slow.verdict.value < free.verdict.value <= free.upper == slow.upper
    strict = replace(mine(), bench_advance=1)
    faults = check_shares(strict, free.shares).faults
    assert any("deepened by more than 1 benches" in fault for fault in faults)
    both = solve_mine(mine(), under(bench_advance=2, mining_width=40.0))
    assert both.verdict.feasible, both.report()


def test_what_waits_is_the_nearest_block_so_many_benches_above():
    place = np.array([[0, 0, 0], [0, 0, 1], [0, 0, 3], [0, 0, 4], [1, 0, 4], [0, 1, 2]])
    arcs = pace_of(place, 2)
    needed = [arcs.index[arcs.pointer[b] : arcs.pointer[b + 1]].tolist() for b in range(6)]
    assert needed == [[2], [2], [], [], [], []]
    assert pace_of(place, 0) is None


@pytest.mark.parametrize("limit", ["cu:0.55-", "clays:-3.2", "cu:0.5-0.7"])
def test_the_mill_gets_a_blend_and_the_rows_say_so(limit):
    config = under(blend=(limit,))
    free = solve(mine(), replace(QUICK, problem=Kind.pcpsp))
    blend = solve_mine(mine(), config)
    assert blend.verdict.feasible, blend.report()
    assert blend.verdict.value <= free.verdict.value * (1 + 1e-9)
    assert blend.upper == pytest.approx(free.upper)
    name, _, span = limit.partition(":")
    low, high = (float(word) if word else None for word in span.split("-"))
    tonnes, column = mine().fields["ton"], mine().fields[name]
    milled = blend.shares[:, MILL] * tonnes[:, None]
    used = milled.sum(axis=0) > 1
    assert used.any()
    mean = (milled * column[:, None]).sum(axis=0)[used] / milled.sum(axis=0)[used]
    assert low is None or mean.min() >= low - 1e-9
    assert high is None or mean.max() <= high + 1e-9


def test_a_number_for_missing_assays_is_in_no_mean():
    fields = {
        "ton": np.ones(3),
        "pb": np.array([-99.0, 0.2, -99.0]),
        "acid": np.array([-2.5, 3, 1]),
    }
    with pytest.raises(ConfigError, match="'pb' holds -99 in 2 blocks"):
        blending_rows(fields, 2, ["pb:-0.1"])
    blending_rows(fields, 2, ["acid:-0.1"])


def test_a_blend_that_binds_costs_money_and_lp_direct_bounds_it():
    small = model_instance(
        block_model(Deposit(4, 4, 3, seed=2, richness=0.6)), CHEAP, MinePlan(periods=2)
    )
    wanted = float(np.quantile(small.fields["cu"], 0.8))
    config = under(blend=(f"cu:{wanted:.4f}-",))
    found = solve_mine(small, config)
    assert found.verdict.feasible, found.report()
    tight = solve_mine(small, replace(config, method=Method.lp_direct))
    assert found.verdict.value <= tight.upper * (1 + 1e-9)
    assert tight.upper < found.upper


def test_a_stockpile_says_which_rule_its_bound_is_of():
    money = replace(CHEAP, stockpile_cost=0.5)
    stocked = model_instance(
        block_model(Deposit(6, 6, 4, seed=5, richness=0.5)), money, MinePlan(periods=4)
    )
    config = replace(QUICK, problem=Kind.pcpsp, economics=money)
    found = solve_mine(stocked, config)
    assert found.verdict.feasible
    assert "ore waits 3 periods" in found.report()
    assert "ore waits" not in solve_mine(stocked, replace(config, economics=CHEAP)).report()


def test_rows_over_several_periods_are_not_taken_apart():
    rows = blending_rows(mine().fields, 3, ["cu:0.5-0.7"])
    assert by_period_alone(rows)
    assert not by_period_alone(replace(rows, row=np.zeros_like(rows.row)))
    assert not by_period_alone(replace(rows, low=rows.low + 1.0))


@pytest.mark.parametrize(
    "values",
    [
        {"constraints": {"blend": ["cu:0.5-"]}},
        {"constraints": {"blend": ["cu"]}, "problem": "pcpsp"},
        {"constraints": {"blend": ["gold:0-1"]}, "problem": "pcpsp"},
        {"constraints": {"blend": ["cu:0.9-0.1"]}, "problem": "pcpsp"},
        {"constraints": {"mining_width": -1}},
        {"constraints": {"mining_width": 40}, "problem": "pcpsp"},
        {"constraints": {"bench_advance": 1}, "method": "exact"},
        {"constraints": {"bench_advance": 1}, "bound": "cuts"},
        {"economics": {"stockpile_cost": 1.0}},
    ],
)
def test_what_cannot_be_honoured_is_refused(values):
    with pytest.raises(ConfigError, match=r"constraints|bound=cuts|stockpile"):
        solve_mine(mine(), build_as(SolveConfig, {"method": "toposort"} | values))


def test_a_width_needs_blocks_in_metres():
    with pytest.raises(ConfigError, match="mining_width needs"):
        solve_mine(replace(mine(), slopes=None), under(mining_width=40.0))
    assert best_panels(mine(), 40.0).cells == (2, 2)
