"""The graph observation of one (level, open doors, objective): built once, never changed.

The native form is ragged, arrays of true size; `dense` pads it to the declared shapes. Nothing in
it depends on the player: the nodes of player, objective and doors are looked up late, and the
momentary state of mines is patched in at `mine_nodes` by whoever needs it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np

from nclone.graph import features
from nclone.graph.goals import EXIT_DOOR, EXIT_SWITCH, MAX_DOORS
from nclone.graph.lattice import NODES, STEP_PX, UNREACHABLE

if TYPE_CHECKING:
    from nclone.graph.distance import DistanceTables
    from nclone.graph.landmarks import Landmarks


BETWEENNESS_SEED = 20_25


@dataclass(frozen=True)
class GraphConfig:
    """Which optional parts a graph has."""

    functional_edges: bool = False
    """One pair of edges between switch and door of every locked door."""
    edge_features: bool = True
    """Off for networks that ignore them (GCN): they are then neither built nor stored."""


@dataclass(frozen=True)
class NavigationGraph:
    """Arrays of true size: n nodes, e edges, M mines.

    Attributes:
        node_feats: [n, 21] float32.
        edge_index: [2, e] uint16, source row and target row.
        edge_feats: [e, 14] float32; [0, 14] if switched off.
        node_types: [n] uint8 and edge_types [e] uint8.
        nodes: [n] int16, lattice node of each graph node.
        node_index: [4400] int16, graph node of each lattice node, -1 elsewhere.
        mine_nodes: [M] int16, the node nearest to each mine, -1 out of reach.
        goal_nodes: [34] int16, the node nearest to each goal, -1 where there is none.
        objective_node: int, the current objective's node, -1 if unreachable.
    """

    node_feats: np.ndarray
    edge_index: np.ndarray
    edge_feats: np.ndarray
    node_types: np.ndarray
    edge_types: np.ndarray
    nodes: np.ndarray
    node_index: np.ndarray
    mine_nodes: np.ndarray
    goal_nodes: np.ndarray
    objective_node: int

    @property
    def key(self) -> bytes:
        """Content hash: equal graphs have equal keys, across levels and processes."""
        digest = blake2b(digest_size=16)
        for f in fields(self):
            value = np.ascontiguousarray(getattr(self, f.name))
            digest.update(str(value.shape).encode() + value.tobytes())
        return digest.digest()

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(np.asarray(getattr(self, f.name)).nbytes for f in fields(self))


@dataclass(frozen=True)
class _Marks:
    types: np.ndarray
    mine_of: np.ndarray
    closed: np.ndarray
    active: np.ndarray
    mine_nodes: np.ndarray
    goal_nodes: np.ndarray


def build_graph(
    tables: DistanceTables,
    level: int,
    door_bits: int = 0,
    objective: int = EXIT_SWITCH,
    config: GraphConfig | None = None,
) -> NavigationGraph:
    """Build the graph of a level with the doors in `door_bits` open.

    Args:
        tables: Holds the level and its lattice.
        level: Its number in the tables.
        door_bits: Bit d is set if locked door d is open.
        objective: Goal number of the current objective.
        config: Optional parts.
    """
    config = config or GraphConfig()
    marks = tables.levels[level]
    reachable, steps = tables.reachable_steps(level, door_bits)
    nodes, index = np.empty(NODES, np.int32), np.empty(NODES, np.int16)
    edges = np.empty((2, features.MAX_EDGES), np.int32)
    used = features.compact_graph(steps, reachable, nodes, index, edges)
    nodes, edges = nodes[: int(reachable.sum())].copy(), edges[:, :used].copy()
    starts = np.searchsorted(edges[0], np.arange(len(nodes) + 1)).astype(np.int32)

    found = _mark(index, len(nodes), marks, door_bits, objective)
    centrality = np.empty(len(nodes), np.float32)
    order = np.random.default_rng(BETWEENNESS_SEED).permutation(len(nodes))
    features.betweenness(edges, starts, order, centrality)
    entry = tables.acquire(level, door_bits)
    row = tables.goal_row[entry, objective]
    hops = tables.hops[row] if row >= 0 else np.full(NODES, UNREACHABLE)
    goal = np.array(marks.goals.get(objective, marks.spawn), float)
    node_feats = np.empty((len(nodes), features.NODE_FEATURES), np.float32)
    features.node_features(
        nodes,
        found.types,
        found.mine_of,
        marks.mines_deadly,
        found.closed,
        found.active,
        starts,
        goal,
        hops,
        centrality,
        node_feats,
    )
    tables.release(entry)

    edge_types = np.full(used, features.ADJACENT, np.uint8)
    if config.functional_edges:
        edges, edge_types = _with_functional(edges, edge_types, found.goal_nodes)
    edge_feats = np.empty((0, features.EDGE_FEATURES), np.float32)
    if config.edge_features:
        edge_feats = np.empty((len(edge_types), features.EDGE_FEATURES), np.float32)
        by_x = np.argsort(marks.mines_xy[:, 0], kind="stable")
        mines_xy, deadly = marks.mines_xy[by_x], marks.mines_deadly[by_x]
        features.edge_features(nodes, edges, edge_types, mines_xy, deadly, edge_feats)
    return NavigationGraph(
        node_feats,
        edges.astype(np.uint16),
        edge_feats,
        found.types,
        edge_types,
        nodes.astype(np.int16),
        index,
        found.mine_nodes,
        found.goal_nodes,
        int(found.goal_nodes[objective]),
    )


def _mark(index: np.ndarray, n: int, marks: Landmarks, door_bits: int, objective: int) -> _Marks:
    """Types and entity flags of every node, from the lowest priority to the highest."""
    places: list[tuple[float, ...]] = []
    doors = [goal for goal in marks.goals if goal > EXIT_DOOR]
    for goal in doors:
        is_closed = not door_bits >> (goal - 2) // 2 & 1
        kind = features.LOCKED_DOOR
        places.append((*marks.goals[goal], STEP_PX, kind, -1, is_closed, is_closed))
    for mine, place in enumerate(marks.mines_xy):
        places.append((*place, STEP_PX, features.MINE, mine, 0, 1))
    exits = [goal for goal in (EXIT_SWITCH, EXIT_DOOR) if goal in marks.goals]
    for goal in exits:
        kind = features.EXIT_SWITCH_NODE if goal == EXIT_SWITCH else features.EXIT_DOOR_NODE
        places.append((*marks.goals[goal], STEP_PX, kind, -1, 0, goal == objective))
    places.append((*marks.spawn, features.SPAWN_REACH_PX, features.SPAWN, -1, 0, 0))

    found = _Marks(
        types=np.zeros(n, np.uint8),
        mine_of=np.full(n, -1, np.int32),
        closed=np.zeros(n, np.bool_),
        active=np.zeros(n, np.bool_),
        mine_nodes=np.empty(len(marks.mines_xy), np.int16),
        goal_nodes=np.full(2 + 2 * MAX_DOORS, -1, np.int16),
    )
    nearest = np.empty(len(places), np.int16)
    features.mark_places(
        index,
        np.array(places, float),
        found.types,
        found.mine_of,
        found.closed,
        found.active,
        nearest,
    )
    found.mine_nodes[:] = nearest[len(doors) : len(doors) + len(marks.mines_xy)]
    found.goal_nodes[doors] = nearest[: len(doors)]
    found.goal_nodes[exits] = nearest[len(places) - 1 - len(exits) : -1]
    return found


def _with_functional(edges: np.ndarray, types: np.ndarray, goal_nodes: np.ndarray) -> tuple:
    pairs = [(goal_nodes[2 + 2 * d], goal_nodes[3 + 2 * d]) for d in range(MAX_DOORS)]
    extra = [p for a, b in pairs if a >= 0 and b >= 0 for p in ((a, b), (b, a))]
    if not extra:
        return edges, types
    added = np.full(len(extra), features.FUNCTIONAL, np.uint8)
    return np.hstack([edges, np.array(extra, np.int32).T]), np.concatenate([types, added])


def dense(graph: NavigationGraph) -> dict[str, np.ndarray]:
    """The padded arrays of the observation space, zeros behind the true size."""
    n, e = len(graph.nodes), len(graph.edge_types)
    out = {
        "graph_node_feats": np.zeros((features.MAX_NODES, features.NODE_FEATURES), np.float32),
        "graph_edge_index": np.zeros((2, features.MAX_EDGES), np.int32),
        "graph_edge_feats": np.zeros((features.MAX_EDGES, features.EDGE_FEATURES), np.float32),
        "graph_node_mask": np.zeros(features.MAX_NODES, np.int32),
        "graph_edge_mask": np.zeros(features.MAX_EDGES, np.int32),
        "graph_node_types": np.zeros(features.MAX_NODES, np.int32),
        "graph_edge_types": np.zeros(features.MAX_EDGES, np.int32),
    }
    out["graph_node_feats"][:n] = graph.node_feats
    out["graph_edge_index"][:, :e] = graph.edge_index
    out["graph_edge_feats"][: len(graph.edge_feats)] = graph.edge_feats
    out["graph_node_mask"][:n] = 1
    out["graph_edge_mask"][:e] = 1
    out["graph_node_types"][:n] = graph.node_types
    out["graph_edge_types"][:e] = graph.edge_types
    return out
