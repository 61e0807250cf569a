"""Graph attention: neighbours weigh in by learned scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from frugal_rl.observation.distinct import rows_at
from npp_rl.graphs.encoders.interface import GraphEncoder
from npp_rl.graphs.encoders.messages import segment_softmax
from npp_rl.graphs.encoders.node_input import NodeInput

if TYPE_CHECKING:
    from npp_rl.choices import GraphEncoding

EDGE_FEATURES = 14
SLOPE = 0.2


class Attention(nn.Module):
    """One layer (Velickovic et al. 2018); a node attends to its sources and to itself."""

    def __init__(self, hidden: int, heads: int, edge_features: bool) -> None:
        super().__init__()
        self.heads = heads
        self.linear = nn.Linear(hidden, hidden)
        self.score_source = nn.Parameter(torch.empty(heads, hidden // heads))
        self.score_target = nn.Parameter(torch.empty(heads, hidden // heads))
        self.score_edge = nn.Linear(EDGE_FEATURES, heads, bias=False) if edge_features else None
        self.norm = nn.LayerNorm(hidden)
        nn.init.xavier_uniform_(self.score_source)
        nn.init.xavier_uniform_(self.score_target)

    def forward(
        self, h: Tensor, source: Tensor, target: Tensor, edge_attr: Tensor | None
    ) -> Tensor:
        """H [n, D]; source and target [e + n] int64, the last n being self-loops."""
        z = self.linear(h).unflatten(1, (self.heads, -1))  # [n, H, D / H]
        from_source = (z * self.score_source.to(z.dtype)).sum(-1)
        at_target = (z * self.score_target.to(z.dtype)).sum(-1)
        scores = rows_at(from_source, source) + rows_at(at_target, target)
        if self.score_edge is not None and edge_attr is not None:
            scores = scores + F.pad(self.score_edge(edge_attr), (0, 0, 0, len(h)))
        weights = segment_softmax(F.leaky_relu(scores.float(), SLOPE), target, len(h))
        messages = rows_at(z, source) * weights.to(z.dtype)[..., None]
        mixed = torch.zeros_like(z).index_add(0, target, messages).flatten(1)
        return F.elu(self.norm(h + mixed))


class Gat(GraphEncoder):
    """Graph attention with residuals and layer norm; edge features are optional."""

    def __init__(self, values: GraphEncoding, node_features: int) -> None:
        super().__init__(values, values.hidden)
        self.reads_edges = values.edge_features
        self.input = NodeInput(node_features, values)
        self.layers = nn.ModuleList(
            Attention(values.hidden, values.heads, values.edge_features)
            for _ in range(values.layers)
        )

    def embed(self, nodes: Tensor, edge_index: Tensor, edge_attr: Tensor | None) -> Tensor:
        """See `GraphEncoder.embed`."""
        if self.reads_edges and edge_attr is None:
            raise ValueError(
                "agent.graph.edge_features=true reads edge features, which this observation does "
                "not have; switch it off, or choose env.obs=graph with edge features."
            )
        own = torch.arange(len(nodes), device=nodes.device)
        source = torch.cat((edge_index[0].long(), own))
        target = torch.cat((edge_index[1].long(), own))
        h = self.input(nodes)
        for layer in self.layers:
            h = layer(h, source, target, edge_attr)
        return h
