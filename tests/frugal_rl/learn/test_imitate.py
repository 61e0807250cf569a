"""A policy of stable-baselines3 is taught what a replay holds, in the environment's units."""

import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3.common.policies import ActorCriticPolicy

from frugal_rl.learn.imitate import imitate, in_units
from frugal_rl.store.replay import ReplayBuffer

SEEN = spaces.Box(-1, 1, (2,))
CHOICES, BOX = spaces.Discrete(2), spaces.Box(np.float32([0, 10]), np.float32([4, 30]))


def taught(action_space, act, updates=150):
    """A policy, the losses, and observations that it was not shown."""
    torch.manual_seed(0)
    np.random.seed(0)  # noqa: NPY002 - the stream that minibatches are drawn from
    replay, rng = ReplayBuffer(400, SEEN, action_space, "cpu"), np.random.default_rng(0)
    for row in rng.uniform(-1, 1, (400, 1, 2)).astype(np.float32):
        replay.add(row, row, act(row), np.zeros(1), np.zeros(1, bool), [{}])
    policy = ActorCriticPolicy(SEEN, action_space, lambda _: 1e-2, net_arch=[16])
    losses = imitate(policy, replay, updates, batch_size=64)
    return policy, losses, rng.uniform(-1, 1, (200, 2)).astype(np.float32)


def test_choices_are_learned():
    policy, losses, unseen = taught(CHOICES, lambda row: (row[:, 0] > row[:, 1]).astype(int))
    chosen, _ = policy.predict(unseen, deterministic=True)

    assert (chosen == (unseen[:, 0] > unseen[:, 1])).mean() > 0.95
    assert len(losses) == 150
    assert losses[0] == pytest.approx(np.log(2), abs=0.1)  # of two choices, both as likely
    assert np.mean(losses[-10:]) < 0.2
    assert not policy.training


def test_boxes_are_learned_in_the_units_of_the_environment():
    policy, losses, unseen = taught(BOX, lambda row: row, updates=300)  # -1 and 1 are its ends
    moved, _ = policy.predict(unseen, deterministic=True)

    wanted = np.float32([0, 10]) + (unseen + 1) / 2 * np.float32([4, 20])
    assert np.abs((moved - wanted) / np.float32([4, 20])).mean() < 0.1
    assert losses[-1] < losses[0]


def test_a_step_follows_a_gradient_of_length_one_at_most(monkeypatch):
    norms = []
    clip = torch.nn.utils.clip_grad_norm_
    monkeypatch.setattr(
        torch.nn.utils,
        "clip_grad_norm_",
        lambda parameters, most: norms.append(most) or clip(parameters, most),
    )
    taught(CHOICES, lambda row: np.zeros(1, int), updates=3)

    assert norms == [1.0] * 3


def test_actions_of_a_replay_are_in_the_units_of_the_environment():
    ends = torch.tensor([[-1.0, -1.0], [1.0, 0.0]])

    assert in_units(ends, BOX).tolist() == [[0, 10], [4, 20]]
    free = spaces.Box(-np.inf, np.inf, (2,))
    assert in_units(ends, free) is ends
    assert in_units(torch.tensor([[1], [0]]), CHOICES).tolist() == [1, 0]
