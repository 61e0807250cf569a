"""Learning beside collecting: one late, each rollout once, and the same whoever is faster."""

import copy
from concurrent.futures import Future
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from frugal_rl.errors import ConfigError, NumbersError
from frugal_rl.learn.agents import MlpAgent
from frugal_rl.learn.compiled.acting import FrozenActor
from frugal_rl.learn.compiled.engine import CompiledPerceptron
from frugal_rl.learn.on_policy_config import Engine
from frugal_rl.learn.ppo import PpoLearner, refuse_moving
from frugal_rl.learn.ppo_config import PpoConfig
from frugal_rl.memory import MemoryProfile
from frugal_rl.memory.part import Kind, Phase
from frugal_rl.memory.plan import draw_up
from frugal_rl.observation.bounded import BoundedTable
from frugal_rl.run.compose import compose_run
from frugal_rl.run.config import Hardware, RunConfig
from frugal_rl.run.trainer import no_meter, train
from frugal_rl.testing.toy import Toy

ALGO = PpoConfig(
    num_envs=6,
    n_steps=16,
    batch_size=32,
    n_epochs=3,
    total_steps=6 * 16 * 8,
    engine=Engine.compiled,
    overlap=True,
)
AGENT = MlpAgent(actor=(32, 16), critic=(24,))
RUN = RunConfig(
    Toy(), AGENT, ALGO, MemoryProfile(), None, hardware=Hardware("cpu", threads=1), seed=5
)


LEARNING = (Kind.minibatch, Kind.activations, Kind.learner, Kind.rollout)


def learner_of(run):
    torch.manual_seed(run.seed)
    np.random.seed(run.seed)  # noqa: NPY002 - the stream that minibatches are drawn from
    vec_env = run.env.make_vec(run.algo.num_envs, run.encoding(), run.memory, run.vec, "train")
    return run.algo.build(run, vec_env)


class AtOnce:
    """Learns before anything is collected."""

    def submit(self, call, *args):
        done = Future()
        done.set_result(call(*args))
        return done


class AtTheEnd:
    """Learns when everything is collected."""

    def submit(self, call, *args):
        done = Future()
        done.result = lambda: call(*args)
        return done


def trained(thread=None, iterations=5):
    learner = learner_of(RUN)
    if thread is not None:
        learner.overlap.thread = thread
    told = [learner.iterate(no_meter) for _ in range(iterations)]
    return learner, told


def test_it_does_not_matter_who_is_faster():
    runs = [trained(thread) for thread in (None, None, AtOnce(), AtTheEnd())]

    first, told = runs[0]
    for learner, words in runs[1:]:
        assert torch.equal(learner.optimizer.flat, first.optimizer.flat)
        assert words == told
        assert learner.num_steps == first.num_steps == 5 * 6 * 16


