"""The compiled engine against the exact one: gradients, four updates, resuming, refusals."""

import copy
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st
from stable_baselines3.common.type_aliases import DictRolloutBufferSamples as Minibatch

from frugal_rl.errors import ConfigError
from frugal_rl.learn.agents import Activation, MlpAgent
from frugal_rl.learn.compiled import engine as engine_module
from frugal_rl.learn.compiled.acting import CompiledActor
from frugal_rl.learn.compiled.activations import tanh
from frugal_rl.learn.compiled.engine import BLOCK, CompiledPerceptron
from frugal_rl.learn.compiled.refusal import refuse_policy
from frugal_rl.learn.compiled.start import frozen_actor
from frugal_rl.learn.compiled.update import CompiledAdam, CompiledUpdate
from frugal_rl.learn.on_policy_config import Engine, Terms
from frugal_rl.learn.optimizer import FlatAdam
from frugal_rl.learn.policy import FrugalPolicy
from frugal_rl.learn.ppo_config import PpoConfig
from frugal_rl.learn.update import Record, Update
from frugal_rl.memory import MemoryProfile, Storage
from frugal_rl.memory.choices import Precision
from frugal_rl.observation.encoding import Encoding
from frugal_rl.observation.spec import ObservationSpec, Stored
from frugal_rl.observation.tables import Tables
from frugal_rl.run.config import Hardware, RunConfig
from frugal_rl.run.trainer import no_meter
from frugal_rl.testing.toy import Toy
from frugal_rl.vec_env.episodes import Episodes

ALGO = PpoConfig(
    num_envs=6,
    n_steps=16,
    batch_size=32,
    n_epochs=3,
    total_steps=6 * 16 * 4,
    ent_coef=0.01,
    engine=Engine.compiled,
)
RUN = RunConfig(
    Toy(),
    MlpAgent(actor=(32, 16), critic=(24,)),
    ALGO,
    MemoryProfile(),
    None,
    hardware=Hardware("cpu", threads=1),
    seed=5,
)
ACTIONS = st.one_of(
    st.integers(2, 12).map(spaces.Discrete),
    st.lists(st.integers(2, 5), min_size=1, max_size=3).map(spaces.MultiDiscrete),
    st.integers(1, 9).map(lambda n: spaces.Box(-1, 1, (n,))),
)
WIDTHS = st.lists(st.sampled_from((1, 3, 8, 17, 32, 130)), max_size=2).map(tuple)
AGENTS = st.builds(
    MlpAgent,
    actor=WIDTHS,
    critic=WIDTHS,
    shared=WIDTHS,
    activation=st.sampled_from((Activation.tanh, Activation.relu)),
    image_features=st.sampled_from((4, 9)),
)
TERMS = st.builds(
    Terms,
    clip_range=st.sampled_from((0.05, 0.3)),
    clip_range_vf=st.sampled_from((None, 0.1)),
    ent_coef=st.sampled_from((0.0, 0.02)),
    vf_coef=st.sampled_from((0.0, 0.5)),
    normalize_advantage=st.booleans(),
    max_grad_norm=st.just(0.5),
    target_kl=st.none(),
)


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


PICTURES = {"picture": (9, 8), "other": (8, 11)}


def policy_on(actions, agent, pictures, masked, plain=True):
    """A policy over floats, pictures and perhaps a mask."""
    fields = [Stored("x", (7,), np.float32, -3, 3)] if plain else []
    fields += [Stored(name, PICTURES[name], np.uint8, 0, 255) for name in pictures]
    if masked:
        size = actions.n if isinstance(actions, spaces.Discrete) else int(actions.nvec.sum())
        fields.append(Stored("mask", (size,), np.bool_, 0, 1))
    spec = ObservationSpec(tuple(fields), action_mask="mask" if masked else None)
    encoding = Encoding.choose(spec, Storage.dense)
    return FrugalPolicy(
        encoding.policy_space(),
        actions,
        lambda _: 1e-3,
        agent=agent,
        encoding=encoding,
        tables=Tables(),
    )


