"""Where the shortest path goes from each node of a navigation graph: plain geometry, no weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from npp_rl.graphs.batches import GraphBatch


AHEAD = (1, 2, 4, 8, 16)
"""Hops ahead at which the path is looked up; powers of two."""
PATH_VALUES = 2 * len(AHEAD) + 1
HOPS, X, Y = 19, 0, 1
"""Columns of the node features: hops to the objective, position in shares of the map."""
MAP_PX = (1056.0, 600.0)
STEP_PX = 12.0


def next_nodes(graphs: GraphBatch) -> Tensor:
    """[n] int64: a neighbour that is nearer to the objective, the node itself where none is.

    Of several the one with the fewest hops is taken, then the lowest number.
    """
    hops = graphs.nodes[:, HOPS]
    source, target = graphs.edge_index
    best = hops.scatter_reduce(0, source, hops[target], "amin")
    nearer = (hops[target] == best[source]) & (hops[target] < hops[source])
    following = torch.full((len(hops),), len(hops), device=hops.device)
    following = following.scatter_reduce(0, source[nearer], target[nearer], "amin")
    own = torch.arange(len(hops), device=hops.device)
    return torch.where(following < len(hops), following, own)


def path_values(graphs: GraphBatch) -> Tensor:
    """[n, PATH_VALUES]: where each node's path leads, and how far it still is.

    dx, dy to the node 1, 2, 4, 8, 16 hops ahead as shares of the furthest they can be; the hops
    that remain as a share of the graph's most.
    """
    scale = torch.tensor(MAP_PX, device=graphs.nodes.device) / STEP_PX
    place = graphs.nodes[:, [X, Y]] * scale
    following, parts = next_nodes(graphs), []
    for hops in AHEAD:
        parts.append((place[following] - place) / hops)
        following = following[following]
    return torch.cat((*parts, graphs.nodes[:, HOPS, None]), dim=1)
