"""The whole network: equality of storage forms, permutations, padding, entropy, batch sizes."""

import re
from dataclasses import replace

import numpy as np
import pytest
import torch

from frugal_rl.errors import ConfigError
from frugal_rl.observation.choices import Storage
from npp_rl.choices import (
    FusionKind,
    GraphEncoding,
    Kind,
    ObjectiveHead,
    ObjectiveValues,
    Readout,
    ValueKind,
)
from npp_rl.config import AttentionAgent, StateBranch

ALL = tuple(Readout)
GRAPH_PARTS = re.compile("graph_|_node")


@pytest.fixture
def agent(small):
    return AttentionAgent(
        graph=GraphEncoding(**small.graph, readout=ALL),
        objectives=ObjectiveValues(**small.objectives),
        window_features=8,
        hazard_features=8,
        **small.agent,
    )


def build(agent, world, encoding=None):
    torch.manual_seed(0)
    return agent.build(encoding or world.encoding(), world.tables, world.actions)


def loss_of(out):
    """Unlike the logits' own sum, this has a gradient for every output."""
    weight = torch.linspace(-1, 1, out.logits.numel()).view_as(out.logits)
    return (out.logits * weight).sum() + (out.value**2).sum() + sum(out.losses.values())


def gradients(network, fields):
    network.zero_grad()
    out = network(fields)
    loss_of(out).backward()
    grads = {n: p.grad.clone() for n, p in network.named_parameters() if p.grad is not None}
    return out, grads