def minibatch(policy, samples, random, different=1000):
    """Random rows with so many pictures, allowed actions, old numbers near the policy's own."""
    shown = policy.observation_space.spaces
    rows = {"x": random.standard_normal((samples, 7), dtype=np.float32)} if "x" in shown else {}
    for name in PICTURES.keys() & shown.keys():
        seen = random.integers(0, 256, (different, *PICTURES[name])).astype(np.uint8)
        rows[name] = seen[random.integers(0, different, samples)]
    if policy.mask_name:
        groups = (
            [policy.action_space.n] if policy.action_space.shape == () else policy.action_space.nvec
        )
        mask = random.random((samples, sum(groups))) < 0.5
        for start in np.cumsum([0, *groups[:-1]]):
            mask[:, start] = True
        rows["mask"] = mask
    obs = {name: torch.from_numpy(row) for name, row in rows.items()}
    with torch.no_grad():
        actions, values, log_prob = policy(obs)
    draw = lambda: torch.from_numpy(random.standard_normal(samples, dtype=np.float32))  # noqa: E731
    return Minibatch(
        obs,
        actions.float(),
        values.flatten() + 0.2 * draw(),
        log_prob + 0.2 * draw(),
        draw(),
        draw(),
    )


@settings(max_examples=60, deadline=None)
@given(
    ACTIONS,
    AGENTS,
    TERMS,
    st.sampled_from([(), ("picture",), ("picture", "other")]),
    st.sampled_from([1, 20, 1000]),
    st.booleans(),
    st.booleans(),
    st.sampled_from([1, 3]),
    st.integers(0, 2**32 - 1),
)
def test_gradient_and_losses_are_those_of_the_exact_engine(
    actions, agent, terms, pictures, different, floats, masked, threads, seed
):
    torch.manual_seed(seed)
    masked = masked and not isinstance(actions, spaces.Box)
    policy = policy_on(actions, agent, pictures, masked, floats or not pictures)
    twin = copy.deepcopy(policy)
    batch = minibatch(policy, BLOCK + 37, np.random.default_rng(seed), different)
    adam = CompiledAdam(policy.parameters(), 1e-3, 1e-5, fused=False)
    plain = FlatAdam(twin.parameters(), 1e-3, 1e-5, fused=False)
    compiled = CompiledUpdate(policy, adam, CompiledPerceptron(policy, adam, threads))
    exact, ours, theirs = Update(twin, plain), Record(), Record()

    compiled.differentiate(batch, terms, ours, None)
    exact.differentiate(batch, terms, theirs, None)

    size = plain.gradient.abs().max().item()
    torch.testing.assert_close(adam.gradient, plain.gradient, rtol=1e-4, atol=1e-6 + 2e-6 * size)
    assert_near(ours.losses[0], theirs.losses[0], rtol=1e-5)
    assert_near(ours.log_ratios[0], theirs.log_ratios[0], rtol=0)


def assert_near(array, tensor, rtol):
    torch.testing.assert_close(torch.from_numpy(array), tensor, rtol=rtol, atol=1e-5)


def acts_like(policy, engine, rows):
    """Whether the engine's outputs are the network's."""
    with torch.no_grad():
        out = policy.outputs(rows)
    outputs, mask = engine.outputs_of(rows)
    logits = np.where(mask, outputs[:, :-1], np.finfo(np.float32).min)
    apart = (logits - out.logits.numpy(), outputs[:, -1:] - out.value.numpy())
    return max(np.abs(each).max() for each in apart) < 1e-4


@pytest.mark.parametrize("most", [engine_module.MOST_KNOWN, 3])
def test_pictures_stay_known_while_acting_until_parameters_change(most, monkeypatch):
    monkeypatch.setattr(engine_module, "MOST_KNOWN", most)
    torch.manual_seed(0)
    policy = policy_on(spaces.Discrete(5), MlpAgent(), ("picture", "other"), masked=True)
    adam = CompiledAdam(policy.parameters(), 1e-2, 1e-5, fused=False)
    engine = CompiledPerceptron(policy, adam, 1)
    random = np.random.default_rng(0)
    batch = minibatch(policy, 60, random, different=6)
    rows = batch.observations
    half = {name: row[:30] for name, row in rows.items()}

    assert acts_like(policy, engine, half)
    assert acts_like(policy, engine, rows)
    assert acts_like(policy, engine, {name: row.flip(0) for name, row in rows.items()})
    assert engine.read.known == 12

    terms = replace(ALGO, normalize_advantage=False).terms(0.0)
    CompiledUpdate(policy, adam, engine).differentiate(batch, terms, Record(), None)
    adam.step(10.0)
    assert acts_like(policy, engine, rows)

    policy.load_state_dict({name: 2 * t for name, t in policy.state_dict().items()})
    CompiledActor(engine).set_training_mode(False)  # as collectors begin
    assert acts_like(policy, engine, rows)


