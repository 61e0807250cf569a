"""The navigation graph as static fields of an observation, one table row per distinct graph."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from frugal_rl.observation.codecs import Codec
from frugal_rl.observation.narrow import NarrowCodec
from frugal_rl.observation.pooled import RaggedCodec
from frugal_rl.observation.spec import Static
from frugal_rl.observation.tables import StaticTable, TableField
from nclone.graph.distance import DistanceTables
from nclone.graph.features import EDGE_FEATURES, NODE_FEATURES
from nclone.graph.lattice import NODES
from nclone.graph.navigation import (
    MAX_EDGES,
    MAX_NODES,
    GraphConfig,
    NavigationGraph,
    build_graph,
)
from nclone.graph.paths import EXIT_DOOR, EXIT_SWITCH, GOALS

TABLE = "graph"
EDGE_ONLY = "graph_edge_feats"

_FIELDS: tuple[tuple[str, tuple[int, ...], type, type, float, float, bool, bool, str], ...] = (
    # name, shape, dtype as observed, dtype in the table, low, high, ragged, observed, meaning
    ("graph_node_feats", (MAX_NODES, NODE_FEATURES), np.float32, np.float32, -1, 1, True, True,
     "21 features per node"),
    ("graph_edge_index", (MAX_EDGES, 2), np.int32, np.uint16, 0, MAX_NODES - 1, True, True,
     "source and target node of each edge"),
    (EDGE_ONLY, (MAX_EDGES, EDGE_FEATURES), np.float32, np.float32, -1, 1, True, True,
     "14 features per edge"),
    ("graph_node_mask", (MAX_NODES,), np.int32, np.uint8, 0, 1, True, True, "1 where a node is"),
    ("graph_edge_mask", (MAX_EDGES,), np.int32, np.uint8, 0, 1, True, True, "1 where an edge is"),
    ("graph_node_types", (MAX_NODES,), np.int32, np.uint8, 0, 6, True, True, "type of each node"),
    ("graph_edge_types", (MAX_EDGES,), np.int32, np.uint8, 0, 3, True, True, "type of each edge"),
    ("graph_node_index", (NODES,), np.int16, np.int16, -1, MAX_NODES, False, False,
     "node at each 12 px lattice point, -1 for none"),
    ("graph_goal_nodes", (GOALS,), np.int16, np.int16, -1, MAX_NODES, False, False,
     "nodes of exit switch, exit door, then switch and door of each locked door; -1 for none"),
)  # fmt: skip


def graph_fields(config: GraphConfig | None = None) -> tuple[Static, ...]:
    """Declarations of all graph fields; without edge features where the config says so."""
    return tuple(
        Static(
            name, shape, dtype, low, high, doc, observed,
            table=TABLE, ragged=ragged, codecs=_codecs(dtype, low, high) if ragged else (),
        )
        for name, shape, dtype, _, low, high, ragged, observed, doc in _wanted(config)
    )  # fmt: skip


def _codecs(dtype: type, low: float, high: float) -> tuple[Codec, ...]:
    """What a padded field offers beside dense, half and interned."""
    whole = np.dtype(dtype).kind != "f"
    narrow = (NarrowCodec(low, high, np.dtype(dtype).name),) if whole else ()
    return (*narrow, RaggedCodec())


def graph_table(config: GraphConfig | None = None) -> StaticTable:
    """The table of distinct graphs, empty; integers are kept as narrow as they fit."""
    return StaticTable(
        TABLE,
        tuple(
            TableField(name, shape, narrow, ragged)
            for name, shape, _, narrow, _, _, ragged, _, _ in _wanted(config)
        ),
    )


def graph_rows(graph: NavigationGraph, config: GraphConfig | None = None) -> dict[str, np.ndarray]:
    """One graph as a row of the table."""
    nodes, edges = len(graph.nodes), len(graph.edge_types)
    rows = {
        "graph_node_feats": graph.node_feats,
        "graph_edge_index": graph.edge_index.T,
        EDGE_ONLY: graph.edge_feats,
        "graph_node_mask": np.ones(nodes, np.uint8),
        "graph_edge_mask": np.ones(edges, np.uint8),
        "graph_node_types": graph.node_types,
        "graph_edge_types": graph.edge_types,
        "graph_node_index": graph.node_index,
        "graph_goal_nodes": graph.goal_nodes,
    }
    return {name: rows[name] for name, *_ in _wanted(config)}


class GraphIds:
    """Gives each (level, open doors, objective) the id of its graph; equal graphs share one.

    A graph is built when it is first asked for. The table's key is the content, so that equal
    levels have equal ids in every process that saw the same graphs.
    """

    def __init__(
        self, distances: DistanceTables, table: StaticTable, config: GraphConfig | None = None
    ) -> None:
        self._distances, self._table = distances, table
        self._config = config or GraphConfig()
        self._known: dict[tuple[int, int, bool], int] = {}

    def find(self, level: int, door_bits: int, switch_hit: bool) -> int:
        """The id of one graph."""
        key = (level, door_bits, switch_hit)
        if key not in self._known:
            objective = EXIT_DOOR if switch_hit else EXIT_SWITCH
            graph = build_graph(self._distances, level, door_bits, objective, self._config)
            self._known[key] = self._table.intern(
                graph.key.hex(), lambda: graph_rows(graph, self._config)
            )
        return self._known[key]

    def update(
        self,
        ids: np.ndarray,
        level: np.ndarray,
        door_bits: np.ndarray,
        switch_hit: np.ndarray,
        changed: Sequence[int],
    ) -> None:
        """Rewrite ids [N] of the worlds in `changed`; the other arguments are [N] as well."""
        for n in changed:
            ids[n] = self.find(int(level[n]), int(door_bits[n]), bool(switch_hit[n]))


def _wanted(config: GraphConfig | None) -> tuple:
    edge_features = config is None or config.edge_features
    return tuple(row for row in _FIELDS if edge_features or row[0] != EDGE_ONLY)
