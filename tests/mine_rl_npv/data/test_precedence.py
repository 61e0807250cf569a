"""Graphs of precedence: orders, cycles and sums over cones."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from frugal_rl.errors import DataError
from mine_rl_npv.data.instance import Graph
from mine_rl_npv.data.precedence import cone_counts, cone_sums, find_cycle
from mine_rl_npv.slopes.cone import cell_slopes, runs_by_azimuth
from mine_rl_npv.slopes.graph import slope_graph

CUBE = np.argwhere(np.ones((4, 4, 4)))


def patterned(pattern):
    return Graph(*slope_graph(cell_slopes(CUBE, (1, 1, 1), runs_by_azimuth(45.0), 0, pattern)))


def test_orders_put_predecessors_first_and_cycles_are_named():
    graph = patterned("9")
    place = np.empty(graph.blocks, int)
    place[graph.order] = np.arange(graph.blocks)
    owner = np.repeat(np.arange(graph.blocks), np.diff(graph.pointer))
    assert (place[graph.index] < place[owner]).all()
    ring = Graph(np.array([0, 1, 2, 3]), np.array([1, 2, 0], np.int32))
    assert find_cycle(ring.pointer, ring.index) == [0, 1, 2, 0]
    with pytest.raises(DataError, match="cycle"):
        _ = ring.order


def test_cone_counts_and_sums_equal_a_slow_closure():
    graph = patterned("5")
    value = np.random.default_rng(0).normal(size=(graph.blocks, 1))
    reach = np.eye(graph.blocks, dtype=bool)
    for b in graph.order:
        for p in graph.index[graph.pointer[b] : graph.pointer[b + 1]]:
            reach[b] |= reach[p]
    assert_array_equal(cone_counts(graph.pointer, graph.index), reach.sum(axis=1) - 1)
    np.testing.assert_allclose(cone_sums(graph.pointer, graph.index, value), reach @ value)
