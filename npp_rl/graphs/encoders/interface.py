"""What every graph encoder takes and gives, and its values."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from npp_rl.choices import GraphEncoding, Pool
from npp_rl.graphs.encoders.messages import segment_max, segment_mean

NODE_TYPES, EDGE_TYPES = 7, 4
NODE_TYPE_COLUMNS = slice(2, 2 + NODE_TYPES)
"""Where the node features hold the one-hot type."""
EDGE_TYPE_COLUMNS = slice(0, EDGE_TYPES)
"""Where the edge features hold the one-hot type."""


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
