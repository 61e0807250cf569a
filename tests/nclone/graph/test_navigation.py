"""The graph observation against slow twins, its padding, its key and what it never depends on."""

from collections import deque

import numpy as np
import pytest

from nclone.graph import features
from nclone.graph.distance import DistanceTables
from nclone.graph.features import MAX_EDGES, MAX_NODES
from nclone.graph.goals import EXIT_DOOR, EXIT_SWITCH
from nclone.graph.landmarks import find_landmarks
from nclone.graph.lattice import node_position
from nclone.graph.navigation import GraphConfig, build_graph, dense
from nclone.levels.format import pack_level
from nclone.levels.level import load_level

SEEN = ("node_feats", "edge_index", "edge_feats", "node_types", "edge_types")


def cave(seed=0, mines=12, door=True):
    """A random cave of all tile types with mines, one locked door and an exit."""
    rng = np.random.default_rng(seed)
    tiles = rng.integers(0, 38, (25, 44))
    tiles[rng.random((25, 44)) < 0.75] = 0
    tiles[4:7, 2:40] = 0
    tiles[:, 40] = 1
    tiles[5, 40] = 0
    records = [[0, 14, 22, 0, 0], [3, 166, 22, 0, 0], [4, 60, 22, 0, 0]]
    if door:
        records += [[6, 164, 22, 0, 0], [7, 90, 22, 0, 0]]
    records += [[int(rng.choice([1, 21])), *rng.integers(8, 96, 2), 0, 0] for _ in range(mines)]
    return load_level(pack_level(tiles, records))


@pytest.fixture
def tables():
    return DistanceTables()


def graph_of(tables, level, bits=0, objective=EXIT_SWITCH, config=None):
    return build_graph(tables, tables.add_level(find_landmarks(level)), bits, objective, config)


def test_landmarks_are_read_from_the_level():
    marks = find_landmarks(cave())
    assert marks.spawn == (84, 132)
    assert marks.goals == {0: (360, 132), 1: (996, 132), 2: (540, 132), 3: (984, 132)}
    assert marks.door_cells.tolist() == [[40, 5]]
    assert len(marks.mines_xy) == 12


def test_every_node_is_reachable_and_every_edge_joins_lattice_neighbours(tables):
    graph = graph_of(tables, cave())
    places = np.array([node_position(k) for k in graph.nodes])
    offsets = places[graph.edge_index[1]] - places[graph.edge_index[0]]

    assert (np.abs(offsets).sum(axis=1) == 12).all()
    neighbours = {k: [] for k in range(len(places))}
    for source, target in graph.edge_index.T:
        neighbours[source].append(target)
    start = int(np.hypot(*(places - find_landmarks(cave()).spawn).T).argmin())
    seen, queue = {start}, deque([start])
    while queue:
        for to in neighbours[queue.popleft()]:
            if to not in seen:
                seen.add(to)
                queue.append(to)
    assert len(seen) == len(places)
    np.testing.assert_array_equal(graph.node_index[graph.nodes], np.arange(len(places)))


def test_node_features_have_the_values_of_the_specification(tables):
    level = cave()
    graph, marks = graph_of(tables, level), find_landmarks(level)
    places = np.array([node_position(k) for k in graph.nodes])
    feats = graph.node_feats
    deadly = {tuple(p): d for p, d in zip(marks.mines_xy, marks.mines_deadly, strict=True)}

    def near(place, radius):
        return np.hypot(*(places - place).T) <= radius

    np.testing.assert_allclose(feats[:, 0], places[:, 0] / 1056, rtol=1e-6)
    np.testing.assert_allclose(feats[:, 1], places[:, 1] / 600, rtol=1e-6)
    np.testing.assert_array_equal(feats[:, 2:9].argmax(1), graph.node_types)
    np.testing.assert_array_equal(feats[:, 2:9].sum(1), 1)
    spawn = near(marks.spawn, 24)
    assert (graph.node_types[spawn] == features.SPAWN).all()
    assert (graph.node_types[near(marks.goals[0], 12) & ~spawn] == features.EXIT_SWITCH_NODE).all()
    mined = np.array([any(near(p, 12)[k] for p in deadly) for k in range(len(places))])
    np.testing.assert_array_equal(feats[:, 9] == 1, mined)
    assert set(feats[mined, 10]) <= {-1, 1}
    np.testing.assert_allclose(feats[mined & (feats[:, 10] < 0), 11], 4 / 20)
    np.testing.assert_array_equal(
        feats[:, 15] * 4, np.bincount(graph.edge_index[0], minlength=len(places))
    )
    np.testing.assert_allclose(feats[:, 17], (places[:, 0] - 360) / 1056, atol=1e-6)
    np.testing.assert_allclose(feats[:, 18], (places[:, 1] - 132) / 600, atol=1e-6)
    assert feats[graph.objective_node, 19] == 0
    assert feats[:, 19].max() == 1
    assert (np.abs(feats) <= 1).all()


