"""Networks of the mine: sizes of the guide, static factorisation, gradients, masks."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from frugal_rl.errors import ConfigError
from frugal_rl.learn.trace import trace
from frugal_rl.memory.profile import MemoryProfile
from frugal_rl.observation.choices import Storage
from frugal_rl.observation.decoder import Decoder
from frugal_rl.observation.encoding import Encoding
from frugal_rl.observation.history import History
from frugal_rl.run.compose import compose_run
from frugal_rl.run.preflight import check_chosen
from mine_rl_npv.config import MineConfig
from mine_rl_npv.data.synthetic import Deposit
from mine_rl_npv.networks.agents import Column2dAgent, Head, PointerAgent
from mine_rl_npv.networks.columns import chances, expected
from mine_rl_npv.networks.voxels import VoxelTrunk
from mine_rl_npv.rules.choices import Actions, Kind
from mine_rl_npv.spec import Observation

DEPOSIT = Deposit(8, 7, 6, seed=3, richness=0.6)


def decoded(config, storage=Storage.lossless, steps=12):
    encoding = Encoding.choose(config.spec(), storage)
    vec_env = config.make_vec(4, encoding, MemoryProfile(), None, "train")
    history = History(encoding, 4, config.episode_steps)
    rows = history.reset(vec_env.reset(1))
    rng = np.random.default_rng(0)
    for _ in range(steps):
        masks = vec_env.game.masks()
        step = vec_env.step(np.array([rng.choice(np.flatnonzero(m)) for m in masks]))
        rows, _ = history.push(step.rows, step.done)
    decoder = Decoder(encoding, vec_env.tables)
    fields = decoder({name: torch.from_numpy(v.copy()) for name, v in rows.items()})
    return encoding, vec_env, fields


def cnn(name):
    return compose_run(["env=mine_daily_small", f"agent={name}"]).agent


@pytest.mark.parametrize(
    ("name", "size"), [("cnn3d", 9_206_272), ("cnn3d_small", 208_128), ("cnn3d_tiny", 35_200)]
)
def test_the_extractors_have_the_guides_parameters_and_learn(name, size):
    encoding, vec_env, fields = decoded(MineConfig(data="synthetic", deposit=DEPOSIT, deposits=2))
    network = cnn(name).build(encoding, vec_env.tables, vec_env.action_space)
    extractor = [*network.trunk.parameters(), *network.dense.parameters()]
    assert sum(p.numel() for p in extractor) == size
    out = network(fields)
    assert out.logits.shape == (4, 56)
    assert out.value.shape == (4, 1)
    (out.logits.square().mean() + out.value.square().mean()).backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in network.parameters())


@pytest.mark.parametrize("name", ["cnn3d", "cnn3d_tiny"])
def test_the_factored_first_layer_computes_the_same(name):
    encoding, vec_env, fields = decoded(MineConfig(data="synthetic", deposit=DEPOSIT, deposits=3))
    agent = cnn(name)
    factored = agent.build(encoding, vec_env.tables, vec_env.action_space)
    whole = replace(agent, factored=False).build(encoding, vec_env.tables, vec_env.action_space)
    whole.load_state_dict(factored.state_dict())
    with torch.no_grad():
        assert_allclose(factored(fields).value, whole(fields).value, rtol=1e-4, atol=1e-5)


def test_a_dense_observation_gives_the_network_the_same_numbers():
    config = MineConfig(data="synthetic", deposit=DEPOSIT)
    encoding, vec_env, lossless = decoded(config)
    agent = replace(cnn("cnn3d_tiny"), factored=False)
    network = agent.build(encoding, vec_env.tables, vec_env.action_space)
    _, _, dense = decoded(config, Storage.dense)
    with torch.no_grad():
        assert torch.equal(network(lossless).logits, network(dense).logits)


@pytest.mark.parametrize("name", ["column2d", "columns head", "pcpsp", "pointer"])
def test_every_agent_scores_every_action(name):
    options = {"kind": Kind.cpit}
    if name == "pcpsp":
        options = {"kind": Kind.pcpsp, "obs": Observation.columns}
    if name == "pointer":
        options |= {"actions": Actions.block}
    encoding, vec_env, fields = decoded(
        MineConfig(data="synthetic", deposit=DEPOSIT, **options), steps=8
    )
    agents = {
        "column2d": Column2dAgent(),
        "pcpsp": Column2dAgent(),
        "pointer": PointerAgent(),
        "columns head": replace(cnn("cnn3d_tiny"), head=Head.columns),
    }
    network = agents[name].build(encoding, vec_env.tables, vec_env.action_space)
    out = network(fields)
    assert out.logits.shape == (4, int(vec_env.action_space.n))
    assert out.logits.isfinite().all()
    assert_allclose(network.actor(fields).detach(), out.logits.detach(), atol=1e-6)
    assert_allclose(network.critic(fields).detach(), out.value.detach(), atol=1e-6)


def test_the_critic_reads_the_columns_that_the_policy_means():
    """Of 400 columns one differs between states: in a mean over all of them it would drown."""
    config = MineConfig(data="synthetic", deposit=Deposit(20, 20, 4, seed=3, richness=0.6))
    encoding = Encoding.choose(config.spec(), Storage.lossless)
    vec_env = config.make_vec(1, encoding, MemoryProfile(), None, "train")
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    wanted = rng.uniform(-1, 1, 32).astype(np.float32)
    place = rng.integers(1, 400, 32)
    columns = np.tile(rng.normal(size=(1, 16, 400)), (32, 1, 1)).astype(np.float32)
    columns[:, :, 0] = 3.0  # richer than any, so that a maximum over all columns is constant
    columns[np.arange(32), 0, place] = wanted
    for name in ("column2d", "cnn3d_tiny"):
        agent = replace(cnn(name), head=Head.columns) if name != "column2d" else Column2dAgent()
        network = agent.build(encoding, vec_env.tables, vec_env.action_space)
        logits = torch.zeros(32, 400)
        logits[torch.arange(32), torch.from_numpy(place)] = 20.0
        fields = {
            "columns": torch.from_numpy(columns).view(32, 16, 20, 20),
            "action_mask": torch.ones(32, 400, dtype=torch.bool),
            "geology": torch.zeros(32, 15, 20, 20, 4),
            "pit": torch.zeros(32, 2, 20, 20, 4),
        }
        if name == "column2d":
            network._act = lambda maps, logits=logits: logits
        else:
            network.logits.forward = lambda mixed, logits=logits: logits
        optimizer = torch.optim.Adam(network.parameters(), 1e-2)
        for _ in range(25):
            optimizer.zero_grad()
            missed = network(fields).value.flatten() - torch.from_numpy(wanted)
            missed.square().mean().backward()
            optimizer.step()
        assert missed.var() < 0.3 * wanted.var(), name


def test_expected_features_follow_the_masked_chances_and_teach_no_logits():
    rng = torch.Generator().manual_seed(0)
    maps = torch.randn(2, 3, 2, 2, generator=rng, requires_grad=True)
    logits = torch.randn(2, 9, generator=rng, requires_grad=True)  # two destinations, one closing
    mask = torch.tensor([[True] * 9, [False, False, True, True, True, False, False, True, True]])
    meant = expected(maps, chances(logits, mask, 4))
    chance = torch.softmax(logits.masked_fill(~mask, -torch.inf), dim=1)[:, :8]
    slow = (maps.flatten(2) * chance.reshape(2, 1, 4, 2).sum(-1)).sum(-1)
    assert_allclose(meant.detach(), slow.detach(), rtol=1e-6)
    meant.sum().backward()
    assert maps.grad is not None
    assert logits.grad is None


def test_networks_refuse_what_they_cannot_read():
    encoding, vec_env, _ = decoded(
        MineConfig(data="synthetic", deposit=DEPOSIT, kind=Kind.cpit, actions=Actions.block),
        steps=1,
    )
    with pytest.raises(ConfigError, match=r"env\.actions=column"):
        Column2dAgent().build(encoding, vec_env.tables, vec_env.action_space)


@pytest.mark.parametrize("storage", ["baseline", "attention"])
def test_a_pointer_without_the_number_of_its_mine_is_refused_and_its_remedy_is_none(storage):
    words = [
        "env=mine_cpit",
        "env.obs=volume",
        "env.actions=block",
        "agent=pointer",
        f"memory={storage}",
    ]
    with pytest.raises(ConfigError, match=r"Add env\.fields\.geology=interned"):
        check_chosen(compose_run(words))
    check_chosen(compose_run([*words, "env.fields.geology=interned"]))


def test_a_pointer_is_traced_without_its_mine(monkeypatch):
    monkeypatch.setattr("mine_rl_npv.rules.sizes.open_mines", None)
    sizes = ["algo.num_envs=4", "algo.n_steps=8", "algo.batch_size=16"]
    words = ["env=mine_cpit", "env.obs=volume", "env.actions=block", "agent=pointer", *sizes]
    run = compose_run(words)
    found = trace(run)

    assert found.traced
    assert found.bytes_per_sample > 4 * int(run.env.action_space().n) * run.agent.width


def test_gradients_of_shared_ground_repeat_themselves_with_several_threads():
    encoding, vec_env, fields = decoded(MineConfig(data="synthetic", deposit=DEPOSIT, deposits=2))
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        torch.manual_seed(0)
        trunk = VoxelTrunk(encoding.spec.by_name["geology"].shape[0], cnn("cnn3d_tiny"))
        many = {name: row.repeat(400, *[1] * (row.ndim - 1)) for name, row in fields.rows.items()}
        many["mine_id"] = torch.arange(1600, dtype=torch.int32) % 2
        shown = Decoder(encoding, vec_env.tables)(many)
        weights = list(trunk.convolutions[0].parameters())
        push = torch.randn(trunk.first(shown).shape)

        def gradients():
            return torch.autograd.grad((trunk.first(shown) * push).sum(), weights)

        once = gradients()
        for _ in range(4):
            assert all(torch.equal(a, b) for a, b in zip(gradients(), once, strict=True))
    finally:
        torch.set_num_threads(before)
