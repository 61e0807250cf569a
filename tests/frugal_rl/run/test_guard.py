"""A number that is none stops the run in words, and leaves every checkpoint finite."""

import io
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal
from rich.console import Console

from frugal_rl.errors import NumbersError
from frugal_rl.learn.agents import MlpAgent
from frugal_rl.learn.ppo_config import PpoConfig
from frugal_rl.memory import MemoryProfile
from frugal_rl.run.checkpoints import load_checkpoint
from frugal_rl.run.config import Evaluation, Hardware, RunConfig
from frugal_rl.run.divergence import PATIENCE, Divergence
from frugal_rl.run.finite import not_finite
from frugal_rl.run.keeping import newest_sound
from frugal_rl.run.trainer import Trainer, train
from frugal_rl.testing.faults import Poison
from frugal_rl.testing.toy import Toy, ToyEnv
from frugal_rl.vec_env.episodes import Episodes
from frugal_rl.vec_env.serial import Serial

ALGO = PpoConfig(num_envs=4, n_steps=8, batch_size=16, n_epochs=2, total_steps=32 * 14)


@dataclass(frozen=True)
class PoisonedToy(Toy):
    """A toy whose training environments give a value that is not finite."""

    where: str = "reward"
    at: int = 83
    value: float = float("nan")

    def make_vec(self, num_envs, encoding, memory, vec, split):
        made = super().make_vec(num_envs, encoding, memory, vec, split)
        if split == "train" and not isinstance(vec, Episodes):
            Poison(self.where, self.at, 2, self.value).into(made)
        return made


class Nowhere:
    def metrics(self, step, values):
        pass

    summary = file = lambda self, values: None


def toy_run(folder, env=None, **changes):
    run = RunConfig(
        env or PoisonedToy(), MlpAgent(actor=(16,), critic=(16,)), ALGO, MemoryProfile(), None,
        evaluation=Evaluation(episodes=0), hardware=Hardware("cpu", 1), seed=3,
        run_dir=str(folder), resolved={"seed": 3}, checkpoint_every_steps=32,
    )  # fmt: skip
    return replace(run, **changes)


def quiet():
    return Console(file=io.StringIO(), width=200)


def stopped(run):
    with pytest.raises(NumbersError) as error:
        train(run, Nowhere(), console=quiet())
    return str(error.value)


def its_checkpoints_are_finite_and_go_on(run, words, tmp_path):
    found = newest_sound(run.run_dir)
    assert not list(not_finite(found.content["learner"]))
    assert f"resume={found.file}" in words
    healthy = replace(run, env=Toy(), run_dir=str(tmp_path / "on"), resume=run.run_dir)
    healthy = replace(healthy, resolved=dict(run.resolved))
    with pytest.MonkeyPatch.context() as patch:  # the poison is no part of the problem
        patch.setattr("frugal_rl.run.resuming.check_same_run", lambda *_: None)
        summary = train(healthy, Nowhere(), console=quiet())
    assert summary["num_steps"] == run.algo.total_steps


@pytest.mark.parametrize(
    ("at", "value"), [(64, float("nan")), (83, float("inf")), (95, -float("inf"))]
)
def test_a_reward_that_is_none_stops_before_the_update_and_is_named(at, value, tmp_path):
    run = toy_run(tmp_path / "a", PoisonedToy(at=at, value=value))
    words = stopped(run)
    assert f"The reward of environment 2 is {value} in step {at}" in words
    assert "after action " in words
    kept = np.load(tmp_path / "a" / "bad_step.npz")
    assert_array_equal(np.isfinite(kept["reward"]), [True, True, False, True])
    assert kept["step"] == at
    assert {"action", "row/position", "row/map_id", "done"} <= set(kept.files)
    assert newest_sound(run.run_dir).content["num_steps"] == at // 8 * 32
    its_checkpoints_are_finite_and_go_on(run, words, tmp_path)


@pytest.mark.parametrize(("at", "debug"), [(80, False), (83, False), (83, True)])
def test_an_observation_that_is_none_stops_the_run_and_is_named(at, debug, tmp_path):
    run = toy_run(tmp_path / "a", PoisonedToy(where="speed", at=at), debug=debug)
    words = stopped(run)
    assert f"The observation 'speed' [0] of environment 2 is nan in step {at}" in words
    its_checkpoints_are_finite_and_go_on(run, words, tmp_path)


def test_debug_looks_at_every_observation_and_else_one_in_sixteen_is_looked_at(tmp_path):
    from frugal_rl.run.guard import NumberGuard

    for every, at, found in ((True, 3, True), (False, 3, False), (False, 16, True)):
        run = toy_run(tmp_path, PoisonedToy(where="speed", at=at))
        env = run.env.make_vec(4, run.encoding(), run.memory, None, "train")
        guard = NumberGuard(tmp_path, every)
        guard.watch(env)
        env.reset(0)
        try:
            for _ in range(12 if at == 3 else 20):
                env.step(np.zeros(4, np.int64))
            assert not found
        except NumbersError:
            assert found


