"""Sums and softmaxes over the edges of a ragged graph, in plain torch.

A neighbour sum reads each node where it lies: no [E, D] message is built, forward or backward.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from frugal_rl.observation.distinct import rows_at


@dataclass(frozen=True)
class Bags:
    """Edges grouped by one of their ends.

    members  [E] int32: the other end of each edge, group after group
    offsets  [N + 1] int32: where the group of each node begins
    """

    members: Tensor
    offsets: Tensor

    @property
    def sizes(self) -> Tensor:
        """[N] int32: edges of each node."""
        return self.offsets[1:] - self.offsets[:-1]

    def sum(self, x: Tensor) -> Tensor:
        """X [N, D] -> [N, D]: the sum of x over each node's group."""
        return F.embedding_bag(self.members, x, self.offsets, mode="sum", include_last_offset=True)


@dataclass(frozen=True)
class Neighbours:
    """The edges of a ragged graph, sorted once and used by every layer."""

    incoming: Bags
    outgoing: Bags

    @classmethod
    def of(cls, edge_index: Tensor, num_nodes: int) -> Neighbours:
        """edge_index [2, E] integer: source row, target row."""
        source, target = edge_index[0].int(), edge_index[1].int()
        return cls(_grouped(target, source, num_nodes), _grouped(source, target, num_nodes))

    def sum(self, x: Tensor) -> Tensor:
        """X [N, D] -> [N, D]: for each node the sum over the sources of its incoming edges."""
        summed: Tensor = _NeighbourSum.apply(x, self)
        return summed


def _grouped(by: Tensor, members: Tensor, num_nodes: int) -> Bags:
    order = torch.argsort(by, stable=True)
    counts = torch.zeros(num_nodes + 1, dtype=torch.int32, device=by.device)
    counts.index_add_(0, by + 1, torch.ones_like(by))
    return Bags(members[order], torch.cumsum(counts, 0, dtype=torch.int32))


class _NeighbourSum(torch.autograd.Function):
    """The adjoint of a sum over incoming edges is the sum over outgoing ones."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, edges: Neighbours) -> Tensor:
        ctx.edges = edges
        return edges.incoming.sum(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return ctx.edges.outgoing.sum(gradients[0].contiguous()), None


def segment_softmax(scores: Tensor, segment: Tensor, num_segments: int) -> Tensor:
    """Softmax within segments: scores [E, H], segment [E] int64 -> [E, H]."""
    index = segment[:, None].expand_as(scores)
    highest = torch.full((num_segments, scores.shape[1]), -torch.inf, device=scores.device)
    highest = highest.to(scores.dtype).scatter_reduce(0, index, scores.detach(), "amax")
    weights = torch.exp(scores - highest[segment])
    total = torch.zeros_like(highest).index_add(0, segment, weights)
    return weights / rows_at(total, segment)


def segment_mean(x: Tensor, segment: Tensor, num_segments: int) -> Tensor:
    """X [N, D], segment [N] int64 -> [segments, D]; zeros where a segment is empty."""
    total = torch.zeros((num_segments, x.shape[1]), dtype=x.dtype, device=x.device)
    total = total.index_add(0, segment, x)
    counts = torch.bincount(segment, minlength=num_segments).clamp(min=1)
    return total / counts[:, None]


def segment_max(x: Tensor, segment: Tensor, num_segments: int) -> Tensor:
    """X [N, D], segment [N] int64 -> [segments, D]; zeros where a segment is empty."""
    out = torch.zeros((num_segments, x.shape[1]), dtype=x.dtype, device=x.device)
    index = segment[:, None].expand_as(x)
    return out.scatter_reduce(0, index, x, "amax", include_self=False)
