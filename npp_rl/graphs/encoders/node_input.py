"""The first layer of every encoder: node features to hidden size, node type added if asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from npp_rl.graphs.encoders.interface import NODE_TYPE_COLUMNS, NODE_TYPES

if TYPE_CHECKING:
    from npp_rl.choices import GraphEncoding


def node_type(nodes: Tensor) -> Tensor:
    """Nodes [n, 21] -> [n] int64: the type that the one-hot columns name."""
    return nodes[:, NODE_TYPE_COLUMNS].argmax(dim=1)


class NodeInput(nn.Module):
    """Linear and ReLU, with a learned vector per node type where the values ask for one."""

    def __init__(self, node_features: int, values: GraphEncoding) -> None:
        super().__init__()
        self.linear = nn.Linear(node_features, values.hidden)
        self.types = nn.Embedding(NODE_TYPES, values.hidden) if values.type_embedding else None

    def forward(self, nodes: Tensor) -> Tensor:
        """Nodes [n, F] -> [n, hidden]."""
        h = self.linear(nodes)
        if self.types is not None:
            h = h + self.types(node_type(nodes))
        return torch.relu(h)
