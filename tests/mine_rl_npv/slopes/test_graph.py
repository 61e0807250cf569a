"""Precedence from coordinates against every pair of blocks: voids, turns, unequal blocks."""

import math

import numpy as np
import pytest

from frugal_rl.errors import ConfigError, DataError
from mine_rl_npv.data.instance import Graph
from mine_rl_npv.data.lattice import turn
from mine_rl_npv.data.minelib import read_instance
from mine_rl_npv.slopes import graph
from mine_rl_npv.slopes.cone import Slopes, cell_slopes, runs_by_azimuth
from mine_rl_npv.slopes.graph import slope_graph

RUN = runs_by_azimuth(45.0)


def cells(*shape):
    return np.argwhere(np.ones(shape))


def graph_of(slopes):
    return Graph(*slope_graph(slopes))


def closure(graph):
    """(n, n) bool: row needs column, directly or not."""
    reach = np.eye(graph.blocks, dtype=bool)
    for b in graph.order:
        for p in graph.index[graph.pointer[b] : graph.pointer[b + 1]]:
            reach[b] |= reach[p]
    return reach & ~np.eye(graph.blocks, dtype=bool)


def slow_cone(centre, edge, degrees=lambda azimuth: 45.0):
    """(n, n) bool: row's cone or footprint holds column; plain arithmetic on centroids."""
    n = len(centre)
    inside = np.zeros((n, n), bool)
    for b in range(n):
        for a in range(n):
            x, y, z = centre[a] - centre[b]
            if z <= 1e-6:
                continue
            over = 2 * abs(x) < 0.98 * (edge[a] + edge[b])[0]
            over = over and 2 * abs(y) < 0.98 * (edge[a] + edge[b])[1]
            azimuth = math.degrees(math.atan2(x, y)) % 360
            allowed = z / math.tan(math.radians(degrees(azimuth)))
            inside[b, a] = over or math.hypot(x, y) <= allowed + 1e-6
    return inside


def drawn_slopes(seed):
    """A lattice with voids, of any shape, under any rule."""
    dice = np.random.default_rng(seed)
    position = cells(*dice.integers(1, [16, 16, 12]))
    position = position[dice.random(len(position)) >= dice.choice([0, 0, 0.02, 0.3, 0.9])]
    dice.shuffle(position)
    size = dice.choice([1.0, 3.3, 5.0, 12.5], 3)
    sector = "{}-{}:{:.1f}".format(*dice.choice(360, 2, replace=False), dice.uniform(20, 75))
    run = runs_by_azimuth(dice.choice([3, 15, 30, 45, 70]), [sector] if dice.random() < 0.4 else [])
    pattern = str(dice.choice(["", "", "", "5", "9", "1-5-9"]))
    return cell_slopes(position, size.tolist(), run, int(dice.choice([0, 1, 3, 8])), pattern)


def test_rows_of_cells_say_what_block_after_block_says(monkeypatch):
    drawn = [slopes for slopes in map(drawn_slopes, range(60)) if len(slopes.centre)]
    benches, real = [], graph._cone_rows
    monkeypatch.setattr(
        graph, "_cone_rows", lambda *of: [rows := real(*of), benches.append(len(rows))][0]
    )
    by_rows = [graph_of(slopes) for slopes in drawn]
    assert {0, 1, 9} <= set(benches)  # by turns of benches; walls flatter than rows; steep ones
    monkeypatch.setattr(graph, "_cone_rows", lambda *of: np.zeros((0, 1), np.uint64))
    for slopes, found in zip(drawn, by_rows, strict=True):
        alone = graph_of(slopes)
        np.testing.assert_array_equal(found.pointer, alone.pointer)
        np.testing.assert_array_equal(found.index, alone.index)


def test_45_degrees_over_8_levels_of_cubes_need_the_seventeen_known_offsets():
    position = cells(17, 17, 9)
    graph = graph_of(cell_slopes(position, (1, 1, 1), RUN, 8))
    b = int(np.flatnonzero((position == [8, 8, 0]).all(axis=1))[0])
    found = position[graph.index[graph.pointer[b] : graph.pointer[b + 1]]] - position[b]
    expected = {(0, 0, 1), (1, 0, 1), (-1, 0, 1), (0, 1, 1), (0, -1, 1)}
    expected |= {(x, y, 3) for x in (-2, 2) for y in (-2, 2)}
    expected |= {(x, y, 5) for a, b in ((3, 4), (4, 3)) for x in (-a, a) for y in (-b, b)}
    assert set(map(tuple, found.tolist())) == expected


