"""Dense, ragged and interned graphs are one content; equal graphs have one id."""

import numpy as np
import pytest

from frugal_rl.observation.choices import Storage
from frugal_rl.observation.edge import Edge, decode
from frugal_rl.observation.encoding import Encoding
from frugal_rl.observation.spec import ObservationSpec
from frugal_rl.observation.tables import Tables
from nclone.graph.distance import DistanceTables
from nclone.graph.fields import GraphIds, graph_fields, graph_rows, graph_table
from nclone.graph.landmarks import find_landmarks
from nclone.graph.navigation import GraphConfig, build_graph, dense
from nclone.levels.generators import Recipe, draw_recipes, generate


@pytest.fixture
def distances():
    tables = DistanceTables()
    levels = [generate(recipe) for recipe in draw_recipes("simple", 5)]
    tables.add_levels([find_landmarks(level) for level in levels])
    return tables


@pytest.mark.parametrize("form", ["dense", "ragged", "interned"])
def test_every_representation_decodes_to_the_padded_graph(distances, form):
    table = graph_table()
    ids = GraphIds(distances, table)
    spec = ObservationSpec(graph_fields())
    fields = dict.fromkeys((f.name for f in spec.observed()), form)
    encoding = Encoding.choose(spec, Storage.lossless, fields=fields)
    number = np.array([ids.find(k, 0, hit) for k in range(5) for hit in (False, True)])

    tables = Tables(graph=table)
    rows = Edge(encoding, tables, len(number)).encode({"graph_id": number})
    decoded = decode(encoding, rows, tables)

    for n, (level, hit) in enumerate((k, hit) for k in range(5) for hit in (0, 1)):
        for name, expected in dense(build_graph(distances, level, 0, hit)).items():
            found = decoded[name][n].T if name == "graph_edge_index" else decoded[name][n]
            assert found.dtype == expected.dtype
            if form == "ragged" and expected.dtype == np.float32:  # the core's ragged form is half
                expected = expected.astype(np.float16).astype(np.float32)
            np.testing.assert_array_equal(found, expected)


def test_equal_graphs_share_an_id_and_others_do_not(distances):
    ids = GraphIds(distances, graph_table())
    first = [ids.find(k, 0, hit) for k in range(5) for hit in (False, True)]
    again = np.full(10, -1)
    levels, hits = np.repeat(np.arange(5), 2), np.tile([False, True], 5)
    ids.update(again, levels, np.zeros(10, int), hits, range(10))

    assert again.tolist() == first == list(range(10))
    copy = DistanceTables()
    other = GraphIds(copy, ids._table)
    copy.add_levels([find_landmarks(generate(Recipe("islands", "medium", 0)))])
    copy.add_levels(distances.levels)
    assert other.find(1, 0, False) == first[0]


def test_without_edge_features_none_are_stored(distances):
    config = GraphConfig(edge_features=False)
    names = {f.name for f in graph_fields(config)}
    rows = graph_rows(build_graph(distances, 0, config=config), config)
    assert "graph_edge_feats" not in names
    assert set(rows) == names == set(graph_table(config).fields)
