"""Heterogeneous graph transformer: maps per node type, relations per edge type."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from frugal_rl.observation.distinct import rows_at
from npp_rl.graphs.encoders.interface import EDGE_TYPE_COLUMNS, EDGE_TYPES, NODE_TYPES, GraphEncoder
from npp_rl.graphs.encoders.messages import segment_softmax
from npp_rl.graphs.encoders.node_input import NodeInput, node_type

if TYPE_CHECKING:
    from npp_rl.choices import GraphEncoding


class PerType(nn.Module):
    """One linear map per type."""

    def __init__(self, types: int, inputs: int, outputs: int) -> None:
        super().__init__()
        self.maps = nn.ModuleList(nn.Linear(inputs, outputs) for _ in range(types))

    def forward(self, x: Tensor, members: list[Tensor]) -> Tensor:
        """X [n, inputs]; members: the rows of each type, int64 -> [n, outputs]."""
        present = [(m, rows) for m, rows in zip(self.maps, members, strict=True) if len(rows)]
        parts = [m(rows_at(x, rows)) for m, rows in present]
        place = torch.argsort(torch.cat([rows for _, rows in present]))
        return rows_at(torch.cat(parts), place)


class Transformer(nn.Module):
    """One layer of Hu et al. 2020: attention and message matrices and a prior per edge type."""

    def __init__(self, hidden: int, heads: int) -> None:
        super().__init__()
        self.heads, size = heads, hidden // heads
        self.qkv = PerType(NODE_TYPES, hidden, 3 * hidden)
        self.out = PerType(NODE_TYPES, hidden, hidden)
        self.attention = nn.Parameter(torch.eye(size).repeat(EDGE_TYPES, heads, 1, 1))
        self.message = nn.Parameter(torch.eye(size).repeat(EDGE_TYPES, heads, 1, 1))
        self.prior = nn.Parameter(torch.ones(EDGE_TYPES, heads))
        self.norm = nn.LayerNorm(hidden)

    def forward(
        self,
        h: Tensor,
        source: Tensor,
        target: Tensor,
        members: list[Tensor],
        edges_of_type: list[Tensor],
    ) -> Tensor:
        """H [n, D]; source, target [e] int64; rows of each node type and of each edge type."""
        q, k, v = self.qkv(h, members).unflatten(1, (3, self.heads, -1)).unbind(1)  # [n, H, d]
        scores, messages, order = [], [], []
        for kind, rows in enumerate(edges_of_type):
            if len(rows):
                keys = torch.einsum("nhd,hdf->nhf", k, self.attention[kind].to(k.dtype))
                values = torch.einsum("nhd,hdf->nhf", v, self.message[kind].to(v.dtype))
                agree = (rows_at(q, target[rows]) * rows_at(keys, source[rows])).sum(-1)
                scores.append(agree * self.prior[kind].to(agree.dtype))
                messages.append(rows_at(values, source[rows]))
                order.append(rows)
        mixed = torch.zeros_like(v)
        if order:
            to = target[torch.cat(order)]
            scaled = torch.cat(scores).float() * q.shape[-1] ** -0.5
            weights = segment_softmax(scaled, to, len(h)).to(v.dtype)
            mixed = mixed.index_add(0, to, torch.cat(messages) * weights[..., None])
        return self.norm(h + self.out(F.gelu(mixed.flatten(1)), members))


class Hgt(GraphEncoder):
    """Reads the types of nodes and edges from their one-hot features.

    Without edge features all edges count as adjacent.
    """

    def __init__(self, values: GraphEncoding, node_features: int) -> None:
        super().__init__(values, values.hidden)
        self.input = NodeInput(node_features, values)
        self.layers = nn.ModuleList(
            Transformer(values.hidden, values.heads) for _ in range(values.layers)
        )

    def embed(self, nodes: Tensor, edge_index: Tensor, edge_attr: Tensor | None) -> Tensor:
        """See `GraphEncoder.embed`."""
        h = self.input(nodes)
        if not len(nodes):
            return h
        types = node_type(nodes)
        members = [torch.nonzero(types == t).flatten() for t in range(NODE_TYPES)]
        source, target = edge_index[0].long(), edge_index[1].long()
        if edge_attr is None:
            kinds = torch.zeros_like(source)
        else:
            kinds = edge_attr[:, EDGE_TYPE_COLUMNS].argmax(dim=1)
        edges_of_type = [torch.nonzero(kinds == t).flatten() for t in range(EDGE_TYPES)]
        for layer in self.layers:
            h = layer(h, source, target, members, edges_of_type)
        return h
