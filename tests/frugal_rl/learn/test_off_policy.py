"""Off-policy learners: exact resume, allowed actions, refusals, and bytes as planned."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest
import torch
from rich.console import Console
from stable_baselines3.common.utils import set_random_seed

from frugal_rl.errors import CheckpointError, ConfigError, MemoryBudgetError
from frugal_rl.learn.agents import MlpAgent
from frugal_rl.learn.off_policy_config import Auto
from frugal_rl.learn.off_policy_kinds import (
    CrossQConfig,
    DqnConfig,
    QrDqnConfig,
    SacConfig,
    Td3Config,
    TqcConfig,
)
from frugal_rl.memory import MemoryProfile
from frugal_rl.memory.plan import draw_up
from frugal_rl.run.checkpoints import load_checkpoint
from frugal_rl.run.config import Evaluation, Hardware, RunConfig
from frugal_rl.run.trainer import Trainer, no_meter, train
from frugal_rl.store.priorities import PrioritisedReplayBuffer
from frugal_rl.store.region import CHUNK_BYTES
from frugal_rl.store.replay import DictReplayBuffer
from frugal_rl.testing.toy import Toy
from frugal_rl.vec_env.batch import Batch
from frugal_rl.vec_env.registered import Registered

SMALL = {
    "num_envs": 4, "n_steps": 16, "batch_size": 8, "total_steps": 64 * 6, "buffer_size": 160,
    "learning_starts": 40, "train_freq": 4,
}  # fmt: skip
ON_TOY = DqnConfig(target_update_interval=50, **SMALL)


class Nothing:
    """A log that keeps nothing."""

    def metrics(self, step, values):
        assert all(np.isfinite(v) for v in values.values())

    def summary(self, values):
        self.end = values

    def file(self, path):
        pass


def toy_run(folder, **changes):
    run = RunConfig(
        Toy(), MlpAgent(actor=(16,)), ON_TOY, MemoryProfile(), Batch(),
        evaluation=Evaluation(episodes=8, num_envs=4), hardware=Hardware("cpu", 1), seed=3,
        run_dir=str(folder), resolved={"seed": 3},
    )  # fmt: skip
    return replace(run, **changes)


def quiet():
    return Console(file=io.StringIO(), width=200)


def after(iterations):
    """Advice to stop, once the loop has asked so often."""
    asked = iter(range(1, 1000))
    return lambda: "Memory is nearly full." if next(asked) == iterations else ""


PRIORITISED = replace(ON_TOY, prioritised=True, return_steps=3)


@pytest.mark.parametrize(
    "algo", [ON_TOY, QrDqnConfig(target_update_interval=50, **SMALL), PRIORITISED]
)
def test_a_run_that_was_stopped_and_resumed_equals_one_that_was_not(tmp_path, algo):
    whole, first, second = (tmp_path / name for name in ("whole", "first", "second"))
    train(toy_run(whole, algo=algo), Nothing(), console=quiet())
    stopped = Trainer(toy_run(first, algo=algo), Nothing(), console=quiet(), watch=after(4))
    with pytest.raises(MemoryBudgetError, match="resume="):
        stopped.train()
    train(toy_run(second, algo=algo, resume=str(first)), Nothing(), console=quiet())

    ours, theirs, before = (
        load_checkpoint(folder)["learner"]["policy"].values() for folder in (second, whole, first)
    )
    assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(ours, before, strict=True))


def test_a_replay_of_another_capacity_is_refused(tmp_path):
    train(toy_run(tmp_path / "a"), Nothing(), console=quiet())
    other = toy_run(
        tmp_path / "b", algo=replace(ON_TOY, buffer_size=200), resume=str(tmp_path / "a")
    )

    with pytest.raises(CheckpointError, match=r"algo.buffer_size=160, this run has 200"):
        train(other, Nothing(), console=quiet())


def test_checkpoints_share_a_replay_beside_them_and_say_where_it_is_missing(tmp_path):
    algo = replace(ON_TOY, buffer_size=4000)
    train(toy_run(tmp_path, algo=algo, checkpoint_every_steps=128), Nothing(), console=quiet())
    folder = tmp_path / "checkpoints"
    sizes = [f.stat().st_size for f in sorted((folder / "replay").iterdir())]

    held = load_checkpoint(tmp_path)["learner"]["collector"]["replay"]
    assert held["segment"] == 4  # three on the way, and the end
    assert sizes[-1] < sizes[0]
    (folder / "replay" / "00000001.segment").unlink()  # every checkpoint needs it
    with pytest.raises(CheckpointError, match=r"00000001.segment, which is not there: copy"):
        train(toy_run(tmp_path / "b", algo=algo, resume=str(tmp_path)), Nothing(), console=quiet())


def learner_of(run):
    vec_env = run.env.make_vec(run.algo.num_envs, run.encoding(), run.memory, run.vec, "train")
    return run.algo.build(run, vec_env)


def test_forbidden_actions_are_worth_least_for_acting_and_as_targets(tmp_path):
    learner = learner_of(toy_run(tmp_path))
    rows = {k: torch.as_tensor(v) for k, v in learner.collector.obs.items()}
    allowed = learner.policy.decoder(rows)["action_mask"].bool()
    assert not allowed.all()
    for network in (learner.model.q_net, learner.model.q_net_target):
        values = network(rows)
        assert (values[~allowed] < -1e6).all()
        assert (values[allowed].abs() < 1e3).all()


def test_no_forbidden_action_is_taken(tmp_path):
    learner = learner_of(toy_run(tmp_path))
    taken, real = [], learner.vec_env.step

    def step(actions):
        taken.append(
            learner.collector.obs["action_mask"].copy()[np.arange(4)],
        )
        masks = learner.policy.decoder(
            {k: torch.as_tensor(v) for k, v in learner.collector.obs.items()}
        )["action_mask"].numpy()
        assert masks[np.arange(4), actions].all()
        return real(actions)

    learner.vec_env.step = step
    for _ in range(5):
        learner.iterate(no_meter)

    assert len(taken) == 80


@pytest.mark.parametrize("kind", [SacConfig, Td3Config, TqcConfig, CrossQConfig])
def test_algorithms_for_vectors_of_numbers_learn_and_load(tmp_path, kind):
    run = toy_run(tmp_path, env=Registered(id="Pendulum-v1"), algo=kind(**SMALL))
    learner, other = learner_of(run), learner_of(run)
    before = {k: v.clone() for k, v in learner.policy.state_dict().items()}
    for _ in range(2):
        metrics = learner.iterate(no_meter)

    other.load(learner.state())

    assert metrics["train/critic_loss"] > 0
    after_it = learner.policy.state_dict()
    assert not all(torch.equal(before[k], v) for k, v in after_it.items())
    assert all(torch.equal(v, other.policy.state_dict()[k]) for k, v in after_it.items())
    assert learner.replay.rewards.any()
    assert np.array_equal(learner.replay.rewards, other.replay.rewards)


def test_actions_that_do_not_fit_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="algo=dqn or qr_dqn"):
        learner_of(toy_run(tmp_path, algo=SacConfig(**SMALL)))


def test_without_priorities_the_prioritised_learner_is_dqn(tmp_path, monkeypatch):
    """No exponent, no weights, and the same draws: the same parameters, bit for bit."""
    flat = replace(ON_TOY, prioritised=True, priority_exponent=0.0, importance_exponent=0.0)
    monkeypatch.setattr(PrioritisedReplayBuffer, "sample", drawn_uniformly)
    learned = []
    for algo in (ON_TOY, flat):
        set_random_seed(0)
        learner = learner_of(toy_run(tmp_path, algo=algo))
        for _ in range(4):
            learner.iterate(no_meter)
        learned.append(learner.policy.state_dict().values())

    assert all(torch.equal(a, b) for a, b in zip(*learned, strict=True))


def drawn_uniformly(self, batch_size, env=None):
    self.drawn = np.arange(batch_size)
    self.weights = np.ones((batch_size, 1), np.float32)
    return DictReplayBuffer.sample(self, batch_size, env)


def test_errors_go_back_as_priorities(tmp_path):
    learner = learner_of(toy_run(tmp_path, algo=PRIORITISED))
    for _ in range(4):
        learner.iterate(no_meter)

    assert len(np.unique(learner.replay.tree.leaves())) > 10
    assert 0.4 < learner.replay.beta < 1.0


def test_priorities_are_dqns_alone():
    with pytest.raises(ConfigError, match="algo=dqn"):
        QrDqnConfig(prioritised=True)


@pytest.mark.parametrize("kind", [ON_TOY, PRIORITISED])
def test_the_plan_counts_what_the_full_replay_holds(tmp_path, kind):
    run = toy_run(tmp_path, algo=replace(kind, buffer_size=4_000, learning_starts=10**6))
    planned = {p.name: p.ram_bytes for p in draw_up(run).parts if p.name.startswith("replay: ")}
    learner = learner_of(run)
    for _ in range(1_050):
        learner.step()
    held = {}
    for name, size in learner.replay.parts().items():
        entry = "scalars" if name == "replay/scalars" else name.split("/")[1]
        held[f"replay: {entry}"] = held.get(f"replay: {entry}", 0) + size

    assert held.keys() == planned.keys()
    for name, count in planned.items():
        assert 0.98 * count <= held[name] <= 1.02 * count + 2 * CHUNK_BYTES, name


def test_an_automatic_size_is_the_largest_that_fits(tmp_path):
    algo = replace(ON_TOY, buffer_size=Auto.auto, total_steps=10**9)
    run = toy_run(tmp_path, algo=algo, memory=MemoryProfile(budget_gib=2.0))

    size = algo.size(run)

    assert 10**6 < size < 10**8
    assert draw_up(replace(run, algo=replace(algo, buffer_size=size))).fits
    assert not draw_up(replace(run, algo=replace(algo, buffer_size=2 * size))).fits
    assert replace(algo, total_steps=1000).size(run) == 1000
