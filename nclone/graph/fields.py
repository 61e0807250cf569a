"""The navigation graph as fields of an observation: one table row per distinct graph.

A step stores one number, the graph's. Nothing in a graph depends on the ninja; the nodes at the
ninja and at the objectives are looked up while decoding.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from frugal_rl.observation.bounded import BoundedTable
from frugal_rl.observation.codecs.pooled import RaggedCodec
from frugal_rl.observation.codecs.quantised import NarrowCodec
from frugal_rl.observation.spec import Derived, Static
from frugal_rl.observation.tables import TableField
from nclone.graph.features import EDGE_FEATURES, MAX_EDGES, MAX_NODES, NODE_FEATURES
from nclone.graph.goals import GOALS
from nclone.graph.lattice import HEIGHT, NODES, WIDTH

if TYPE_CHECKING:
    from frugal_rl.observation.tables import Tables
    from nclone.graph.navigation import NavigationGraph


GRAPH_TABLE = "graph"
GRAPH_ID = f"{GRAPH_TABLE}_id"
NODE_INDEX, GOAL_NODES, PLAYER_NODE = "node_index", "goal_nodes", "player_node"
EDGE_FEATS = "graph_edge_feats"
AROUND = ((0, 0), (0, 1), (-1, 0), (1, 0), (0, -1), (-1, 1), (1, 1), (-1, -1), (1, -1))
"""Where the ninja's node is looked for, (dx, dy) in cells: its own, below, beside, above."""


def _static(name: str, width: tuple[int, ...], dtype: type, high: int, doc: str) -> Static:
    shape = (MAX_NODES if "node" in name else MAX_EDGES, *width)
    whole = np.dtype(dtype).kind != "f"
    narrow = (NarrowCodec(0, high, np.dtype(dtype).name),) if whole else ()
    low = 0 if whole else -1
    codecs = (*narrow, RaggedCodec())
    return Static(name, shape, dtype, low, high, doc, table=GRAPH_TABLE, ragged=True, codecs=codecs)


STATIC_FIELDS = (
    _static("graph_node_feats", (NODE_FEATURES,), np.float32, 1, "21 features of each node"),
    _static("graph_edge_index", (2,), np.int32, MAX_NODES - 1, "source and target of each edge"),
    _static(EDGE_FEATS, (EDGE_FEATURES,), np.float32, 1, "14 features of each edge"),
    _static("graph_node_mask", (), np.int32, 1, "1 where a node is"),
    _static("graph_edge_mask", (), np.int32, 1, "1 where an edge is"),
    _static("graph_node_types", (), np.int32, 6, "kind of each node"),
    _static("graph_edge_types", (), np.int32, 3, "kind of each edge"),
)
TABLE_TYPES = {
    "graph_node_feats": np.float32,
    "graph_edge_index": np.int16,
    EDGE_FEATS: np.float32,
}
"""Types in the table; masks and kinds take a byte."""


def player_node(sources: Mapping[str, np.ndarray], tables: Tables) -> np.ndarray:
    """`graph_id` [N], `cell` [N, 2] -> [N, 1] int16: the node at the ninja's cell, or beside it.

    -1 where none of the nine cells around the ninja has a node.
    """
    around = sources["cell"].astype(np.int64)[:, None] + np.array(AROUND)
    inside = ((around >= 0) & (around < (WIDTH, HEIGHT))).all(axis=2)
    place = np.where(inside, around[..., 1] * WIDTH + around[..., 0], 0)
    graph_row = tables[GRAPH_TABLE].places(sources[GRAPH_ID])
    nodes = tables[GRAPH_TABLE][NODE_INDEX][graph_row[:, None], place]
    nodes = np.where(inside, nodes, -1).astype(np.int16)
    first = (nodes >= 0).argmax(axis=1)
    return np.take_along_axis(nodes, first[:, None], axis=1)


def goal_nodes(sources: Mapping[str, np.ndarray], tables: Tables) -> np.ndarray:
    """`graph_id` [N] -> [N, 34] int16: the node of each goal, -1 where there is none."""
    graph_row = tables[GRAPH_TABLE].places(sources[GRAPH_ID])
    rows: np.ndarray = tables[GRAPH_TABLE][GOAL_NODES][graph_row]
    return rows


DERIVED_FIELDS = (
    Derived(
        PLAYER_NODE,
        (1,),
        np.int16,
        -1,
        MAX_NODES - 1,
        "graph node at the ninja, -1 if none is near",
        sources=(GRAPH_ID, "cell"),
        derive=player_node,
        twin="nclone.derive.graph:player_node",
    ),
    Derived(
        GOAL_NODES,
        (GOALS,),
        np.int16,
        -1,
        MAX_NODES - 1,
        "graph nodes of exit switch, exit door, and switch and door of every locked door",
        sources=(GRAPH_ID,),
        derive=goal_nodes,
        twin="nclone.derive.graph:goal_nodes",
    ),
)


def _table_field(f: Static) -> TableField:
    dtype = TABLE_TYPES.get(f.name, np.uint8)
    return TableField(f.name, f.shape, dtype, ragged=True, repeated=f.name == EDGE_FEATS)


def graph_table(most_mib: float = 256.0) -> BoundedTable:
    """The table of graphs, empty; what was read last stays, up to `most_mib`."""
    ragged = tuple(_table_field(f) for f in STATIC_FIELDS)
    fixed = (
        TableField(NODE_INDEX, (NODES,), np.int16),
        TableField(GOAL_NODES, (GOALS,), np.int16),
    )
    return BoundedTable(GRAPH_TABLE, ragged + fixed, int(most_mib * 2**20))


def table_row(graph: NavigationGraph) -> dict[str, np.ndarray]:
    """One graph as a row of `graph_table`."""
    return {
        "graph_node_feats": graph.node_feats,
        "graph_edge_index": np.ascontiguousarray(graph.edge_index.T, np.int16),
        EDGE_FEATS: graph.edge_feats,
        "graph_node_mask": np.ones(len(graph.nodes), np.uint8),
        "graph_edge_mask": np.ones(len(graph.edge_types), np.uint8),
        "graph_node_types": graph.node_types,
        "graph_edge_types": graph.edge_types,
        NODE_INDEX: graph.node_index,
        GOAL_NODES: graph.goal_nodes,
    }
