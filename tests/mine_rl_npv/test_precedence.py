"""Slope templates, graphs over grids, orders and cycles."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from frugal_rl.errors import ConfigError, DataError
from mine_rl_npv.data.instance import Graph
from mine_rl_npv.data.minelib import read_instance
from mine_rl_npv.precedence import (
    cone_counts,
    cone_sums,
    find_cycle,
    named_pattern,
    slope_template,
    template_graph,
)


def cube(n):
    return np.stack(np.meshgrid(*[np.arange(n)] * 3, indexing="ij"), -1).reshape(-1, 3)


def test_the_reduced_45_degree_template_has_the_seventeen_known_offsets():
    expected = {(0, 0, 1), (1, 0, 1), (-1, 0, 1), (0, 1, 1), (0, -1, 1)}
    expected |= {(x, y, 3) for x in (-2, 2) for y in (-2, 2)}
    expected |= {(x, y, 5) for a, b in ((3, 4), (4, 3)) for x in (-a, a) for y in (-b, b)}
    assert set(slope_template(45.0, (1, 1, 1), 8)) == expected


def test_the_reduced_template_implies_the_whole_cone():
    position = cube(9)
    graph = Graph(*template_graph(position, slope_template(45.0, (1, 1, 1), 4)))
    bottom = int(np.flatnonzero((position == [4, 4, 0]).all(axis=1))[0])
    dx, dy, dz = (position - position[bottom]).T
    level = np.flatnonzero((dx**2 + dy**2 <= dz**2) & (dz > 0) & (dz <= 4))
    needed, todo = set(), [bottom]
    while todo:
        b = todo.pop()
        for p in graph.index[graph.pointer[b] : graph.pointer[b + 1]].tolist():
            if p not in needed:
                needed.add(p)
                todo.append(p)
    assert set(level.tolist()) <= needed


def test_a_slope_may_depend_on_the_azimuth():
    template = slope_template(lambda azimuth: 30.0 if 45 <= azimuth <= 135 else 60.0, (1, 1, 1), 2)
    reach = {axis: max(abs(o[i]) / o[2] for o in template) for i, axis in enumerate("xy")}
    assert reach["x"] > reach["y"]


@pytest.mark.parametrize(("name", "inner"), [("5", (5, 5)), ("9", (9, 9)), ("1-5-9", (5, 9))])
def test_named_patterns_give_their_number_of_predecessors(name, inner):
    position = cube(5)
    graph = Graph(*template_graph(position, *named_pattern(name)))
    degree = np.diff(graph.pointer)
    for z, expected in ((1, inner[0]), (2, inner[1])):
        b = int(np.flatnonzero((position == [2, 2, z]).all(axis=1))[0])
        assert degree[b] == expected


def test_an_unknown_pattern_is_refused():
    with pytest.raises(ConfigError, match="7"):
        named_pattern("7")


def test_air_needs_nothing_and_hides_nothing():
    position = cube(3)
    solid = ~(position == [1, 1, 2]).all(axis=1)
    graph = Graph(*template_graph(position[solid], *named_pattern("5")))
    b = int(np.flatnonzero((position[solid] == [1, 1, 1]).all(axis=1))[0])
    assert graph.pointer[b + 1] - graph.pointer[b] == 4


def test_orders_put_predecessors_first_and_cycles_are_named():
    graph = Graph(*template_graph(cube(4), *named_pattern("9")))
    place = np.empty(graph.blocks, int)
    place[graph.order] = np.arange(graph.blocks)
    owner = np.repeat(np.arange(graph.blocks), np.diff(graph.pointer))
    assert (place[graph.index] < place[owner]).all()
    ring = Graph(np.array([0, 1, 2, 3]), np.array([1, 2, 0], np.int32))
    assert find_cycle(ring.pointer, ring.index) == [0, 1, 2, 0]
    with pytest.raises(DataError, match="cycle"):
        _ = ring.order


def test_cone_counts_and_sums_equal_a_slow_closure():
    graph = Graph(*template_graph(cube(4), *named_pattern("5")))
    value = np.random.default_rng(0).normal(size=(graph.blocks, 1))
    reach = np.eye(graph.blocks, dtype=bool)
    for b in graph.order:
        for p in graph.index[graph.pointer[b] : graph.pointer[b + 1]]:
            reach[b] |= reach[p]
    assert_array_equal(cone_counts(graph.pointer, graph.index), reach.sum(axis=1) - 1)
    np.testing.assert_allclose(cone_sums(graph.pointer, graph.index, value), reach @ value)


def test_kd_is_rebuilt_from_its_slope(shared_data):
    """45 degrees over 8 levels of 20 x 20 x 15 m blocks, as the data's notes say."""
    kd = read_instance(shared_data / "minelib/kd/kd")
    template = slope_template(45.0, (20.0, 20.0, 15.0), 8)
    pointer, index = template_graph(kd.position, template)
    ours = set(zip(np.repeat(np.arange(kd.blocks), np.diff(pointer)).tolist(), index.tolist(),
                   strict=True))  # fmt: skip
    theirs = set(zip(np.repeat(np.arange(kd.blocks), np.diff(kd.graph.pointer)).tolist(),
                     kd.graph.index.tolist(), strict=True))  # fmt: skip
    assert ours == theirs