@pytest.mark.parametrize("what", ["weights", "loss"])
def test_an_update_that_makes_weights_or_losses_that_are_none_is_never_kept(
    what, tmp_path, monkeypatch
):
    real, calls = PpoConfig.build, iter(range(100))

    def build(self, run, vec_env):
        learner = real(self, run, vec_env)
        learn = learner.learn

        def spoilt(rollout):
            metrics = learn(rollout)
            if next(calls) == 4:
                if what == "weights":
                    learner.policy.network.value.bias.data[0] = float("nan")
                metrics |= {"train/value_loss": float("nan")} if what == "loss" else {}
            return metrics

        learner.learn = spoilt
        return learner

    monkeypatch.setattr(PpoConfig, "build", build)
    run = toy_run(tmp_path / "a", Toy())
    words = stopped(run)
    assert {"weights": "'network.value.bias'", "loss": "train/value_loss is nan"}[what] in words
    assert newest_sound(run.run_dir).content["num_steps"] == 4 * 32
    its_checkpoints_are_finite_and_go_on(run, words, tmp_path)


class BadGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient * float("inf")


def test_the_gradients_norm_is_watched(tmp_path):
    trainer = Trainer(toy_run(tmp_path, Toy()), Nowhere(), console=quiet())
    trainer.train()
    optimizer = trainer.learner.optimizer
    optimizer.gradient.fill_(2.0)
    optimizer.step(0.5)
    assert optimizer.take_largest_norm() == pytest.approx(2 * optimizer.flat.numel() ** 0.5, 0.2)
    assert optimizer.take_largest_norm() == 0
    optimizer.gradient[0] = float("nan")
    optimizer.step(0.5)
    assert np.isnan(optimizer.take_largest_norm())


class BadToyEnv(ToyEnv):
    """Gives a reward that is none at its ninth step."""

    taken = 0

    def advance(self, action):
        reward, *rest = super().advance(action)
        self.taken += 1
        return (float("nan") if self.taken == 9 else reward, *rest)


@dataclass(frozen=True)
class SingleToy(Toy):
    def make(self, seed=None):
        return BadToyEnv(self.levels, self.episode_steps)

    def make_vec(self, num_envs, encoding, memory, vec, split):
        inner = vec or Serial()
        return inner.build(self, num_envs, encoding, memory)


@pytest.mark.parametrize("vec", [Serial(), Episodes(inner=Serial())], ids=["single", "episodes"])
def test_single_environments_and_whole_episodes_are_watched_too(vec, tmp_path):
    run = toy_run(tmp_path / "a", SingleToy(), vec=vec)
    assert "The reward of environment 0 is nan in step 8" in stopped(run)


class Raising(ToyEnv):
    def advance(self, action):
        raise ZeroDivisionError("a fault of the environment")


@dataclass(frozen=True)
class RaisingToy(SingleToy):
    def make(self, seed=None):
        return Raising(self.levels, self.episode_steps)


def test_an_error_of_an_environment_says_when_it_was_and_how_to_continue(tmp_path):
    with pytest.raises(ZeroDivisionError) as raised:
        train(toy_run(tmp_path, RaisingToy()), Nowhere(), console=quiet())
    notes = " ".join(raised.value.__notes__)
    assert "In step 0 of the environments" in notes
    assert "No checkpoint was saved yet" in notes


def test_learning_that_runs_away_is_warned_about_in_words(tmp_path):
    console = quiet()
    wild = replace(ALGO, learning_rate=1e6, total_steps=32 * 12, n_epochs=4)
    try:
        train(toy_run(tmp_path, Toy(), algo=wild), Nowhere(), console=console)
        said = console.file.getvalue()
    except NumbersError as error:
        said = str(error)
    assert "lower algo.learning_rate" in said


def test_each_bound_warns_once_and_only_after_several_updates_in_a_row():
    divergence = Divergence()
    high, low = {"train/approx_kl": 2.0}, {"train/approx_kl": 0.1}
    said = [divergence.note(m) for m in [high] * (PATIENCE - 1) + [low] + [high] * 2 * PATIENCE]
    assert [bool(words) for words in said].index(True) == 2 * PATIENCE - 1
    assert sum(map(bool, said)) == 1
    assert Divergence().note({"train/approx_kl": float("nan"), "other": 9.0}) == []


def test_a_run_of_healthy_numbers_is_not_touched(tmp_path):
    console = quiet()
    train(toy_run(tmp_path, Toy()), Nowhere(), console=console)
    assert "Warning" not in console.file.getvalue()
    assert load_checkpoint(tmp_path)["num_steps"] == 32 * 14
    assert not (tmp_path / "bad_step.npz").exists()