@pytest.mark.parametrize("kind", [Kind.gcn, Kind.gat, Kind.hgt])
@pytest.mark.parametrize("graph", ["dense", "interned"])
def test_all_storage_forms_give_the_same_outputs_and_gradients(agent, world, kind, graph):
    agent = replace(agent, graph=replace(agent.graph, kind=kind))
    w = world(graphs=3, samples=9)
    reference = build(agent, w, w.encoding(Storage.dense))
    other = build(agent, w, w.encoding(graph=graph))
    other.load_state_dict(reference.state_dict())

    out, grads = gradients(reference, w.fields(w.encoding(Storage.dense)))
    same, same_grads = gradients(other, w.fields(w.encoding(graph=graph)))

    torch.testing.assert_close(same.logits, out.logits, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(same.value, out.value, atol=1e-5, rtol=1e-5)
    assert grads.keys() == same_grads.keys()
    for name, grad in grads.items():
        torch.testing.assert_close(same_grads[name], grad, atol=1e-5, rtol=1e-4, msg=name)


def test_the_encoder_reads_each_distinct_graph_once(agent, world):
    w = world(graphs=3, samples=64)
    network = build(agent, w)
    seen = []
    network.extractor.graph.encoder.register_forward_hook(lambda m, args, out: seen.append(args[4]))

    network(w.fields(w.encoding()))

    assert seen == [3]


def test_permuting_doors_changes_nothing(agent, world):
    agent = replace(agent, graph=replace(agent.graph, readout=(Readout.pool,)))
    w = world(doors=6, samples=12)
    w.raw["num_locked_doors"][:] = 6
    network = build(agent, w)
    before = network(w.fields(w.encoding()))

    order = np.concatenate((np.random.default_rng(1).permutation(6), np.arange(6, 16)))
    w.raw["locked_door_features"] = w.raw["locked_door_features"][:, order]
    after = network(w.fields(w.encoding()))

    torch.testing.assert_close(after.logits, before.logits, atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(after.metrics, before.metrics, atol=1e-6, rtol=1e-6)


def test_padding_rows_have_no_influence_even_when_they_hold_nonsense(agent, world):
    w = world(doors=5, samples=10)
    network = build(agent, w)
    before = network(w.fields(w.encoding()))

    for row, doors in zip(
        w.raw["locked_door_features"], w.raw["num_locked_doors"][:, 0], strict=True
    ):
        row[doors:] = np.nan
    after = network(w.fields(w.encoding()))

    assert torch.equal(after.logits, before.logits)
    assert torch.equal(after.metrics["attention_entropy"], before.metrics["attention_entropy"])


def test_attention_weights_sum_to_one_over_the_objectives_that_exist(agent, world):
    w = world(doors=5, samples=10)
    weights = build(agent, w).attention(w.fields(w.encoding()))

    torch.testing.assert_close(weights.sum(1), torch.ones(10, 4))
    for sample, doors in enumerate(w.raw["num_locked_doors"][:, 0]):
        present = (weights[sample].sum(-1) > 0).nonzero().flatten().tolist()
        assert present == [0, *range(1, 1 + doors), *range(17, 17 + doors)]


def test_the_entropy_bonus_is_there_for_any_batch_size_in_any_order_and_carries_a_gradient(
    agent, world
):
    w = world(doors=4, samples=32)
    network = build(agent, w)
    for size in (2, 1, 32, 4, 32, 1):  # the predecessor crashed when sizes changed, then skipped it
        network.zero_grad()
        out = network(w.fields(w.encoding(), np.arange(size)))
        assert "attention_entropy_loss" in out.losses
    out.losses["attention_entropy_loss"].backward()
    assert not bool(network.policy.attention.key.weight.grad.any()) or size > 0

    network.zero_grad()
    network(w.fields(w.encoding())).losses["attention_entropy_loss"].backward()
    assert bool(network.policy.attention.key.weight.grad.any())
    assert bool(network.policy.attention.query.weight.grad.any())


def test_the_entropy_is_that_of_the_weights_of_the_same_pass(agent, world):
    w = world(doors=4, samples=6)
    network = build(agent, w)

    out = network(w.fields(w.encoding()))
    weights = network.attention(w.fields(w.encoding()))

    terms = torch.where(weights > 0, -weights * weights.clamp(min=1e-30).log(), 0.0)
    entropy = terms.sum(1).mean()
    torch.testing.assert_close(out.metrics["attention_entropy"], entropy)
    torch.testing.assert_close(out.losses["attention_entropy_loss"], -0.01 * entropy)


@pytest.mark.parametrize("split", [False, True])
def test_the_gradient_reaches_every_parameter(agent, world, split):
    agent = replace(agent, objectives=replace(agent.objectives, split_exit=split))
    w = world(doors=4, samples=24)
    network = build(agent, w)
    torch.nn.init.normal_(network.policy.logits.weight)

    _, grads = gradients(network, w.fields(w.encoding()))

    silent = [n for n, p in network.named_parameters() if n not in grads or not grads[n].any()]
    assert not silent


@pytest.mark.parametrize("fusion", list(FusionKind))
@pytest.mark.parametrize("state", list(StateBranch))
def test_actor_and_critic_alone_equal_the_joint_pass(agent, world, fusion, state):
    w = world(samples=5)
    network = build(replace(agent, fusion=fusion, state=state), w)
    fields = w.fields(w.encoding())

    out = network(fields)

    torch.testing.assert_close(network.actor(fields), out.logits)
    torch.testing.assert_close(network.critic(fields), out.value)


def test_dueling_advantages_have_an_effect_on_the_value_and_learn_from_it(agent, world):
    w = world(samples=16)
    network = build(replace(agent, value=ValueKind.dueling), w)
    torch.nn.init.normal_(network.policy.logits.weight)
    fields = w.fields(w.encoding())
    before = network(fields).value

    before.sum().backward()
    assert bool(network.value.advantages.weight.grad.any())
    with torch.no_grad():
        network.value.advantages.weight.mul_(-1)
    assert (network(fields).value - before).abs().max() > 1e-4
    torch.testing.assert_close(network.critic(fields), network(fields).value)


def test_separate_extractors_share_no_parameter(agent, world):
    w = world(samples=4)
    network = build(replace(agent, separate_extractors=True), w)

    network(w.fields(w.encoding())).value.sum().backward()

    assert all(p.grad is None for p in network.extractor.parameters())
    assert any(p.grad is not None for p in network.critic_extractor.parameters())


@pytest.mark.parametrize("head", list(ObjectiveHead))
def test_every_objective_head_works_without_locked_doors(agent, world, head):
    w = world(samples=4)
    agent = replace(agent, objectives=replace(agent.objectives, head=head))
    keep = [f for f in w.spec.fields if "locked_door" not in f.name]
    w.spec = replace(w.spec, fields=tuple(keep))

    out = build(agent, w).forward(w.fields(w.encoding()))

    assert out.logits.shape == (4, 6)


def test_recomputed_activations_give_the_same_gradient(agent, world):
    w = world(samples=7)
    network = build(agent, w)
    _, kept = gradients(network, w.fields(w.encoding()))

    network.recompute = True
    _, recomputed = gradients(network, w.fields(w.encoding()))

    assert all(torch.equal(kept[n], recomputed[n]) for n in kept)


def test_an_observation_without_a_wanted_field_is_refused_with_the_override_that_helps(
    agent, world
):
    w = world()
    w.spec = replace(
        w.spec, fields=tuple(f for f in w.spec.fields if not GRAPH_PARTS.search(f.name))
    )
    with pytest.raises(ConfigError, match=r"agent.graph.kind=none"):
        build(agent, w)
    out = build(replace(agent, graph=GraphEncoding(Kind.none)), w)(w.fields(w.encoding()))
    assert out.logits.shape == (8, 6)