def test_a_frozen_actor_stays_so_when_it_has_seen_too_many_pictures(monkeypatch):
    monkeypatch.setattr(engine_module, "MOST_KNOWN", 3)
    policy = policy_on(spaces.Discrete(5), MlpAgent(), ("picture",), masked=False)
    adam = CompiledAdam(policy.parameters(), 1e-2, 1e-5, fused=False)
    actor = frozen_actor(policy, adam)
    rows = minibatch(policy, 60, np.random.default_rng(0), different=20).observations

    before = [actor.predict_values(rows) for _ in range(2)]
    adam.flat.data.mul_(2)
    after = [actor.predict_values(rows) for _ in range(2)]

    assert all(torch.equal(values, before[0]) for values in (*before, *after))


def test_choices_are_drawn_by_the_random_numbers_of_the_exact_engine():
    for actions in (spaces.Discrete(7), spaces.MultiDiscrete([3, 5, 2])):
        policy = policy_on(actions, MlpAgent(), (), masked=True)
        adam = CompiledAdam(policy.parameters(), 1e-2, 1e-5, fused=False)
        actor = CompiledActor(CompiledPerceptron(policy, adam, 1))
        rows = minibatch(policy, 300, np.random.default_rng(1)).observations
        for deterministic in (False, True):
            both = []
            for player in (actor, policy):
                torch.manual_seed(4)
                with torch.no_grad():
                    both.append(player(rows, deterministic))
            ours, theirs = both
            assert torch.equal(ours[0], theirs[0])
            assert ours[0].dtype == theirs[0].dtype
            torch.testing.assert_close(ours[1], theirs[1], rtol=0, atol=1e-5)
            torch.testing.assert_close(ours[2], theirs[2], rtol=0, atol=1e-5)


def learner_of(run):
    torch.manual_seed(run.seed)
    np.random.seed(run.seed)  # noqa: NPY002 - the stream that minibatches are drawn from
    vec_env = run.env.make_vec(run.algo.num_envs, run.encoding(), run.memory, run.vec, "train")
    return run.algo.build(run, vec_env)


def learned(run, updates=4):
    learner = learner_of(run)
    learner.told = [learner.iterate(no_meter) for _ in range(updates)]
    return learner


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"clip_range_vf": 0.1, "normalize_advantage": False, "learning_rate": 3e-3},
        {"target_kl": 1e-4, "learning_rate": 3e-3},
        {"reward_normalisation": True, "batched_bootstrap": False},
    ],
    ids=lambda change: "_".join(change) or "defaults",
)
def test_four_updates_end_within_a_hundred_thousandth_of_the_exact_ones(change):
    run = replace(RUN, algo=replace(ALGO, **change))
    exact = replace(run, algo=replace(run.algo, engine=Engine.exact))

    ours, theirs = learned(run), learned(exact)

    worst = (ours.optimizer.flat - theirs.optimizer.flat).abs().max().item()
    assert 0 < worst < 1e-5
    norms = [[metrics["train/grad_norm"] for metrics in one.told] for one in (ours, theirs)]
    assert min(norms[1]) > 0
    assert norms[0] == pytest.approx(norms[1], rel=1e-3)


def test_whole_trajectories_are_learned_from_as_well():
    run = replace(RUN, vec=Episodes(), algo=replace(ALGO, n_steps=20))
    exact = replace(run, algo=replace(run.algo, engine=Engine.exact))

    worst = (learned(run).optimizer.flat - learned(exact).optimizer.flat).abs().max().item()

    assert worst < 1e-5


