"""Maximum closures against slow ones."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse.csgraph import maximum_flow

from mine_rl_npv.data.instance import Graph
from mine_rl_npv.data.synthetic import varied_instance
from mine_rl_npv.optimise import nested
from mine_rl_npv.optimise.bound import relaxation
from mine_rl_npv.optimise.closure import largest_closure, max_closure
from mine_rl_npv.optimise.filling import capacity_pits
from mine_rl_npv.optimise.nested import first_closures
from mine_rl_npv.optimise.pits import penalised_pits, revenue_factor_pits, ultimate_pit
from mine_rl_npv.slopes.cone import cell_slopes, runs_by_azimuth
from mine_rl_npv.slopes.graph import slope_graph


def random_graph(rng, n, arcs):
    """Arcs from higher to lower ids only, so that there is no cycle."""
    pairs = np.sort(rng.integers(0, n, (arcs, 2)), axis=1)
    pairs = np.unique(pairs[pairs[:, 0] < pairs[:, 1]], axis=0)[:, ::-1]
    pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
    pointer = np.concatenate(([0], np.cumsum(np.bincount(pairs[:, 0], minlength=n))))
    return Graph(pointer.astype(np.int64), pairs[:, 1].astype(np.int32))


def is_closed(graph, inside):
    owner = np.repeat(np.arange(graph.blocks), np.diff(graph.pointer))
    return not (inside[owner] & ~inside[graph.index]).any()


def min_cut_value(weight, graph):
    """The closure's weight by scipy's maximum flow."""
    n = graph.blocks
    owner = np.repeat(np.arange(n), np.diff(graph.pointer))
    big = int(np.abs(weight).sum()) + 1
    rows = np.concatenate((np.full(n, n), np.arange(n), owner))
    cols = np.concatenate((np.arange(n), np.full(n, n + 1), graph.index))
    caps = np.concatenate((np.maximum(weight, 0), np.maximum(-weight, 0), np.full(graph.arcs, big)))
    flow = maximum_flow(
        sp.csr_matrix((caps.astype(np.int32), (rows, cols)), (n + 2, n + 2)), n, n + 1
    )
    return np.maximum(weight, 0).sum() - flow.flow_value


@pytest.mark.parametrize("seed", range(8))
def test_the_closure_is_the_best_of_all_subsets_of_a_small_graph(seed):
    rng = np.random.default_rng(seed)
    graph, weight = random_graph(rng, 10, 14), rng.integers(-9, 10, 10).astype(float)
    sets = [np.array(bits, bool) for bits in itertools.product((0, 1), repeat=10)]
    closed = [s for s in sets if is_closed(graph, s)]
    best = max(weight[s].sum() for s in closed)
    optimal = [s for s in closed if weight[s].sum() == best]
    assert_array_equal(max_closure(weight, graph), np.logical_and.reduce(optimal))
    assert_array_equal(largest_closure(weight, graph), np.logical_or.reduce(optimal))


@pytest.mark.parametrize("seed", range(20))
def test_the_closure_equals_a_minimum_cut(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(50, 400))
    graph = random_graph(rng, n, 4 * n)
    weight = rng.integers(-100, 60, n).astype(float)
    inside = max_closure(weight, graph)
    assert is_closed(graph, inside)
    assert weight[inside].sum() == min_cut_value(weight, graph)


@pytest.mark.parametrize("stride", [1, 2])
def test_slots_are_the_time_expanded_graph(stride):
    rng = np.random.default_rng(stride)
    graph, slots = random_graph(rng, 40, 100), 6
    weight = rng.integers(-50, 40, (40, slots)).astype(float)
    owner = np.repeat(np.arange(40), np.diff(graph.pointer))
    arcs = [(b * slots + s, b * slots + s + 1) for b in range(40) for s in range(slots - 1)]
    arcs += [
        (a * slots + s, p * slots + s)
        for a, p in zip(owner.tolist(), graph.index.tolist(), strict=True)
        for s in range(stride - 1, slots, stride)
    ]
    arcs = np.array(sorted(arcs))
    pointer = np.concatenate(([0], np.cumsum(np.bincount(arcs[:, 0], minlength=40 * slots))))
    expanded = Graph(pointer.astype(np.int64), arcs[:, 1].astype(np.int32))
    inside = max_closure(weight, graph, stride)
    assert is_closed(expanded, inside.ravel())
    assert weight[inside].sum() == min_cut_value(weight.ravel(), expanded)


def test_a_graph_without_profit_has_an_empty_pit():
    cells = np.argwhere(np.ones((3, 3, 3)))
    graph = Graph(*slope_graph(cell_slopes(cells, (1, 1, 1), runs_by_azimuth(45.0), 0, "5")))
    assert not max_closure(-np.ones(27), graph).any()
    assert max_closure(np.ones(27), graph).all()


def test_nested_pits_grow_and_end_in_the_ultimate_pit():
    instance = varied_instance(11)
    pits = penalised_pits(instance, 20)
    assert (np.diff(pits.blocks) >= 0).all()
    assert_array_equal(pits.first < 20, ultimate_pit(instance))
    assert_allclose(pits.value[-1], instance.value[ultimate_pit(instance)].sum())
    factors = revenue_factor_pits(instance, np.linspace(0.2, 1.0, 9))
    assert_array_equal(factors.first < 9, ultimate_pit(instance))
    assert len(factors.phases(4)) <= 4
    assert all(b == a + 1 for a, b in pits.gaps())


def test_first_closures_are_those_of_each_weight_by_itself():
    instance = varied_instance(11)
    tonnes = instance.use[:, 0]
    penalties = np.linspace((instance.value / tonnes).max(), 0, 23)
    each = [max_closure(instance.value - p * tonnes, instance.graph) for p in penalties]
    first = first_closures(lambda k: instance.value - penalties[k] * tonnes, 23, instance.graph)
    assert len(np.unique(first)) > 6
    for k, pit in enumerate(each):
        assert_array_equal(first <= k, pit)


def test_64_closures_look_at_each_block_seven_times_at_most(monkeypatch):
    instance = varied_instance(11)
    tonnes, looked_at = instance.use[:, 0], []
    penalties = np.linspace((instance.value / tonnes).max(), 0, 64)

    def counted(weight, graph):
        looked_at.append(len(weight))
        return max_closure(weight, graph)

    monkeypatch.setattr(nested, "max_closure", counted)
    first_closures(lambda k: instance.value - penalties[k] * tonnes, 64, instance.graph)
    assert len(looked_at) > 6
    assert sum(looked_at) <= 7 * instance.blocks


def dug_one_by_one(value, share, graph, count):
    """`capacity_pits` by closures of the whole graph."""
    top = (value / share).max()
    pits = {p: max_closure(value - p * share, graph) for p in (top, 0.0)}
    for _ in range(count - 2):
        edges = sorted(pits)
        steps = [share[pits[a] & ~pits[b]].sum() for a, b in itertools.pairwise(edges)]
        widest = int(np.argmax(steps))
        middle = (edges[widest] + edges[widest + 1]) / 2
        pits[middle] = max_closure(value - middle * share, graph)
    filled = np.full(len(value), share.sum())
    for penalty in sorted(pits):
        filled[pits[penalty]] = share[pits[penalty]].sum()
    return filled


def test_capacity_pits_equal_closures_of_the_whole_graph():
    instance = varied_instance(11)
    share = 0.1 + np.random.default_rng(0).random(instance.blocks)
    filled = capacity_pits(instance.value, share, instance.graph, 16)
    assert len(np.unique(filled)) > 8
    assert_allclose(filled, dug_one_by_one(instance.value, share, instance.graph, 16))


def test_capacity_pits_are_closures_dug_from_small_to_large():
    instance = varied_instance(11)
    share = np.random.default_rng(0).random(instance.blocks)
    filled = capacity_pits(instance.value, share, instance.graph, 20)
    for used in np.unique(filled):
        inside = filled <= used
        assert is_closed(instance.graph, inside)
        assert_allclose(share[inside].sum(), used)


def test_with_one_limit_the_relaxation_digs_the_capacity_pits_in_their_order():
    instance = varied_instance(11)
    instance = replace(
        instance, use=instance.use[:, :1], low=instance.low[:1], high=instance.high[:1] / 3
    )
    expected = relaxation(instance).expected_period()
    share = instance.use[:, 0] / instance.high[0, 0]
    filled = capacity_pits(instance.value, share, instance.graph)
    steps = np.unique(filled)
    assert len(steps) > 10
    for used in steps[:-1]:
        assert expected[filled <= used].max() <= expected[filled > used].min() + 1e-6