def test_each_rollout_is_learned_from_once_and_one_late():
    learner, learned, collected = learner_of(RUN), [], []
    learn, collect = learner.learn, learner.collector.collect

    def learning(drawn):
        learned.append(drawn.returns.copy())
        return learn(drawn)

    def collecting(policy):
        before = learner.optimizer.flat.detach().clone() if not collected else None
        rollout = collect(policy)
        collected.append(rollout.returns.copy())
        if before is not None:  # nothing to learn from yet
            assert torch.equal(before, learner.optimizer.flat)
        return rollout

    learner.learn, learner.collector.collect = learning, collecting
    first = learner.iterate(no_meter)
    assert "train/loss" not in first
    assert (len(collected), len(learned)) == (1, 0)
    assert "train/loss" in learner.iterate(no_meter)
    learner.iterate(no_meter)
    assert (len(collected), len(learned)) == (3, 2)
    assert learner.overlap.settle()
    assert learner.overlap.settle() == {}
    learner.iterate(no_meter)
    learner.overlap.settle()

    assert len(learned) == len(collected) == 4
    for ours, theirs in zip(learned, collected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_resumed_run_goes_on_to_the_bit():
    learner, _ = trained(iterations=3)
    resumed = learner_of(RUN)
    resumed.load(copy.deepcopy(learner.state()))
    for one in (learner, resumed):
        torch.manual_seed(1)
        np.random.seed(1)  # noqa: NPY002 - as above
        for _ in range(3):
            one.iterate(no_meter)
        one.overlap.settle()

    assert torch.equal(learner.optimizer.flat, resumed.optimizer.flat)


def test_a_collection_that_fails_waits_for_the_update_and_is_told():
    learner, _ = trained(iterations=2)
    before = learner.optimizer.moments["step"].item()

    def fails(policy):
        raise RuntimeError("the environments are gone")

    learner.collector.collect = fails
    with pytest.raises(RuntimeError, match="are gone"):
        learner.iterate(no_meter)
    assert learner.optimizer.moments["step"].item() == before + 9  # minibatches of one update


def test_an_update_that_fails_is_told():
    learner, _ = trained(iterations=1)

    def fails(rollout):
        raise RuntimeError("no update")

    learner.learn = fails
    with pytest.raises(RuntimeError, match="no update"):
        learner.iterate(no_meter)


def test_who_acts_meanwhile_knows_nothing_of_the_update():
    run = compose_run("env=gymnasium env.id=Pendulum-v1 algo.num_envs=2 algo.n_steps=8".split())
    run = replace(run, algo=replace(ALGO, num_envs=2, n_steps=8, batch_size=8))
    learner = learner_of(run)  # normals, whose deviations are parameters as well
    rows = {name: torch.from_numpy(np.asarray(r)) for name, r in learner.collector.obs.items()}
    frozen = learner.overlap.actor
    assert isinstance(frozen, FrozenActor)
    frozen.freeze()
    plain = CompiledPerceptron(learner.policy, learner.optimizer, 1)

    def acted():
        torch.manual_seed(3)
        return [t.clone() for t in frozen(rows)]

    before, known = acted(), plain.outputs_of(rows)[0]
    learner.optimizer.flat.data.mul_(1.5).add_(0.25)
    after = acted()
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))
    plain.stale = True
    assert not np.array_equal(plain.outputs_of(rows)[0], known)
    frozen.freeze()
    assert not any(torch.equal(a, b) for a, b in zip(before, acted(), strict=True))


def test_the_plan_holds_two_rollouts_and_what_both_do_at_once():
    words = "env=toy algo.num_envs=6 algo.n_steps=16 algo.batch_size=32 algo.engine=compiled"
    runs = [compose_run([*words.split(), f"algo.overlap={say}"]) for say in ("false", "true")]
    one, two = map(draw_up, runs)

    assert two.bytes_of(Kind.rollout) == 2 * one.bytes_of(Kind.rollout)
    collecting = [p for p in two.parts if Phase.rollout in p.phases and p.kind in LEARNING]
    assert all(Phase.update in p.phases for p in collecting)
    assert (one.label, two.label) == ("lossless", "capacity")

    learner = learner_of(runs[1])
    held = [size for name, size in learner.parts().items() if "rollout/" in name]
    assert sum(held) == two.bytes_of(Kind.rollout)
    learner.iterate(no_meter)
    config, drawn = runs[1].algo, []
    for _ in range(config.n_epochs):
        drawn += learner.overlap.waiting.order(config.batch_size)
    planned = next(p.ram_bytes for p in two.parts if p.name == "drawn ahead")
    assert sum(indices.nbytes for indices in drawn) == planned


def test_tables_that_drop_rows_are_refused():
    bounded = SimpleNamespace(tables={"graph": BoundedTable("graph", (), 10)})
    with pytest.raises(ConfigError, match="the table 'graph'"):
        refuse_moving(bounded)


def test_weights_that_the_last_update_spoiled_are_not_saved(tmp_path, monkeypatch):
    words = "env=toy algo.engine=compiled algo.overlap=true algo.num_envs=4 algo.n_steps=8"
    own = "algo.batch_size=32 algo.total_steps=32 tracking=disabled"
    run = replace(compose_run([*words.split(), *own.split()]), run_dir=str(tmp_path))

    def spoils(learner, rollout):
        learner.optimizer.flat.data.fill_(np.nan)
        return {"train/loss": 0.0}

    monkeypatch.setattr(PpoLearner, "learn", spoils)
    with pytest.raises(NumbersError, match="not finite; they are not kept"):
        train(run, Unheard())  # one rollout, learned from before it is saved
    assert not list(tmp_path.rglob("last.pt"))


class Unheard:
    """A log that keeps nothing."""

    def metrics(self, step, values):
        pass

    summary = file = lambda self, what: None