@pytest.mark.parametrize("threads", [1, 3])
def test_equal_runs_are_equal_to_the_bit_and_resume_so(threads):
    run = replace(RUN, hardware=Hardware("cpu", threads=threads))
    first, second = learned(run, 2), learned(run, 2)
    resumed = learner_of(run)
    resumed.load(copy.deepcopy(first.state()))
    for learner in (first, second, resumed):
        torch.manual_seed(1)
        np.random.seed(1)  # noqa: NPY002 - as above
        learner.iterate(no_meter)

    assert torch.equal(first.optimizer.flat, second.optimizer.flat)
    assert torch.equal(first.optimizer.flat, resumed.optimizer.flat)


def test_a_checkpoint_of_one_engine_continues_under_the_other():
    compiled = learned(RUN, 2)
    other = learner_of(replace(RUN, algo=replace(ALGO, engine=Engine.exact)))
    other.load(copy.deepcopy(compiled.state()))
    for learner in (compiled, other):
        torch.manual_seed(1)
        np.random.seed(1)  # noqa: NPY002 - as above
        learner.iterate(no_meter)

    worst = (compiled.optimizer.flat - other.optimizer.flat).abs().max().item()
    assert worst < 1e-5


def test_the_policy_reads_what_the_kernels_write():
    learner = learned(RUN, 1)
    before = copy.deepcopy(learner.policy.state_dict())

    learner.iterate(no_meter)

    after = learner.policy.state_dict()
    assert all(not torch.equal(before[name], after[name]) for name in before)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"agent": MlpAgent(activation=Activation.silu)}, "agent.activation=silu"),
        ({"memory": MemoryProfile(precision=Precision.bf16)}, "memory.precision=float32"),
        ({"memory": MemoryProfile(micro_batch=8)}, "memory.micro_batch=0"),
        ({"memory": MemoryProfile(gradient_checkpointing=True)}, "gradient_checkpointing=false"),
        ({"algo": replace(ALGO, fused_adam=True)}, "algo.fused_adam=false"),
        ({"algo": replace(ALGO, compile=True)}, "algo.compile=false"),
    ],
)
def test_what_has_no_kernel_is_refused_with_a_way_out(change, words):
    with pytest.raises(ConfigError, match=words):
        learner_of(replace(RUN, **change))


def test_a_device_and_masks_of_boxes_are_refused_with_a_way_out():
    def said(**policy):
        with pytest.raises(ConfigError) as error:
            refuse_policy(SimpleNamespace(**policy))
        return str(error.value)

    assert said(device=torch.device("meta"), mask_name=None) == (
        "algo.engine=compiled has no kernels for a GPU; use hardware.device=cpu, or choose "
        "algo.engine=exact."
    )
    box = spaces.Box(0, 1, (2,))
    masked = {"device": torch.device("cpu"), "mask_name": "allowed", "action_space": box}
    assert said(**masked) == (
        "algo.engine=compiled has no way to mask Box actions by 'allowed'; use Discrete actions, "
        "or choose algo.engine=exact."
    )
    refuse_policy(SimpleNamespace(**masked | {"mask_name": None}))


def test_the_fast_tanh_is_near_the_exact_one_and_keeps_nan():
    x = np.concatenate((np.linspace(-12, 12, 20_001), [0.0, -0.0, 1e-30, 1e30, -1e30, np.inf]))
    x = x.astype(np.float32)
    y = np.array([tanh.py_func(v) for v in x], np.float64)
    assert np.abs(y - np.tanh(x.astype(np.float64))).max() <= 5e-7
    assert np.abs(y).max() == 1.0
    assert np.isnan(tanh.py_func(np.float32("nan")))


def test_a_picture_under_convolutions_is_refused_by_its_name():
    spec = ObservationSpec((Stored("screen", (36, 36), np.uint8, 0, 255),))
    encoding = Encoding.choose(spec, Storage.dense)
    policy = FrugalPolicy(
        encoding.policy_space(),
        spaces.Discrete(2),
        lambda _: 1e-3,
        agent=MlpAgent(),
        encoding=encoding,
        tables=Tables(),
    )
    adam = CompiledAdam(policy.parameters(), 1e-3, 1e-5, fused=False)

    with pytest.raises(ConfigError, match="'screen' is a picture"):
        CompiledPerceptron(policy, adam, 1)