@pytest.mark.parametrize("seed", range(4))
def test_voids_break_no_slope_and_no_arc_is_said_twice(seed):
    rng = np.random.default_rng(seed)
    position = cells(6, 6, 6)
    position = position[rng.random(len(position)) < (0.5, 0.7, 0.9, 1.0)[seed]]
    slopes = cell_slopes(position, (20.0, 20.0, 15.0), RUN, 0)
    graph = graph_of(slopes)
    whole = closure(graph)
    assert np.array_equal(whole, slow_cone(slopes.centre, slopes.edge))
    owner = np.repeat(np.arange(graph.blocks), np.diff(graph.pointer))
    for b, p in zip(owner.tolist(), graph.index.tolist(), strict=True):
        others = graph.index[graph.pointer[b] : graph.pointer[b + 1]]
        assert not any(whole[o, p] for o in others.tolist()), (b, p)


def test_a_void_wider_than_the_stated_levels_keeps_what_is_above_it():
    position = cells(5, 5, 9)
    hollow = (position[:, 2] > 1) & (position[:, 2] < 7)
    slopes = cell_slopes(position[~hollow], (1, 1, 1), RUN, 2)
    assert np.array_equal(closure(graph_of(slopes)), slow_cone(slopes.centre, slopes.edge))


def test_a_moved_centroid_keeps_the_slopes_of_both_its_places():
    slopes = cell_slopes(cells(5, 5, 4), (20.0, 20.0, 20.0), RUN, 0)
    stated = slopes.centre.copy()
    stated[37] += (5.0, -3.0, 4.0)
    moved = Slopes(slopes.centre, stated, slopes.edge, RUN, 0, True)
    whole = closure(graph_of(moved))
    assert whole[slow_cone(slopes.centre, slopes.edge)].all()
    by_file = slow_cone(stated, slopes.edge * 1e-9)
    assert whole[by_file].all()


def test_sub_blocks_need_whatever_lies_over_their_footprint():
    parents = cells(3, 3, 3) * 20.0 + 10.0
    split = np.array([1, 1, 1]) * 20.0
    children = cells(2, 2, 4) * (10.0, 10.0, 5.0) + split + (5.0, 5.0, 2.5)
    keep = ~(parents == split + 10.0).all(axis=1)
    centre = np.vstack((parents[keep], children))
    edge = np.vstack((np.full((keep.sum(), 3), 20.0), np.tile((10.0, 10.0, 5.0), (16, 1))))
    graph = graph_of(Slopes(centre, centre, edge, RUN, 8, False))
    assert closure(graph)[slow_cone(centre, edge)].all()


def test_a_slope_may_depend_on_the_azimuth_also_in_a_rotated_model():
    sectors = ("60-120:30", "330-30:60")

    def degrees(azimuth):
        return 30.0 if 60 <= azimuth < 120 else 60.0 if azimuth >= 330 or azimuth < 30 else 45.0

    position = cells(7, 7, 3)
    world = turn(position * 10.0, -25.0)  # axes that point to azimuth 25
    slopes = cell_slopes(position, (10, 10, 10), runs_by_azimuth(45.0, sectors, 25.0), 0)
    whole = closure(graph_of(slopes))
    needed = slow_cone(world, slopes.edge * 1e-9, degrees)
    assert whole[needed].all()
    assert whole.sum() > closure(graph_of(cell_slopes(position, (10, 10, 10), RUN, 0))).sum()


@pytest.mark.parametrize("sector", ["90:40", "0-400:40", "10-20:95", "0-90:-3", "east:40"])
def test_a_sector_that_says_nothing_is_refused(sector):
    with pytest.raises(ConfigError, match="slope_sectors"):
        runs_by_azimuth(45.0, (sector,))


@pytest.mark.parametrize(("name", "inner"), [("5", (5, 5)), ("9", (9, 9)), ("1-5-9", (5, 9))])
def test_named_patterns_give_their_number_of_predecessors(name, inner):
    position = cells(5, 5, 5)
    graph = graph_of(cell_slopes(position, (20.0, 20.0, 15.0), RUN, 0, name))
    degree = np.diff(graph.pointer)
    for z, expected in ((1, inner[0]), (2, inner[1])):
        b = int(np.flatnonzero((position == [2, 2, z]).all(axis=1))[0])
        assert degree[b] == expected


def test_blocks_strewn_over_the_globe_are_refused():
    far = np.vstack((cells(3, 3, 3), [[10**5, 10**5, 10**3]]))
    with pytest.raises(DataError, match="far-away coordinates"):
        slope_graph(cell_slopes(far, (1, 1, 1), RUN, 0))


def test_kd_is_rebuilt_from_its_slope(shared_data):
    """45 degrees over 8 levels of 20 x 20 x 15 m blocks, as the data's notes say."""
    kd = read_instance(shared_data / "minelib/kd/kd")
    ours = graph_of(cell_slopes(kd.position, (20.0, 20.0, 15.0), RUN, 8))

    def arcs(graph):
        owner = np.repeat(np.arange(graph.blocks), np.diff(graph.pointer))
        return set(zip(owner.tolist(), graph.index.tolist(), strict=True))

    assert arcs(kd.graph) <= arcs(ours)
    assert len(arcs(ours)) - kd.graph.arcs < 100
