"""The boundary between stored graphs and encoders: padding and repetition end here.

Interned graphs are read once per distinct id of a minibatch; padded ones (dense, half or ragged
storage) lose their padding once. Encoders see the same ragged form in either case.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from frugal_rl.observation.distinct import distinct

if TYPE_CHECKING:
    from frugal_rl.observation.mirror import TableMirror

NODE_FEATS, EDGE_INDEX, EDGE_FEATS = "graph_node_feats", "graph_edge_index", "graph_edge_feats"
NODE_MASK, EDGE_MASK = "graph_node_mask", "graph_edge_mask"


@dataclass(frozen=True)
class GraphBatch:
    """G ragged graphs and the samples that refer to them.

    nodes            [n, F] float32
    edge_index       [2, e] int64, rows of `nodes`
    edge_attr        [e, 14] float32 or None
    graph_of_node    [n] int64
    first_node       [G] int64: row of each graph's first node
    graph_of_sample  [B] int64
    """

    nodes: Tensor
    edge_index: Tensor
    edge_attr: Tensor | None
    graph_of_node: Tensor
    first_node: Tensor
    graph_of_sample: Tensor

    @property
    def num_graphs(self) -> int:
        """How many graphs the encoder will read."""
        return len(self.first_node)


def from_padded(
    node_feats: Tensor,
    edge_index: Tensor,
    edge_feats: Tensor | None,
    node_mask: Tensor,
    edge_mask: Tensor,
) -> GraphBatch:
    """One graph per sample.

    Shapes: [B, N, F], [B, E, 2] or [B, 2, E], [B, E, 14] or None, [B, N] and [B, E] 0/1.
    """
    if edge_index.shape[-1] != 2:
        edge_index = edge_index.transpose(1, 2)
    real = node_mask.bool()
    number = (torch.cumsum(real.flatten(), 0) - 1).view(real.shape)
    sizes = real.sum(1)
    samples = torch.arange(len(sizes), device=sizes.device)
    sample, edge = torch.nonzero(edge_mask, as_tuple=True)
    ends = edge_index[sample, edge].long()  # [e, 2]
    return GraphBatch(
        nodes=node_feats[real].float(),
        edge_index=number[sample[:, None], ends].T,
        edge_attr=None if edge_feats is None else edge_feats[sample, edge].float(),
        graph_of_node=torch.repeat_interleave(samples, sizes),
        first_node=torch.cumsum(sizes, 0) - sizes,
        graph_of_sample=samples,
    )


def from_table(table: TableMirror, ids: Tensor, edge_features: bool) -> GraphBatch:
    """The distinct graphs of `ids` [B] int64, each once, in ascending order of id."""
    unique, inverse = distinct(ids)
    return ragged_graphs(table, unique, inverse, edge_features)


def ragged_graphs(
    table: TableMirror, ids: Tensor, graph_of_sample: Tensor, edge_features: bool
) -> GraphBatch:
    """The graphs `ids` [G] of a table, in that order."""
    nodes = table.ragged(NODE_FEATS, ids)
    edges = table.ragged(EDGE_INDEX, ids)  # rows (source, target), numbered within their graph
    first = torch.cumsum(nodes.lengths, 0) - nodes.lengths
    shift = torch.repeat_interleave(first, edges.lengths, output_size=len(edges.items))
    return GraphBatch(
        nodes=nodes.items.float(),
        edge_index=edges.items.long().T + shift,
        edge_attr=table.ragged(EDGE_FEATS, ids).items.float() if edge_features else None,
        graph_of_node=nodes.row_of_item,
        first_node=first,
        graph_of_sample=graph_of_sample,
    )
