"""Graphs of precedence: orders, cycles and sums over cones."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from frugal_rl.errors import DataError
from mine_rl_npv.data.cones import cone_sums
from mine_rl_npv.data.instance import Graph
from mine_rl_npv.data.precedence import cone_counts, find_cycle
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


def reached(graph):
    reach = np.eye(graph.blocks, dtype=bool)
    for b in graph.order:
        for p in graph.index[graph.pointer[b] : graph.pointer[b + 1]]:
            reach[b] |= reach[p]
    return reach


def test_cone_counts_equal_a_slow_closure():
    graph = patterned("5")
    counted = cone_counts(graph.pointer, graph.index)
    assert_array_equal(counted, reached(graph).sum(axis=1) - 1)


def holed_mine(rng):
    """A lattice of more columns than one pass looks at, with voids and rows in any order."""
    cell = np.argwhere(rng.random((13, 11, 6)) < 0.8)
    rng.shuffle(cell)
    slopes = cell_slopes(cell, (10, 10, 8), runs_by_azimuth(52.0), 0)
    return Graph(*slope_graph(slopes)), cell


@pytest.mark.parametrize("seed", range(3))
def test_cone_sums_equal_a_slow_closure_both_ways(seed):
    rng = np.random.default_rng(seed)
    graph, cell = holed_mine(rng)
    value = rng.normal(size=(graph.blocks, 3))
    for one in (graph, graph.successors):
        assert_allclose(cone_sums(one, value, cell), reached(one) @ value, atol=1e-9)


def test_cone_sums_of_blocks_whose_places_say_nothing_are_the_same():
    rng = np.random.default_rng(4)
    graph, cell = holed_mine(rng)
    value = rng.normal(size=(graph.blocks, 2))
    for place in (rng.permutation(cell), np.zeros_like(cell)):
        assert_allclose(cone_sums(graph, value, place), reached(graph) @ value, atol=1e-9)


def test_a_column_of_more_blocks_than_a_place_counts_is_summed_in_pieces():
    n = 70_000  # two pieces of 32,000 and one of 6,000
    needs = np.arange(-1, n - 1, dtype=np.int32)[1:]
    graph = Graph(np.concatenate(([0], np.arange(n))).astype(np.int64), needs)
    depth = np.column_stack((np.zeros(n), np.zeros(n), -np.arange(n))).astype(int)
    assert_array_equal(cone_sums(graph, np.ones((n, 1)), depth)[:, 0], np.arange(1, n + 1))
