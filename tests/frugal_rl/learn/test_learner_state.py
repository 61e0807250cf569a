"""A learner's state holds all that its next iteration depends on; what is left out is missed."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal

from frugal_rl.doing import now
from frugal_rl.learn.agents import MlpAgent
from frugal_rl.learn.ppo_config import PpoConfig
from frugal_rl.learn.ranks import Ranks
from frugal_rl.memory import MemoryProfile
from frugal_rl.run.config import Hardware, RunConfig
from frugal_rl.run.trainer import no_meter
from frugal_rl.testing.toy import Toy
from frugal_rl.vec_env.episodes import Episodes

ALGO = PpoConfig(
    num_envs=4, n_steps=5, batch_size=10, n_epochs=1, total_steps=200, reward_normalisation=True
)
RUN = RunConfig(
    Toy(episode_steps=7), MlpAgent(actor=(8,), critic=(8,)), ALGO, MemoryProfile(), None,
    hardware=Hardware("cpu", 1), seed=3,
)  # fmt: skip
WHOLE = replace(RUN, algo=replace(ALGO, reward_normalisation=False, n_steps=7), vec=Episodes())


def learner_of(run):
    vec_env = run.env.make_vec(run.algo.num_envs, run.encoding(), run.memory, run.vec, "train")
    return run.algo.build(run, vec_env)


def test_a_learner_that_joins_others_averages_its_gradients_with_theirs():
    learner, ranks = learner_of(RUN), Ranks(0, 1)

    learner.join(ranks)

    assert learner.ranks is ranks
    assert learner.update.ranks is ranks


def seeded(learner):
    """One more iteration on given random numbers."""
    torch.manual_seed(7)
    np.random.seed(7)  # noqa: NPY002 - the stream that minibatches are drawn from
    learner.iterate(no_meter)
    return learner


def resumed(run, learner, change=lambda state: None):
    """Another learner that continues from a state, perhaps changed."""
    state = copy.deepcopy(learner.state())
    change(state)
    other = learner_of(run)
    other.load(state)
    return other


@pytest.fixture
def halfway():
    """A learner between two rollouts, with episodes that began before and at their border."""
    learner = learner_of(RUN)
    for _ in range(20):
        seeded(learner)
        if learner.collector.starts.any() and not learner.collector.starts.all():
            return learner
    raise AssertionError("No rollout ended in the middle of some episodes.")


def equal(one, other):
    """Parameters and everything that the last rollout held."""
    rollouts = (one.rollout, other.rollout)
    return torch.equal(one.optimizer.flat, other.optimizer.flat) and all(
        np.array_equal(*(getattr(r, name) for r in rollouts))
        for name in ("episode_starts", "rewards", "values", "advantages", "actions")
    )


def test_a_resumed_learner_repeats_the_next_rollout_to_the_bit(halfway):
    other = resumed(RUN, halfway)
    assert_array_equal(other.collector.starts, halfway.collector.starts)
    assert equal(seeded(other), seeded(halfway))


def test_a_rollout_tells_how_far_it_is_step_by_step():
    learner, heard = learner_of(RUN), []
    vec_env = learner.collector.vec_env
    step = vec_env.step
    vec_env.step = lambda actions: heard.append(str(now())) or step(actions)
    learner.iterate(no_meter)

    assert heard == [f"collecting, {t} of 5 steps of each environment" for t in range(5)]


def test_all_episodes_start_with_the_first_rollout_and_anew_after_a_reset():
    learner = learner_of(replace(RUN, algo=replace(ALGO, n_steps=7 * 2)))
    for _ in range(2):
        learner.collector.reset(1)
        learner.iterate(no_meter)
        assert learner.rollout.episode_starts[0].all()


def forget_starts(state):
    state["collector"]["starts"] = np.ones(4, np.bool_)


def forget_moments(state):
    state["optimizer"]["moments"] = {}


def forget_steps(state):
    state["num_steps"] = 0


def forget_scale(state):
    state["collector"]["scale"]["var"] = 1.0


def forget_running_returns(state):
    state["collector"]["scale"]["returns"][:] = 0


def forget_windows(state):
    state["collector"]["history"]["windows"]["trail"][:] = 0


def forget_generators(state):
    state["collector"]["vec_env"]["game"]["rngs"] = [
        dict(np.random.default_rng(99).bit_generator.state) for _ in range(4)
    ]


@pytest.mark.parametrize(
    "forget", [forget_starts, forget_moments, forget_scale, forget_running_returns]
)
def test_what_is_forgotten_is_noticed_in_the_next_iteration(halfway, forget):
    other = resumed(RUN, halfway, forget)
    assert not equal(seeded(other), seeded(halfway))


@pytest.mark.parametrize("forget", [forget_windows, forget_generators])
def test_what_environments_forget_is_noticed_within_some(halfway, forget):
    other = resumed(RUN, halfway, forget)
    assert not all(equal(seeded(other), seeded(halfway)) for _ in range(4))


def test_a_schedule_goes_on_from_where_it_was():
    run = replace(RUN, algo=replace(ALGO, total_steps=40))
    learner = seeded(learner_of(run))
    assert resumed(run, learner).num_steps == learner.num_steps == 20
    assert resumed(run, learner, forget_steps).num_steps == 0


def test_whole_trajectories_begin_new_episodes_after_a_resume():
    learner = seeded(learner_of(WHOLE))
    other = resumed(WHOLE, learner)
    assert other.collector.collections == 1
    assert torch.equal(seeded(other).optimizer.flat, seeded(learner).optimizer.flat)


def test_trajectories_of_an_older_checkpoint_go_on():
    learner = seeded(learner_of(WHOLE))

    def as_it_was(state):
        state |= state.pop("collector")

    assert resumed(WHOLE, learner, as_it_was).collector.collections == 1


def test_a_forgotten_count_would_play_the_same_episodes_again():
    learner = seeded(learner_of(WHOLE))
    other = resumed(WHOLE, learner, lambda s: s["collector"].update(collections=0))
    assert not torch.equal(seeded(other).optimizer.flat, seeded(learner).optimizer.flat)
