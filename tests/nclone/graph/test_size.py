"""Counted graphs beside built ones."""

import numpy as np
import pytest
from numba.core import event

from nclone.config import NppConfig
from nclone.graph.distance import DistanceTables
from nclone.graph.fields import graph_table, table_row
from nclone.graph.landmarks import Landmarks, find_landmarks
from nclone.graph.navigation import build_graph
from nclone.graph.size import graph_edges, graph_size
from nclone.spec import Observation


def marks_of_all_tiles(seed):
    """Any tile anywhere, foreign numbers too, two closed doors, a spawn point anywhere."""
    rng = np.random.default_rng(seed)
    tiles = rng.integers(0, 45, (25, 44)).astype(np.uint8)
    tiles[rng.random((25, 44)) < 0.6] = 0
    spawn = tuple(rng.integers(0, 88, 2) * 12.0 * (1, 0.5))
    doors = np.column_stack([rng.integers(0, 44, 2), rng.integers(0, 25, 2)])
    return Landmarks(f"random {seed}", tiles, spawn, {}, door_cells=doors)


def bundled():
    """Levels of several kinds, some with doors and mines."""
    config = NppConfig(levels=("walk", "jump", "complex", "mine_heavy"))
    levels = config.open_levels("train")
    return [find_landmarks(level) for level in levels[:: max(1, len(levels) // 12)]]


@pytest.mark.parametrize("marks", [*map(marks_of_all_tiles, range(12)), *bundled()])
def test_a_graph_is_counted_as_it_is_built(marks):
    tables = DistanceTables()
    built = build_graph(tables, tables.add_level(marks))
    counted = graph_size(marks)

    assert counted == (len(built.nodes), len(built.edge_types))
    assert sorted(graph_edges(marks).tolist()) == sorted(built.edge_index.T.tolist())
    table = graph_table()
    table.places(np.array([table.intern(0, lambda: table_row(built))]))
    repeated = table.arenas["graph_edge_feats"]
    shared = repeated.content_bytes(repeated.used) - 4 * repeated.used
    offsets = 8 * sum(f.ragged for f in table.fields.values())  # the end of the last graph
    assert counted.row_bytes == table.used_bytes - shared - offsets


def test_a_level_of_stone_has_no_graph():
    stone = Landmarks("stone", np.ones((25, 44), np.uint8), (60.0, 60.0), {})
    assert graph_size(stone) == (0, 0)


def test_counting_compiles_nothing():
    class Deaf(event.Listener):
        def on_start(self, event):
            raise AssertionError(event.data["dispatcher"])

        def on_end(self, event):
            pass

    with event.install_listener("numba:compile", Deaf()):
        assert graph_size(marks_of_all_tiles(1)).nodes


@pytest.mark.parametrize("names", [("walk", "jump"), ("complex",)])
def test_what_rollouts_show_is_told_without_a_game_and_nothing_is_compiled(names, monkeypatch):
    monkeypatch.setattr("nclone.budget.NppGame", None)
    compiled = []
    config = NppConfig(levels=names, obs=Observation.graph)
    with event.install_listener("numba:compile", event.RecordingListener()) as heard:
        told = config.content(32, 128)
        compiled += heard.buffer
    levels = config.open_levels("train")
    sizes = [graph_size(find_landmarks(level)) for level in levels]

    assert not compiled
    assert (len(told.ragged["graph_node_mask"]), len(told.ragged["graph_edge_index"])) in sizes
    assert told.ragged["graph_node_mask"].all()
    assert told.fields["num_locked_doors"].shape[1:] == (1,)
    assert told.rows > 1
    assert told.rows < config.content(64, 128).rows or len(levels) == 2
    assert told.distinct(1) <= told.distinct(64) <= told.rows
    assert not NppConfig(levels=names, obs=Observation.routes).content(32, 128).ragged
