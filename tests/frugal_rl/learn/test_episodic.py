"""`vec=episodes` learns from whole trajectories; every strategy learns the same."""

import io
from dataclasses import replace

import pytest
import torch
from rich.console import Console

from frugal_rl.errors import ConfigError
from frugal_rl.learn.episodic import EpisodeLearner
from frugal_rl.memory.choices import Trajectories
from frugal_rl.memory.plan import draw_up
from frugal_rl.run.checkpoints import load_checkpoint
from frugal_rl.run.compose import compose_run
from frugal_rl.run.trainer import no_meter, train

WORDS = [
    "env=toy", "vec=episodes", "tracking=disabled", "algo.num_envs=6", "algo.n_steps=20",
    "algo.batch_size=32", "algo.total_steps=700", "evaluation.episodes=4", "evaluation.num_envs=2",
]  # fmt: skip


class Silent:
    def metrics(self, step, values):
        pass

    def summary(self, values):
        self.values = values

    def file(self, path):
        pass


def trained(folder, *words):
    run = replace(compose_run([*WORDS, *words]), run_dir=str(folder))
    log = Silent()
    train(run, log, console=Console(file=io.StringIO()))
    return run, load_checkpoint(folder)["learner"]["policy"], log.values


def equal(a, b):
    return all(torch.equal(x, y) for x, y in zip(a.values(), b.values(), strict=True))


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    """What each strategy was trained to, once for all who ask."""
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("strategies")
    return {s: trained(folder / s.value, f"memory.trajectories={s.value}") for s in Trajectories}


def test_every_strategy_learns_the_same_parameters(learned):
    parameters = {strategy: found for strategy, (_, found, _) in learned.items()}
    for strategy, found in parameters.items():
        assert equal(found, parameters[Trajectories.list]), strategy


@pytest.mark.parametrize("strategy", list(Trajectories))
def test_the_plan_predicts_what_trajectories_hold(strategy, learned):
    run, _, summary = learned[strategy]
    planned = {
        p.name.removeprefix("rollout: "): p.ram_bytes
        for p in draw_up(run).parts
        if p.name.startswith("rollout: ")
    }
    held = {k.removeprefix("rollout/"): v for k, v in summary["parts"].items() if "rollout/" in k}
    if strategy in (Trajectories.list, Trajectories.views, Trajectories.hybrid):
        assert set(planned) == set(held)
        assert all(held[name] <= planned[name] for name in held)
    else:
        assert planned == held


def test_a_resumed_run_equals_one_that_was_not_interrupted(tmp_path):
    torch.set_num_threads(1)
    _, whole, _ = trained(tmp_path / "whole")
    trained(tmp_path / "half", "algo.total_steps=300")
    _, resumed, _ = trained(tmp_path / "rest", f"resume={tmp_path / 'half'}")
    assert equal(whole, resumed)


def test_scaled_rewards_are_refused_in_words(tmp_path):
    with pytest.raises(ConfigError, match=r"algo\.reward_normalisation"):
        trained(tmp_path, "algo.reward_normalisation=true")


def test_each_episode_begins_at_its_start_and_longer_ones_are_cut():
    run = compose_run([*WORDS, "algo.n_steps=5"])
    vec_env = run.env.make_vec(6, run.encoding(), run.memory, run.vec, "train")
    learner = run.algo.build(run, vec_env)
    assert isinstance(learner, EpisodeLearner)
    learner.iterate(no_meter)
    assert learner.steps == 5
    assert learner.num_steps <= 30
