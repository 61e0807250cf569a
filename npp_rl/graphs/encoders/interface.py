"""What every graph encoder takes and gives, and its values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum

import torch
from torch import Tensor, nn

from npp_rl.graphs.encoders.messages import segment_max, segment_mean

NODE_TYPES, EDGE_TYPES = 7, 4
NODE_TYPE_COLUMNS = slice(2, 2 + NODE_TYPES)
"""Where the node features hold the one-hot type."""
EDGE_TYPE_COLUMNS = slice(0, EDGE_TYPES)
"""Where the edge features hold the one-hot type."""


class Kind(Enum):
    """The architecture of an encoder."""

    none = "none"
    gcn = "gcn"
    gat = "gat"
    hgt = "hgt"


class Pool(Enum):
    """How node embeddings become one embedding of the graph."""

    mean = "mean"
    mean_max = "mean_max"


class Readout(Enum):
    """What samples read of their graph.

    The whole, the embedding at the player's place, those at the objectives' places, or where the
    shortest path to the objective goes from the player's place (no embedding, plain geometry).
    """

    pool = "pool"
    player_node = "player_node"
    objective_nodes = "objective_nodes"
    path = "path"


class DegreeScale(Enum):
    """Weight of a message of a GCN: by both ends' degrees, or one number for every graph."""

    degrees = "degrees"
    max_nodes = "max_nodes"


@dataclass(frozen=True)
class GraphEncoding:
    """Values of a graph encoder."""

    kind: Kind = Kind.gcn
    layers: int = 3
    hidden: int = 128
    heads: int = 8
    """Attention heads of GAT and HGT."""
    out: int = 256
    """Numbers of the graph embedding."""
    pool: Pool = Pool.mean
    scale: DegreeScale = DegreeScale.degrees
    edge_features: bool = False
    """GAT: edge features take part in the attention."""
    type_embedding: bool = False
    """Add a learned vector per node type (the simplified HGT is GAT with this on)."""
    readout: tuple[Readout, ...] = (Readout.pool,)

    def __post_init__(self) -> None:
        if self.kind in (Kind.gat, Kind.hgt) and self.hidden % self.heads:
            raise ValueError(
                f"agent.graph.hidden={self.hidden} is not a multiple of "
                f"agent.graph.heads={self.heads}; choose one that is."
            )
        if self.kind is not Kind.none and (not self.readout or self.layers < 1):
            raise ValueError(
                "agent.graph needs at least one layer and one readout, such as [pool]."
            )


class GraphEncoder(nn.Module, ABC):
    """Ragged graphs in, one embedding per node and per graph out.

    Shapes: n and e are the sums of nodes and edges over G graphs.
    """

    def __init__(self, values: GraphEncoding, width: int) -> None:
        """`width` is the size of the concatenated pool, before the output layer."""
        super().__init__()
        self.pool = values.pool
        self.output = nn.Linear(width * (2 if values.pool is Pool.mean_max else 1), values.out)

    @abstractmethod
    def embed(self, nodes: Tensor, edge_index: Tensor, edge_attr: Tensor | None) -> Tensor:
        """Nodes [n, F], edge_index [2, e] integer, edge_attr [e, 14] or None -> [n, hidden]."""

    def forward(
        self,
        nodes: Tensor,
        edge_index: Tensor,
        edge_attr: Tensor | None,
        graph_of_node: Tensor,
        num_graphs: int,
    ) -> tuple[Tensor, Tensor]:
        """Also graph_of_node [n] int64 -> embeddings [n, hidden] and [num_graphs, out].

        A graph without nodes gets the output layer's bias.
        """
        embedded = self.embed(nodes, edge_index, edge_attr)
        pooled = segment_mean(embedded, graph_of_node, num_graphs)
        if self.pool is Pool.mean_max:
            highest = segment_max(embedded, graph_of_node, num_graphs)
            pooled = torch.cat((pooled, highest), dim=1)
        return embedded, self.output(pooled)
