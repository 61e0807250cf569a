"""The audit sees undercut slopes by coordinates, whatever the precedence graph says."""

from dataclasses import replace

import numpy as np
import pytest

from mine_rl_npv.data.economics import Economics, MinePlan, model_instance
from mine_rl_npv.data.instance import Graph
from mine_rl_npv.data.synthetic import Deposit, block_model
from mine_rl_npv.optimise.check import check_periods
from mine_rl_npv.slopes.audit import audit_slopes
from mine_rl_npv.slopes.cone import cell_slopes, runs_by_azimuth
from mine_rl_npv.slopes.graph import slope_graph
from mine_rl_npv.tools.solve import solve
from mine_rl_npv.tools.solve_config import Method, SolveConfig

RUN = runs_by_azimuth(45.0)


def mined(period, periods=4):
    """Periods (n,), -1 for never, as shares mined by the end of each period (n, T)."""
    period = np.asarray(period)[:, None]
    return ((period >= 0) & (period <= np.arange(periods))).astype(float)


@pytest.fixture
def column():
    """Three blocks over one another and a fourth beside the top."""
    return cell_slopes(np.array([[0, 0, 0], [0, 0, 1], [0, 0, 2], [2, 0, 2]]), (1, 1, 1), RUN, 0)


def test_a_pit_dug_from_the_top_keeps_its_slopes(column):
    audit = audit_slopes(column, mined([2, 1, 0, 2]))
    assert audit.kept
    assert (audit.blocks, audit.pairs) == (4, 4)
    assert "45 degrees" in audit.line()


@pytest.mark.parametrize(
    ("period", "broken"),
    [([0, 1, 0, 0], [0]), ([1, 1, 2, 0], [0, 1]), ([2, 1, 0, 3], [0]), ([2, 1, 0, -1], [0])],
)
def test_what_is_dug_under_later_or_unmined_blocks_is_named(column, period, broken):
    audit = audit_slopes(column, mined(period))
    assert audit.broken.tolist() == broken
    assert "BROKEN" in audit.line()


def test_shares_are_audited_by_what_is_gone_by_then(column):
    half = mined([1, 1, 1, 1]) * 0.5
    assert audit_slopes(column, half).kept
    half[1] = mined([3])[0]
    assert audit_slopes(column, half).broken.tolist() == [0, 1]


def test_the_reach_bounds_what_is_looked_at():
    cells = np.array([[0, 0, 0], [0, 0, 5]])
    apart = mined([0, 1])
    assert not audit_slopes(cell_slopes(cells, (1, 1, 1), RUN, 5), apart).kept
    assert audit_slopes(cell_slopes(cells, (1, 1, 1), RUN, 4), apart).kept


@pytest.mark.parametrize("pattern", ["5", "9", "1-5-9"])
@pytest.mark.parametrize("seed", range(3))
def test_the_audit_and_the_graph_agree_about_random_plans(pattern, seed):
    agree_about_random_plans(pattern, seed)


@pytest.mark.parametrize("seed", range(3))
def test_the_audit_and_the_graph_agree_about_angles(seed):
    agree_about_random_plans("", seed)


def agree_about_random_plans(pattern, seed):
    rng = np.random.default_rng(seed)
    cells = np.argwhere(rng.random((5, 6, 5)) < 0.8)
    cells -= cells.min(axis=0)
    slopes = cell_slopes(cells, (20.0, 20.0, 15.0), RUN, 0, pattern)
    graph = Graph(*slope_graph(slopes))
    owner = np.repeat(np.arange(graph.blocks), np.diff(graph.pointer))
    for _ in range(40):
        depth = cells[:, 2].max() - cells[:, 2]
        late = np.minimum(depth + (rng.random(len(cells)) < 0.01), 5)
        period = np.where(rng.random(len(cells)) < 0.01, -1, late)
        whole = np.where(period < 0, 99, period)
        by_graph = (whole[graph.index] <= whole[owner]) | (period[owner] < 0)
        assert audit_slopes(slopes, mined(period, 6)).kept == bool(by_graph.all())


def test_a_plan_that_a_wrong_graph_allows_is_rejected_by_the_checker():
    model = block_model(Deposit(6, 6, 4, seed=3, richness=1.0))
    instance = model_instance(model, Economics(), MinePlan(periods=3))
    loose = Graph(np.zeros(instance.blocks + 1, np.int64), np.zeros(0, np.int32))
    wrong = replace(instance, graph=loose)
    greedy = solve(wrong, SolveConfig(method=Method.greedy))
    assert not greedy.verdict.feasible
    assert "undercuts" in greedy.verdict.faults[0]
    assert "BROKEN" in greedy.report()
    right = solve(instance, SolveConfig(method=Method.greedy))
    assert right.verdict.feasible
    assert "kept" in right.report()
    nothing = check_periods(instance, np.full(instance.blocks, -1))
    assert nothing.feasible
    assert nothing.slopes.blocks == 0


@pytest.mark.parametrize("seed", range(8))
def test_the_audit_names_what_looking_at_every_pair_names(seed):
    rng = np.random.default_rng([seed, 7])
    sectors = ("90-180:38", "300-20:55") if seed % 2 else ()
    run = runs_by_azimuth(45.0, sectors)
    cells = np.argwhere(rng.random((5, 6, 5)) < rng.choice([0.5, 0.9]))
    size = rng.uniform(5.0, 25.0, 3)
    slopes = cell_slopes(cells, size, run, 0)
    if seed % 4 > 1:  # sub-blocks: edges and places of their own
        edge = slopes.edge * rng.choice([0.5, 1.0], (len(cells), 1))
        centre = slopes.centre + rng.uniform(-0.2, 0.2, cells.shape) * (slopes.edge - edge)
        slopes = replace(slopes, centre=centre, stated=centre, edge=edge, regular=False)
    depth = cells[:, 2].max() - cells[:, 2]
    late = np.clip(depth + rng.integers(-1, 2, len(cells)) * (rng.random(len(cells)) < 0.1), 0, 5)
    period = np.where(rng.random(len(cells)) < 0.05, -1, late)
    audit = audit_slopes(slopes, mined(period, 6))
    assert sorted(audit.broken.tolist()) == undercut_by_pairs(slopes, period)


def undercut_by_pairs(slopes, period):
    """Mined blocks that some later or unmined block stands on: every pair, in plain words."""
    gone = np.where(period < 0, 99, period)
    found = []
    for b in np.flatnonzero(period >= 0):
        for a in np.flatnonzero(gone > gone[b]):
            x, y, z = slopes.centre[a] - slopes.centre[b]
            if z <= 1e-6:
                continue
            azimuth = int(np.degrees(np.arctan2(x, y)) % 360) % 360
            cone = np.hypot(x, y) <= z * slopes.run[azimuth] + 1e-6
            wide = 0.49 * (slopes.edge[a] + slopes.edge[b])
            over = abs(x) < wide[0] and abs(y) < wide[1] and z >= wide[2]
            if cone or over:
                found.append(int(b))
                break
    return found
