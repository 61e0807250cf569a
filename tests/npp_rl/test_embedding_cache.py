"""While collecting, each graph is encoded once per policy version."""

import numpy as np
import pytest
import torch

from npp_rl.choices import GraphEncoding, ObjectiveValues, Readout
from npp_rl.config import AttentionAgent


@pytest.fixture
def network_and_world(small, world):
    agent = AttentionAgent(
        graph=GraphEncoding(**small.graph, readout=tuple(Readout)),
        objectives=ObjectiveValues(**small.objectives),
        **small.agent,
    )
    w = world(graphs=5, samples=20)
    torch.manual_seed(0)
    return agent.build(w.encoding(), w.tables, w.actions).eval(), w


def test_cached_and_fresh_embeddings_give_equal_outputs(network_and_world):
    network, w = network_and_world
    rng = np.random.default_rng(0)
    for _ in range(6):
        some = rng.integers(0, 20, 7)
        fields = w.fields(w.encoding(), some)
        with torch.no_grad():
            cached = network(fields)
        fresh = network(fields)
        torch.testing.assert_close(cached.logits, fresh.logits, atol=1e-6, rtol=1e-5)
        torch.testing.assert_close(cached.value, fresh.value, atol=1e-6, rtol=1e-5)


def test_each_graph_is_encoded_once_until_the_policy_changes(network_and_world):
    network, w = network_and_world
    seen = []
    network.extractor.graph.encoder.register_forward_hook(lambda m, args, out: seen.append(args[4]))
    fields, distinct = w.fields(w.encoding()), len(np.unique(w.raw["graph_id"]))

    with torch.no_grad():
        network(fields), network.critic(fields)
        assert sum(seen) == distinct
        network.train()  # an update begins
        network.eval()
        network(fields)
        assert sum(seen) == 2 * distinct
        network.load_state_dict(network.state_dict())
        network(fields)
        assert sum(seen) == 3 * distinct


def test_a_changed_encoder_is_never_answered_from_the_cache(network_and_world):
    network, w = network_and_world
    fields = w.fields(w.encoding())
    with torch.no_grad():
        before = network(fields).logits
        network.train()
        for p in network.extractor.graph.parameters():
            p.mul_(1.5)
        network.eval()
        after = network(fields).logits
    assert not torch.allclose(before, after)


def test_the_cache_stays_below_its_bound(network_and_world):
    network, w = network_and_world
    cache = network.extractor.graph.cache
    cache.max_bytes = 1
    with torch.no_grad():
        for start in range(0, 20, 4):
            network(w.fields(w.encoding(), np.arange(start, start + 4)))
            held = cache.nbytes
    biggest = 4 * 40 * (16 + 11) * 4 + 4 * 16 * 4 + 1000
    assert held < biggest
