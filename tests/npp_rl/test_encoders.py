"""Encoders against slow twins, and what every encoder must hold to."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from npp_rl.choices import DegreeScale, GraphEncoding, Kind, Pool
from npp_rl.graphs.embedded import EmbeddedGraphs
from npp_rl.graphs.encoders.build import build_encoder
from npp_rl.graphs.encoders.gcn import Gcn
from npp_rl.graphs.encoders.messages import Neighbours, segment_max, segment_mean, segment_softmax

KINDS = [
    GraphEncoding(Kind.gcn, 2, 16, 4, 8),
    GraphEncoding(Kind.gcn, 2, 16, 4, 8, pool=Pool.mean_max, scale=DegreeScale.max_nodes),
    GraphEncoding(Kind.gat, 2, 16, 4, 8),
    GraphEncoding(Kind.gat, 2, 16, 4, 8, edge_features=True),
    GraphEncoding(Kind.gat, 2, 16, 4, 8, type_embedding=True),
    GraphEncoding(Kind.hgt, 2, 16, 4, 8, pool=Pool.mean_max),
]


def ragged(seed=0, sizes=(7, 1, 12), edges=30):
    rng = np.random.default_rng(seed)
    first = np.cumsum([0, *sizes])
    nodes = torch.from_numpy(rng.normal(size=(sum(sizes), 21)).astype(np.float32))
    index = np.concatenate(
        [f + rng.integers(0, n, (2, edges)) for f, n in zip(first, sizes, strict=False)], axis=1
    )
    attr = torch.from_numpy(rng.normal(size=(index.shape[1], 14)).astype(np.float32))
    owner = torch.from_numpy(np.repeat(np.arange(len(sizes)), sizes))
    return nodes, torch.from_numpy(index), attr, owner, len(sizes)


@given(st.integers(1, 9), st.integers(0, 40), st.integers(0, 10_000))
def test_a_neighbour_sum_equals_a_loop_over_edges_forward_and_backward(n, e, seed):
    rng = np.random.default_rng(seed)
    index = torch.from_numpy(rng.integers(0, n, (2, e)))
    x = torch.from_numpy(rng.normal(size=(n, 3))).float().requires_grad_()
    weight = torch.from_numpy(rng.normal(size=(n, 3))).float()

    summed = Neighbours.of(index, n).sum(x)
    (summed * weight).sum().backward()

    expected, gradient = torch.zeros(n, 3), torch.zeros(n, 3)
    for source, target in index.T.tolist():
        expected[target] += x.detach()[source]
        gradient[source] += weight[target]
    torch.testing.assert_close(summed.detach(), expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(x.grad, gradient, atol=1e-5, rtol=1e-5)


@given(st.integers(1, 30), st.integers(0, 10_000))
def test_segment_functions_equal_loops(n, seed):
    rng = np.random.default_rng(seed)
    x = torch.from_numpy(rng.normal(size=(n, 2)) * 5).float()
    segment = torch.from_numpy(rng.integers(0, 4, n))

    softmax, mean = segment_softmax(x, segment, 4), segment_mean(x, segment, 4)
    highest = segment_max(x, segment, 4)

    for k in range(4):
        own = x[segment == k]
        if len(own):
            torch.testing.assert_close(softmax[segment == k], torch.softmax(own, 0))
            torch.testing.assert_close(mean[k], own.mean(0))
            assert torch.equal(highest[k], own.max(0).values)
        else:
            assert not mean[k].any()
            assert not highest[k].any()


def test_a_gcn_equals_its_formula_written_with_dense_matrices():
    nodes, index, _, owner, graphs = ragged()
    gcn = Gcn(GraphEncoding(Kind.gcn, 2, 16, 4, 8), 21)

    embedded, pooled = gcn(nodes, index, None, owner, graphs)

    n = len(nodes)
    adjacency = np.zeros((n, n), np.float32)
    for source, target in index.T.tolist():
        adjacency[target, source] += 1
    into, out = np.maximum(adjacency.sum(1), 1), np.maximum(adjacency.sum(0), 1)
    scaled = torch.from_numpy(adjacency / np.sqrt(into[:, None] * out[None]))
    h = torch.relu(gcn.input.linear(nodes))
    for layer in gcn.layers:
        h = torch.relu(layer.norm(h + scaled @ layer.linear(h)))
    torch.testing.assert_close(embedded, h, atol=1e-5, rtol=1e-5)
    mean = torch.stack([h[owner == g].mean(0) for g in range(graphs)])
    torch.testing.assert_close(pooled, gcn.output(mean), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("values", KINDS, ids=str)
def test_a_graphs_embedding_does_not_depend_on_its_company(values):
    nodes, index, attr, owner, graphs = ragged()
    encoder = build_encoder(values, 21)
    together_nodes, together = encoder(nodes, index, attr, owner, graphs)

    for g in range(graphs):
        own = owner == g
        first = int(torch.nonzero(own)[0])
        mine = own[index[0]]
        alone_nodes, alone = encoder(
            nodes[own], index[:, mine] - first, attr[mine], torch.zeros(int(own.sum())).long(), 1
        )
        torch.testing.assert_close(alone[0], together[g], atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(alone_nodes, together_nodes[own], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("values", KINDS, ids=str)
def test_renumbering_nodes_and_edges_changes_nothing(values):
    nodes, index, attr, owner, graphs = ragged(sizes=(15,))
    encoder = build_encoder(values, 21)
    place = torch.randperm(15)
    back = torch.argsort(place)
    order = torch.randperm(index.shape[1])

    _, before = encoder(nodes, index, attr, owner, graphs)
    _, after = encoder(nodes[place], back[index][:, order], attr[order], owner, graphs)

    torch.testing.assert_close(after, before, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("values", KINDS, ids=str)
def test_every_parameter_of_an_encoder_learns_and_edgeless_graphs_are_fine(values):
    nodes, index, attr, owner, graphs = ragged()
    kinds = torch.arange(len(nodes)) % 7
    nodes[:, 2:9] = torch.nn.functional.one_hot(kinds, 7).float()
    attr[:, :4] = torch.nn.functional.one_hot(torch.arange(len(attr)) % 4, 4).float()
    encoder = build_encoder(values, 21)

    _, pooled = encoder(nodes, index, attr, owner, graphs)
    (pooled * torch.randn_like(pooled)).sum().backward()
    _, lonely = encoder(nodes, index[:, :0], attr[:0], owner, graphs)

    assert all(p.grad is not None and bool(p.grad.any()) for p in encoder.parameters())
    assert torch.isfinite(lonely).all()


def test_the_predecessors_scale_is_the_padding_size_and_the_default_is_not():
    nodes, index, _, owner, graphs = ragged()
    torch.manual_seed(0)
    by_degree = Gcn(GraphEncoding(Kind.gcn, 2, 16, 4, 8), 21)
    by_padding = Gcn(GraphEncoding(Kind.gcn, 2, 16, 4, 8, scale=DegreeScale.max_nodes), 21)
    by_padding.load_state_dict(by_degree.state_dict())

    difference = (
        by_degree(nodes, index, None, owner, graphs)[1]
        - by_padding(nodes, index, None, owner, graphs)[1]
    )

    assert difference.abs().max() > 1e-4


def test_heads_that_do_not_divide_the_width_are_refused_in_words():
    with pytest.raises(ValueError, match=r"multiple of agent\.graph\.heads"):
        GraphEncoding(Kind.gat, 2, 10, 4, 8)


@pytest.mark.parametrize("kind", [Kind.gcn, Kind.gat, Kind.hgt])
def test_gradients_repeat_themselves_with_several_threads(kind):
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    torch.manual_seed(0)
    encoder = build_encoder(GraphEncoding(kind, 2, 64, 4, 64), 21)
    nodes, index, attr, owner, graphs = ragged(sizes=(9, 7, 12), edges=9000)
    samples = torch.randint(0, graphs, (20_000,))
    places = torch.randint(0, 7, (20_000, 4))
    first, weight = torch.tensor([0, 9, 16]), torch.randn(20_000, 64)

    def gradients():
        embedded, pooled = encoder(nodes, index, attr, owner, graphs)
        seen = EmbeddedGraphs(embedded, nodes, pooled, first, samples)
        loss = (seen.at(places).sum(1) * weight).sum() + (seen.of_samples() * weight).sum()
        return torch.autograd.grad(loss, list(encoder.parameters()), allow_unused=True)

    try:
        once = gradients()
        for _ in range(4):
            for ours, other in zip(gradients(), once, strict=True):
                assert ours is None or torch.equal(ours, other)
    finally:
        torch.set_num_threads(before)
