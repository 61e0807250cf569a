"""From stored graphs to embeddings: chooses the ragged path or the padded one, and the cache."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from frugal_rl.observation.spec import Static
from nclone.graph.fields import GOAL_NODES, PLAYER_NODE
from npp_rl.choices import Kind, Readout
from npp_rl.graphs.batches import (
    EDGE_FEATS,
    EDGE_INDEX,
    EDGE_MASK,
    NODE_FEATS,
    NODE_MASK,
    GraphBatch,
    from_padded,
    from_table,
    ragged_graphs,
)
from npp_rl.graphs.embedded import EmbeddedGraphs
from npp_rl.graphs.embedding_cache import EmbeddingCache
from npp_rl.graphs.encoders.build import build_encoder
from npp_rl.graphs.paths import path_values

if TYPE_CHECKING:
    from frugal_rl.observation.encoding import Encoding
    from frugal_rl.observation.mirror import TableMirror
    from npp_rl.config import AttentionAgent
    from npp_rl.graphs.encoders.interface import GraphEncoder


class GraphReader(nn.Module):
    """Reads the graphs of a batch, each distinct one once where they are interned."""

    def __init__(
        self,
        encoder: GraphEncoder,
        table: str,
        interned: bool,
        edge_features: bool,
        paths: bool,
        cache: bool,
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.table, self.interned = table, interned
        self.edge_features, self.paths = edge_features, paths
        self.cache = EmbeddingCache() if cache and interned else None
        self.recompute = False
        self._cached: TableMirror | None = None

    @classmethod
    def build(cls, agent: AttentionAgent, encoding: Encoding) -> GraphReader | None:
        """The reader that the agent's values ask for; None without a graph."""
        if agent.graph.kind is Kind.none:
            return None
        feats = encoding.spec.by_name[NODE_FEATS]
        encoder = build_encoder(agent.graph, feats.shape[-1])
        assert encoder is not None
        assert isinstance(feats, Static)
        edges = agent.graph.edge_features or (
            agent.graph.kind is Kind.hgt and EDGE_FEATS in encoding.spec.by_name
        )
        parts = [NODE_FEATS, EDGE_INDEX, *([EDGE_FEATS] if edges else [])]
        interned = all(encoding.choice[name] == "interned" for name in parts)
        paths = Readout.path in agent.graph.readout
        return cls(encoder, feats.table, interned, edges, paths, agent.cache_embeddings)

    def train(self, mode: bool = True) -> GraphReader:
        """Entering or leaving an update begins a new policy version: cached embeddings go."""
        super().train(mode)
        if self.cache is not None:
            self.cache.clear()
        return self

    def _load_from_state_dict(self, *args: object, **kwargs: object) -> None:
        super()._load_from_state_dict(*args, **kwargs)  # type: ignore[arg-type]
        if self.cache is not None:
            self.cache.clear()

    def forward(self, fields: Mapping[str, Tensor]) -> EmbeddedGraphs:
        """Fields of B samples -> embeddings of their graphs."""
        if not self.interned:
            edge_feats = fields[EDGE_FEATS] if self.edge_features else None
            return self._encode(
                from_padded(
                    fields[NODE_FEATS],
                    fields[EDGE_INDEX],
                    edge_feats,
                    fields[NODE_MASK],
                    fields[EDGE_MASK],
                )
            )
        table, ids = self._table(fields), fields[f"{self.table}_id"]
        if self.cache is None or self.training or torch.is_grad_enabled():
            return self._encode(from_table(table, ids, self.edge_features))
        if table is not self._cached:  # another environment's tables: its ids mean other graphs
            self.cache.clear()
            self._cached = table
        return self.cache.embed(ids, lambda fresh: self._encode_rows(table, fresh))

    def _encode_rows(self, table: TableMirror, ids: Tensor) -> EmbeddedGraphs:
        own = torch.arange(len(ids), device=ids.device)
        return self._encode(ragged_graphs(table, ids, own, self.edge_features))

    def _encode(self, graphs: GraphBatch) -> EmbeddedGraphs:
        inputs = (graphs.nodes, graphs.edge_index, graphs.edge_attr, graphs.graph_of_node)
        if self.recompute and torch.is_grad_enabled():
            nodes, pooled = checkpoint(
                self.encoder, *inputs, graphs.num_graphs, use_reentrant=False
            )
        else:
            nodes, pooled = self.encoder(*inputs, graphs.num_graphs)
        paths = path_values(graphs) if self.paths else graphs.nodes[:, :0]
        return EmbeddedGraphs(nodes, paths, pooled, graphs.first_node, graphs.graph_of_sample)

    def _table(self, fields: Mapping[str, Tensor]) -> TableMirror:
        table: TableMirror = fields.tables[self.table]  # type: ignore[attr-defined]
        return table

    def player_places(self, fields: Mapping[str, Tensor]) -> Tensor:
        """[B, 1] int64: the node at the ninja within its graph; -1 if none."""
        return fields[PLAYER_NODE].long()

    def goal_places(self, fields: Mapping[str, Tensor]) -> Tensor:
        """[B, 34] int64: nodes of exit switch, exit door and each door's switch and door."""
        return fields[GOAL_NODES].long()
