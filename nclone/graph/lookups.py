"""Nodes of the navigation graph that a step refers to: at the ninja, and at the objectives."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from frugal_rl.observation.spec import Derived
from frugal_rl.observation.tables import Tables
from nclone.graph.fields import TABLE
from nclone.graph.lattice import HEIGHT, WIDTH
from nclone.graph.navigation import MAX_NODES
from nclone.graph.paths import GOALS

GRAPH_ID = f"{TABLE}_id"
NODE_INDEX, GOAL_INDEX = "graph_node_index", "graph_goal_nodes"
PLAYER_NODE, GOAL_NODES = "player_node", "goal_nodes"
AROUND = ((0, 0), (0, 1), (-1, 0), (1, 0), (0, -1), (-1, 1), (1, 1), (-1, -1), (1, -1))
"""Where the ninja's node is looked for, (dx, dy) in cells: its own, below, beside, above."""


def player_node(sources: Mapping[str, np.ndarray], tables: Tables) -> np.ndarray:
    """`graph_id` [N], `cell` [N, 2] -> [N, 1] int16: the node at the ninja's cell, or beside it.

    -1 where none of the nine cells around the ninja has a node.
    """
    around = sources["cell"].astype(np.int64)[:, None] + np.array(AROUND)
    inside = ((around >= 0) & (around < (WIDTH, HEIGHT))).all(axis=2)
    place = np.where(inside, around[..., 1] * WIDTH + around[..., 0], 0)
    nodes = tables[TABLE][NODE_INDEX][sources[GRAPH_ID][:, None], place]
    nodes = np.where(inside, nodes, -1).astype(np.int16)
    first = (nodes >= 0).argmax(axis=1)
    return np.take_along_axis(nodes, first[:, None], axis=1)


def goal_nodes(sources: Mapping[str, np.ndarray], tables: Tables) -> np.ndarray:
    """`graph_id` [N] -> [N, 34] int16: the node of each goal, -1 where there is none."""
    rows: np.ndarray = tables[TABLE][GOAL_INDEX][sources[GRAPH_ID]]
    return rows


LOOKUP_FIELDS = (
    Derived(
        PLAYER_NODE,
        (1,),
        np.int16,
        -1,
        MAX_NODES,
        "graph node at the ninja, -1 if none is near",
        sources=(GRAPH_ID, "cell"),
        derive=player_node,
        twin="nclone.derive_graph:player_node",
    ),
    Derived(
        GOAL_NODES,
        (GOALS,),
        np.int16,
        -1,
        MAX_NODES,
        "graph nodes of exit switch, exit door, and switch and door of every locked door",
        sources=(GRAPH_ID,),
        derive=goal_nodes,
        twin="nclone.derive_graph:goal_nodes",
    ),
)
