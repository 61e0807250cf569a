"""A small synthetic observation with a graph table, so that networks are tested without a game."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from gymnasium import spaces

from frugal_rl.observation.choices import Storage
from frugal_rl.observation.decoder import Decoder
from frugal_rl.observation.encoder import Encoder
from frugal_rl.observation.encoding import Encoding
from frugal_rl.observation.spec import ObservationSpec, Static, Stored
from frugal_rl.observation.tables import StaticTable, TableField, Tables
from nclone.graph.fields import DERIVED_FIELDS, GOAL_NODES, NODE_INDEX

MAX_NODES, MAX_EDGES = 60, 240
LATTICE = 88 * 50


def make_spec() -> ObservationSpec:
    def static(name, shape, dtype, low, high, ragged=False):
        return Static(name, shape, dtype, low, high, table="graph", ragged=ragged)

    return ObservationSpec(
        (
            Stored("game_state", (29,), np.float32, -1, 1),
            Stored("exit_features", (7,), np.float32, -1, 1),
            Stored("time_remaining", (1,), np.float32, 0, 1),
            Stored("reachability_features", (6,), np.float32, 0, 1),
            Stored("locked_door_features", (16, 8), np.float32, -1, 1),
            Stored("num_locked_doors", (1,), np.int32, 0, 16),
            Stored("hazards", (8, 8), np.float32, -1, 1),
            Stored("tile_window", (15, 15), np.uint8, 0, 144),
            Stored("action_mask", (6,), np.int8, 0, 1),
            Stored("cell", (2,), np.uint8, 0, 87, observed=False),
            static("graph_node_feats", (MAX_NODES, 21), np.float32, -1, 1, ragged=True),
            static("graph_edge_index", (MAX_EDGES, 2), np.int32, 0, MAX_NODES - 1, ragged=True),
            static("graph_edge_feats", (MAX_EDGES, 14), np.float32, -1, 1, ragged=True),
            static("graph_node_mask", (MAX_NODES,), np.int32, 0, 1, ragged=True),
            static("graph_edge_mask", (MAX_EDGES,), np.int32, 0, 1, ragged=True),
            *DERIVED_FIELDS,
        ),
        action_mask="action_mask",
    )


def random_graph(rng: np.random.Generator, nodes: int) -> dict[str, np.ndarray]:
    """A random graph with edges in both directions; lattice nodes 0, 1, ... are its nodes."""
    pairs = np.array([(a, b) for a in range(nodes) for b in range(a) if rng.random() < 3 / nodes])
    pairs = pairs.reshape(-1, 2)[: MAX_EDGES // 2]
    edges = np.concatenate((pairs, pairs[:, ::-1])).astype(np.int32)
    feats = rng.uniform(-1, 1, (nodes, 21)).astype(np.float32)
    feats[:, 2:9] = np.eye(7, dtype=np.float32)[rng.integers(0, 7, nodes)]
    edge_feats = rng.uniform(-1, 1, (len(edges), 14)).astype(np.float32)
    edge_feats[:, :4] = np.eye(4, dtype=np.float32)[rng.integers(0, 4, len(edges))]
    index = np.full(LATTICE, -1, np.int16)
    index[:nodes] = np.arange(nodes)  # the lattice's first row
    return {
        "graph_node_feats": feats,
        "graph_edge_index": edges,
        "graph_edge_feats": edge_feats,
        "graph_node_mask": np.ones(nodes, np.int32),
        "graph_edge_mask": np.ones(len(edges), np.int32),
        NODE_INDEX: index,
        GOAL_NODES: rng.integers(-1, nodes, 34).astype(np.int16),
    }


class World:
    """Random samples over a few random graphs, in any representation of the graph fields."""

    graph_fields = tuple(f.name for f in make_spec().fields if isinstance(f, Static))

    def __init__(self, graphs: int = 3, samples: int = 8, doors: int = 4, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.spec, self.actions = make_spec(), spaces.Discrete(6)
        table = StaticTable(
            "graph",
            tuple(
                TableField(f.name, f.shape, f.dtype, f.ragged)
                for f in self.spec.fields
                if isinstance(f, Static)
            )
            + (
                TableField(NODE_INDEX, (LATTICE,), np.int16),
                TableField(GOAL_NODES, (34,), np.int16),
            ),
        )
        self.graphs = [random_graph(rng, int(rng.integers(5, 40))) for _ in range(graphs)]
        for key, graph in enumerate(self.graphs):
            table.intern(key, lambda graph=graph: graph)
        self.tables = Tables(graph=table)
        self.raw = {"graph_id": rng.integers(0, graphs, samples)}
        for f in self.spec.fields:
            if isinstance(f, Stored):
                floats = np.dtype(f.dtype) == np.float32
                draw = rng.uniform(f.low, f.high, (samples, *f.shape)) if floats else None
                self.raw[f.name] = (
                    draw if floats else rng.integers(f.low, f.high + 1, (samples, *f.shape))
                ).astype(f.dtype)
        self.raw["num_locked_doors"] = rng.integers(0, doors + 1, (samples, 1)).astype(np.int32)
        self.raw["exit_features"][:, 2] = rng.integers(0, 2, samples)
        self.raw["action_mask"][:, 0] = 1
        self.raw["cell"][:, 0], self.raw["cell"][:, 1] = rng.integers(0, 50, samples), 0

    def encoding(self, storage: Storage = Storage.lossless, graph: str = "") -> Encoding:
        choice = dict.fromkeys(self.graph_fields, graph) if graph else None
        return Encoding.choose(self.spec, storage, fields=choice)

    def fields(self, encoding: Encoding, take: np.ndarray | None = None):
        raw = {k: v if take is None else v[take] for k, v in self.raw.items()}
        rows = Encoder(encoding, self.tables, len(raw["graph_id"]), reuse=False).encode(raw)
        tensors = {k: torch.from_numpy(np.ascontiguousarray(v)) for k, v in rows.items()}
        return Decoder(encoding, self.tables)(tensors)


@pytest.fixture
def world():
    """Builds `World`s."""
    return World


@pytest.fixture
def small():
    """Values of a small network."""
    return SimpleNamespace(
        graph={"layers": 2, "hidden": 16, "heads": 4, "out": 16},
        objectives={"hidden": 16, "token": 8, "width": 16, "heads": 4, "out": 16},
        agent={
            "state_features": 16,
            "exit_features": 8,
            "reachability_features": 8,
            "token": 16,
            "fusion_heads": 4,
            "features": 32,
            "actor": (32, 16),
            "critic": (32, 16),
        },
    )
