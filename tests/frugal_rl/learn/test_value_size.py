"""Values are measured by what rewards can add up to."""

import math

import numpy as np
import pytest
import torch

from frugal_rl.learn.value_size import largest_return, mean_value
from frugal_rl.run.compose import compose_run
from frugal_rl.run.divergence import PATIENCE, Divergence
from frugal_rl.run.trainer import no_meter

SMALL = ("tracking=disabled", "hardware.device=cpu", "hardware.threads=1", "agent.actor=[8]",
         "algo.num_envs=2", "algo.n_steps=16", "algo.batch_size=8", "algo.learning_starts=8",
         "algo.buffer_size=64")  # fmt: skip
CONTINUOUS = ("env=gymnasium", "env.id=Pendulum-v1")
KINDS = {
    **{name: ("env=toy", f"algo={name}") for name in ("dqn", "qr_dqn")},
    **{name: (*CONTINUOUS, f"algo={name}") for name in ("sac", "td3", "tqc", "crossq")},
}


@pytest.mark.parametrize(
    ("rewards", "gamma", "steps", "most"),
    [
        ([0, -3, 2], 0.9, 0, 30),
        ([0, -3, 2], 0.9, 4, 12),
        ([0.1], 0.5, 0, 2),
        ([5], 1.0, 7, 35),
        ([5], 1.0, 0, math.inf),
        ([], 0.5, 0, 2),
    ],
)
def test_the_largest_reward_in_every_step_bounds_what_they_add_up_to(rewards, gamma, steps, most):
    assert largest_return(np.array(rewards, np.float32), gamma, steps) == pytest.approx(most)


def learner_of(name, *words):
    run = compose_run([*KINDS[name], *SMALL, *words], check=False)
    env = run.env.make_vec(run.algo.num_envs, run.encoding(), run.memory, run.vec, "train")
    return run.algo.build(run, env)


@pytest.mark.parametrize("name", KINDS)
def test_each_learner_tells_the_size_of_its_values(name):
    learner = learner_of(name)
    metrics = learner.iterate(no_meter)
    assert 0 <= metrics["train/mean_value"] < 100
    assert 0 < metrics["train/value_ratio"] < 1
    learner.vec_env.close()


def test_forbidden_actions_and_signs_count_for_nothing():
    class Net:
        q_net = staticmethod(lambda rows: torch.tensor([[-4.0, torch.finfo().min], [2.0, -9.0]]))
        set_training_mode = staticmethod(lambda mode: None)

    assert mean_value(Net(), {}) == 3


def test_a_rate_far_too_large_is_warned_about_and_ordinary_ones_are_not():
    said = {}
    for rate in (5e-4, 1e6):
        learner, divergence = learner_of("dqn", f"algo.learning_rate={rate}"), Divergence()
        found = [divergence.note(learner.iterate(no_meter)) for _ in range(PATIENCE + 1)]
        said[rate] = " ".join(word for words in found for word in words)
        learner.vec_env.close()
    assert said[5e-4] == ""
    assert "values are larger than all rewards could ever add up to" in said[1e6]
