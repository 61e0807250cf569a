"""Several minibatches by one call of a kernel: what one after the other gives."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from gymnasium import spaces

from frugal_rl.learn.agents import MlpAgent
from frugal_rl.learn.compiled import engine as engine_module
from frugal_rl.learn.compiled.engine import CompiledPerceptron
from frugal_rl.learn.compiled.kernels import normalise
from frugal_rl.learn.compiled.losses import ADVANTAGES
from frugal_rl.learn.compiled.meeting import Meeting
from frugal_rl.learn.compiled.update import CompiledAdam
from frugal_rl.learn.policy import FrugalPolicy
from frugal_rl.learn.ppo_config import PpoConfig
from frugal_rl.memory import Storage
from frugal_rl.memory.choices import RolloutLocation
from frugal_rl.observation.encoding import Encoding
from frugal_rl.observation.spec import ObservationSpec, Stored
from frugal_rl.observation.tables import Tables
from frugal_rl.run.compose import compose_run
from frugal_rl.run.trainer import no_meter
from frugal_rl.store import rollout as rollout_module
from frugal_rl.store.rollout import RolloutBuffer

TERMS = PpoConfig(ent_coef=0.01, clip_range_vf=0.1).terms(0.0)
COUNT, SIZE = 3, 300
SPEC = ObservationSpec(
    (
        Stored("state", (5,), np.float32, -3, 3),
        Stored("flags", (4,), np.uint8, 0, 1),
        Stored("allowed", (6,), np.bool_, 0, 1),
    ),
    action_mask="allowed",
)
ENCODING = Encoding.choose(SPEC, Storage.dense)
CARTPOLE = ["env=gymnasium", "env.id=CartPole-v1", "algo.num_envs=4", "algo.n_steps=100"]
CARTPOLE += ["algo.batch_size=72", "algo.n_epochs=2", "algo.engine=compiled"]


def engine_of(threads):
    torch.manual_seed(0)
    policy = FrugalPolicy(
        ENCODING.policy_space(),
        spaces.Discrete(6),
        lambda _: 1e-3,
        agent=MlpAgent(actor=(32, 17), critic=(24,)),
        encoding=ENCODING,
        tables=Tables(),
    )
    adam = CompiledAdam(policy.parameters(), 1e-2, 1e-5, fused=False)
    return adam, CompiledPerceptron(policy, adam, threads)


def minibatches():
    random, samples = np.random.default_rng(0), COUNT * SIZE
    allowed = random.random((samples, 6)) < 0.7
    allowed[:, 2] = True
    rows = {
        "state": random.standard_normal((samples, 5), dtype=np.float32),
        "flags": random.integers(0, 2, (samples, 4)).astype(np.uint8),
        "allowed": allowed,
    }
    shown = {name: torch.from_numpy(row) for name, row in rows.items()}
    old = random.standard_normal((COUNT, 4, SIZE), dtype=np.float32)
    return shown, np.full((COUNT, SIZE, 1), 2, np.float32), old


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("normalised", [False, True])
def test_steps_taken_together_are_those_taken_one_by_one(threads, normalised):
    terms = replace(TERMS, normalize_advantage=normalised)
    rows, actions, old = minibatches()
    adam, engine = engine_of(threads)
    rates = adam.rates(COUNT, 0.5)
    together = engine.learn(rows, actions, old.copy(), terms, adam.arrays(), rates)

    single, other = engine_of(threads)
    apart = []
    for k in range(COUNT):
        here = {name: row[k * SIZE : (k + 1) * SIZE] for name, row in rows.items()}
        given = old[k].copy()
        if normalised:
            normalise(given[ADVANTAGES])
        apart.append(other.differentiate(here, actions[k], given, terms))
        single.step(0.5)

    near(adam.flat, single.flat)
    for name, moment in adam.moments.items():
        near(moment, single.moments[name])
    assert adam.moments["step"] == COUNT
    assert adam.largest > 0
    near(adam.largest, single.largest)
    for ours, theirs in zip(together, zip(*apart, strict=True), strict=True):
        near(torch.from_numpy(ours), torch.from_numpy(np.stack(theirs)))


def near(one, other):
    """Two compilations of the same lines may round the last bit otherwise."""
    torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


def learned(words, together=True, updates=3):
    run = compose_run([*CARTPOLE, *words, "hardware.device=cpu"])
    torch.manual_seed(0)
    np.random.seed(0)  # noqa: NPY002 - the stream that minibatches are drawn from
    env = run.env.make_vec(run.algo.num_envs, run.encoding(), run.memory, run.vec, "train")
    learner = run.algo.build(run, env)
    assert learner.update.engine.steps
    learner.update.engine.steps = together
    told = [learner.iterate(no_meter) for _ in range(updates)]
    env.close()
    return learner, [{k: v for k, v in m.items() if k.startswith("train/")} for m in told]


@pytest.mark.parametrize("words", [[], ["hardware.threads=2"], ["algo.normalize_advantage=false"]])
def test_how_many_are_taken_together_changes_no_bit(words, monkeypatch):
    taken = []
    learn = CompiledPerceptron.learn
    monkeypatch.setattr(
        CompiledPerceptron,
        "learn",
        lambda self, *given: taken.append(len(given[1])) or learn(self, *given),
    )
    all_, told = learned(words)
    assert taken == [5, 1] * 2 * 3  # 400 samples by 72

    monkeypatch.setattr(rollout_module, "DRAWN_BYTES", 2 * 72 * 60)
    some, some_told = learned(words)
    assert taken[12:] == [2, 2, 1, 1] * 2 * 3
    assert torch.equal(all_.optimizer.flat, some.optimizer.flat)
    assert told == some_told

    one, one_told = learned(words, together=False)
    near(all_.optimizer.flat, one.optimizer.flat)
    for ours, theirs in zip(told, one_told, strict=True):
        assert ours == pytest.approx(theirs, rel=1e-3, abs=1e-5, nan_ok=True)


def test_where_something_is_asked_between_minibatches_each_is_alone(monkeypatch):
    monkeypatch.setattr(CompiledPerceptron, "learn", None)
    ours, _ = learned(["algo.target_kl=0.0001", "algo.learning_rate=0.003"])
    assert ours.optimizer.moments["step"] < 3 * 2 * 6


@pytest.mark.parametrize("location", [RolloutLocation.ram, RolloutLocation.device])
def test_copies_of_several_minibatches_take_no_more_room_than_numbers_drawn(location, monkeypatch):
    _, engine = engine_of(1)
    spaces_of = ENCODING.policy_space(), spaces.Discrete(6)
    buffer = RolloutBuffer(10, *spaces_of, "cpu", n_envs=4, encoding=ENCODING, location=location)
    copied = (4 + 4) + (6 + 6) + (0 if location is RolloutLocation.ram else 20 + 20)

    assert engine.read.gathered(buffer) == copied
    monkeypatch.setattr(rollout_module, "DRAWN_BYTES", 3 * 8 * (copied + 28))
    buffer.full = True
    counts = [len(d.at) for d in buffer.drawn_together(buffer.order(8), copied)]
    assert counts == [3, 2]


@pytest.mark.parametrize("absent", [0, 1])
def test_whoever_waits_is_let_go_when_another_does_not_come(absent, monkeypatch):
    """And changes no parameter, as a part of the gradient is missing."""
    rows, actions, old = minibatches()
    adam, engine = engine_of(2)
    rates, before = adam.rates(COUNT, 0.5), copy.deepcopy(adam.flat)
    learn = engine_module.learn

    def fails(thread, *given):
        if thread == absent:
            raise KeyboardInterrupt
        learn(thread, *given)

    monkeypatch.setattr(engine_module, "learn", fails)
    with pytest.raises(KeyboardInterrupt):
        engine.learn(rows, actions, old, TERMS, adam.arrays(), rates)
    assert torch.equal(adam.flat, before)

    monkeypatch.setattr(engine_module, "learn", learn)
    engine.learn(rows, actions, old, TERMS, adam.arrays(), rates)
    assert not torch.equal(adam.flat, before)


def test_an_interruption_before_all_have_work_leaves_nobody_waiting():
    rows, actions, old = minibatches()
    adam, engine = engine_of(3)
    rates = adam.rates(COUNT, 0.5)
    last = engine.each._posts[-1]
    give = last.give

    def interrupted(work):
        last.give = give
        raise KeyboardInterrupt

    last.give = interrupted
    with pytest.raises(KeyboardInterrupt):
        engine.learn(rows, actions, old.copy(), TERMS, adam.arrays(), rates)
    before = copy.deepcopy(adam.flat)
    engine.learn(rows, actions, old, TERMS, adam.arrays(), rates)
    assert not torch.equal(adam.flat, before)


def test_a_meeting_begins_anew():
    meeting = Meeting()
    meeting.give_up()
    meeting.begin()
    assert meeting._line[0] == 0