def test_hops_and_centrality_vary_and_centrality_equals_brandes(tables):
    level = cave(seed=4, mines=0, door=False)
    graph = graph_of(tables, level)
    n = len(graph.nodes)
    starts = np.searchsorted(graph.edge_index[0], np.arange(n + 1)).astype(np.int32)
    order = np.random.default_rng(1).permutation(n)
    fast = np.empty(n, np.float32)
    features.betweenness(graph.edge_index.astype(np.int32), starts, order, fast)

    slow = np.zeros(n)
    targets = graph.edge_index[1].astype(int)
    for source in order[:100]:
        depth, paths, credit = {source: 0}, {source: 1.0}, dict.fromkeys(range(n), 0.0)
        line = [source]
        for node in line:
            for to in targets[starts[node] : starts[node + 1]]:
                if to not in depth:
                    depth[to], paths[to] = depth[node] + 1, 0.0
                    line.append(to)
                if depth[to] == depth[node] + 1:
                    paths[to] += paths[node]
        for node in reversed(line[1:]):
            for before in targets[starts[node] : starts[node + 1]]:
                if depth[before] == depth[node] - 1:
                    credit[before] += paths[before] / paths[node] * (1 + credit[node])
            slow[node] += credit[node]
    np.testing.assert_allclose(fast, slow / slow.max(), rtol=1e-5)
    assert np.ptp(graph.node_feats[:, 20]) > 0.5


def test_edge_features_equal_a_slow_twin(tables):
    level = cave(seed=2, mines=40)
    graph, marks = graph_of(tables, level), find_landmarks(level)
    places = np.array([node_position(k) for k in graph.nodes])
    for e in np.random.default_rng(0).choice(len(graph.edge_types), 300, replace=False):
        a, b = places[graph.edge_index[0, e]], places[graph.edge_index[1, e]]
        offsets = marks.mines_xy - (a + b) / 2
        distance = np.hypot(*offsets.T)
        radius = np.where(marks.mines_deadly, 4.0, 3.5)
        along = np.clip((marks.mines_xy - a) @ (b - a) / 144, 0, 1)
        gap = np.hypot(*(a + along[:, None] * (b - a) - marks.mines_xy).T)
        close = distance < 2 * radius
        threat = (radius / np.maximum(distance, 1))[close & marks.mines_deadly].sum()
        category = 0 if a[1] == b[1] else (0.66 if b[1] < a[1] else 1)
        expected = [1, 0, 0, 0, 1, 1, *((b - a) / [1056, 600]), 12 / np.hypot(1056, 600), category]
        expected += [distance.min() / np.hypot(1056, 600)]
        expected += [((gap < 14) & marks.mines_deadly).any(), min(threat / 5, 1)]
        expected += [min(close.sum() / 5, 1)]
        np.testing.assert_allclose(graph.edge_feats[e], expected, atol=1e-6)


def test_an_open_door_and_another_objective_make_other_graphs(tables):
    level = cave()
    shut, opened = graph_of(tables, level), graph_of(tables, level, bits=1)
    second = graph_of(tables, level, bits=1, objective=EXIT_DOOR)

    assert shut.goal_nodes[EXIT_DOOR] == -1
    assert opened.goal_nodes[EXIT_DOOR] >= 0
    assert len(opened.nodes) > len(shut.nodes)
    assert shut.node_feats[:, 13].any()
    assert not opened.node_feats[:, 13].any()
    assert len({g.key for g in (shut, opened, second)}) == 3
    assert graph_of(DistanceTables(), level).key == shut.key


def test_functional_edges_join_switch_and_door_both_ways(tables):
    level = cave()
    graph = graph_of(tables, level, 1, EXIT_SWITCH, GraphConfig(functional_edges=True))
    extra = graph.edge_index[:, graph.edge_types == features.FUNCTIONAL]
    switch, door = graph.goal_nodes[2], graph.goal_nodes[3]
    assert extra.T.tolist() == [[switch, door], [door, switch]]
    assert (graph.edge_feats[-2:, 2] == 1).all()


def test_edge_features_can_be_left_out(tables):
    graph = graph_of(tables, cave(), config=GraphConfig(edge_features=False))
    assert graph.edge_feats.shape == (0, 14)
    assert not dense(graph)["graph_edge_feats"].any()


def test_the_dense_form_pads_the_ragged_one_with_zeros(tables):
    graph = graph_of(tables, cave())
    padded = dense(graph)
    n, e = len(graph.nodes), len(graph.edge_types)
    shapes = {k: v.shape for k, v in padded.items()}
    assert shapes == {
        "graph_node_feats": (MAX_NODES, 21),
        "graph_edge_index": (2, MAX_EDGES),
        "graph_edge_feats": (MAX_EDGES, 14),
        "graph_node_mask": (MAX_NODES,),
        "graph_edge_mask": (MAX_EDGES,),
        "graph_node_types": (MAX_NODES,),
        "graph_edge_types": (MAX_EDGES,),
    }
    for name, size in (("node", n), ("edge", e)):
        mask = padded[f"graph_{name}_mask"]
        assert mask.sum() == size
        assert mask[:size].all()
        np.testing.assert_array_equal(padded[f"graph_{name}_feats"][:size], graph_part(graph, name))
        assert not padded[f"graph_{name}_feats"][size:].any()
    np.testing.assert_array_equal(padded["graph_edge_index"][:, :e], graph.edge_index)


def graph_part(graph, name):
    return graph.node_feats if name == "node" else graph.edge_feats


def test_the_players_node_is_found_near_by_and_far_away(tables):
    graph = graph_of(tables, cave())
    places = np.array([node_position(k) for k in graph.nodes])
    rng = np.random.default_rng(0)
    for x, y in rng.uniform((0, 0), (1056, 600), (200, 2)):
        found = features.graph_node_at(graph.node_index, graph.nodes, x, y)
        distance = np.hypot(*(places - [x, y]).T)
        assert distance[found] == pytest.approx(distance.min())
