"""The path's direction against a walk by hand."""

import numpy as np
import torch

from npp_rl.graphs.batches import GraphBatch
from npp_rl.graphs.paths import AHEAD, HOPS, next_nodes, path_values


def corridor(length: int, offset: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """A corridor of 12 px steps to the right, its objective at the right end."""
    nodes = torch.zeros(length, 21)
    nodes[:, 0] = (torch.arange(length) * 12.0 + 6) / 1056
    nodes[:, 1] = 30 / 600
    nodes[:, HOPS] = torch.arange(length - 1, -1, -1) / (length - 1)
    right = torch.stack((torch.arange(length - 1), torch.arange(1, length)))
    return nodes, torch.cat((right, right.flip(0)), dim=1) + offset


def batch(*lengths: int) -> GraphBatch:
    first = np.cumsum([0, *lengths])[:-1]
    parts = [corridor(n, int(f)) for n, f in zip(lengths, first, strict=True)]
    return GraphBatch(
        torch.cat([p[0] for p in parts]),
        torch.cat([p[1] for p in parts], dim=1),
        None,
        torch.repeat_interleave(torch.arange(len(lengths)), torch.tensor(lengths)),
        torch.from_numpy(first),
        torch.arange(len(lengths)),
    )


def test_the_next_node_is_one_hop_nearer_and_the_goal_stays_where_it_is():
    assert next_nodes(batch(4, 3)).tolist() == [1, 2, 3, 3, 5, 6, 6]


def test_path_values_are_the_offsets_of_the_nodes_ahead():
    values = path_values(batch(20, 5))
    for start in range(20):
        for k, hops in enumerate(AHEAD):
            walked = min(hops, 19 - start)
            torch.testing.assert_close(
                values[start, 2 * k].item(), walked / hops, atol=1e-4, rtol=0
            )
            assert abs(values[start, 2 * k + 1].item()) < 1e-6
    assert values[19, -1] == 0


def test_a_graph_without_a_way_points_nowhere():
    graphs = batch(6)
    graphs.nodes[:, HOPS] = 1.0
    assert not path_values(graphs)[:, :-1].any()
