"""Graph convolution: linear, sum over neighbours, residual, norm."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from npp_rl.choices import DegreeScale, GraphEncoding
from npp_rl.graphs.encoders.interface import GraphEncoder
from npp_rl.graphs.encoders.messages import Neighbours
from npp_rl.graphs.encoders.node_input import NodeInput

MAX_NODES = 4500
"""The padding size whose square root the predecessor divides by."""


class Convolution(nn.Module):
    """One layer: h + sum over incoming edges of W h_source / sqrt(deg deg), norm, ReLU."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.linear = nn.Linear(hidden, hidden)
        self.norm = nn.LayerNorm(hidden)

    def forward(
        self, h: Tensor, edges: Neighbours, source_scale: Tensor, target_scale: Tensor
    ) -> Tensor:
        """H [n, D]; the scales [n, 1] multiply messages where they leave and where they arrive."""
        messages = edges.sum(self.linear(h) * source_scale.to(h.dtype)) * target_scale.to(h.dtype)
        return torch.relu(self.norm(h + messages))


class Gcn(GraphEncoder):
    """Kipf and Welling 2017 with residuals and layer norm; edge features are not read."""

    def __init__(self, values: GraphEncoding, node_features: int) -> None:
        super().__init__(values, values.hidden)
        self.scale = values.scale
        self.input = NodeInput(node_features, values)
        self.layers = nn.ModuleList(Convolution(values.hidden) for _ in range(values.layers))

    def embed(self, nodes: Tensor, edge_index: Tensor, edge_attr: Tensor | None) -> Tensor:
        """See `GraphEncoder.embed`."""
        edges = Neighbours.of(edge_index, len(nodes))
        if self.scale is DegreeScale.degrees:
            source_scale, target_scale = (
                bags.sizes.clamp(min=1).float().rsqrt()[:, None]
                for bags in (edges.outgoing, edges.incoming)
            )
        else:
            source_scale = torch.ones((), device=nodes.device)
            target_scale = torch.full((), MAX_NODES**-0.5, device=nodes.device)
        h = self.input(nodes)
        for layer in self.layers:
            h = layer(h, edges, source_scale, target_scale)
        return h
