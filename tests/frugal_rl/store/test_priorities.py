"""Prioritised sampling beside a slow twin; returns of several steps for dictionaries."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st
from stable_baselines3.common.buffers import NStepReplayBuffer

from frugal_rl.store.priorities import PrioritisedDictReplayBuffer, SumTree
from frugal_rl.store.replay import DictReplayBuffer

SPACE = spaces.Dict({"at": spaces.Box(-9e9, 9e9, (2,)), "clock": spaces.Discrete(7)})


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=70), st.integers(0, 2**32 - 1))
def test_a_leaf_is_found_where_the_running_sum_passes_the_mass(values, seed):
    rng = np.random.default_rng(seed)
    tree, twin = SumTree(len(values)), np.zeros(len(values))
    for _ in range(3):
        leaves = rng.permutation(len(values))[: rng.integers(1, len(values) + 1)]
        tree.set(leaves, np.array(values, float)[leaves])
        twin[leaves] = np.array(values, float)[leaves]
    assert tree.total == twin.sum()
    if twin.sum():
        masses = rng.integers(0, twin.sum(), 20) + 0.5
        assert np.array_equal(
            tree.find(masses), np.searchsorted(np.cumsum(twin), masses, side="right")
        )


def fill(replay, steps, rng, num_envs=3):
    for step in range(steps):
        row = {"at": np.full((num_envs, 2), step, np.float32), "clock": np.full(num_envs, step % 7)}
        after = {"at": row["at"] + 1, "clock": np.full(num_envs, (step + 1) % 7)}
        ends = rng.random(num_envs) < 0.2
        limits = ends & (rng.random(num_envs) < 0.5)
        replay.store(row, after, np.zeros(num_envs), rng.random(num_envs), ends, limits)


def prioritised(alpha=0.7, beta=0.5):
    replay = PrioritisedDictReplayBuffer(
        150, SPACE, spaces.Discrete(2), "cpu", 3, alpha=alpha, beta=beta
    )
    fill(replay, 60, np.random.default_rng(0))
    return replay


def test_draws_follow_the_priorities_and_weights_make_up_for_them():
    replay, priorities = prioritised(), np.ones(150)
    rng, counts = np.random.default_rng(1), np.zeros(150)
    np.random.seed(0)  # noqa: NPY002 - SB3's stream
    for _ in range(40):
        replay.sample(30)
        errors = rng.exponential(1.0, 30)
        replay.learned(errors)
        for leaf, error in zip(replay.drawn, errors, strict=True):
            priorities[leaf] = (error + 1e-6) ** 0.7
    assert np.allclose(replay.tree.leaves(), priorities)
    for _ in range(2000):
        sample = replay.sample(30)
        counts += np.bincount(replay.drawn, minlength=150)
    expected = priorities / priorities.sum()
    assert abs(counts / counts.sum() - expected).max() < 0.002
    weights = (150 * expected[replay.drawn]) ** -0.5
    assert np.allclose(replay.weights[:, 0], weights / weights.max(), rtol=1e-5)
    places = replay.drawn // 3
    assert np.array_equal(sample.observations["at"][:, 0].numpy(), replay.steps_at(places))


def test_a_new_transition_is_as_likely_as_the_likeliest():
    replay = prioritised()
    replay.sample(30)
    replay.learned(np.full(30, 9.0))
    pos = replay.pos
    fill(replay, 1, np.random.default_rng(2))

    assert np.allclose(replay.tree.leaves()[pos * 3 : pos * 3 + 3], (9 + 1e-6) ** 0.7)


def test_priorities_are_saved_and_loaded():
    replay, other = prioritised(), prioritised()
    replay.sample(30)
    replay.learned(np.arange(30.0))
    other.load(replay.state())
    drawn = []
    for buffer in (replay, other):
        np.random.seed(5)  # noqa: NPY002 - SB3's stream
        drawn.append(buffer.sample(20))

    assert np.array_equal(replay.drawn, other.drawn)
    assert torch.equal(drawn[0].observations["at"], drawn[1].observations["at"])
    assert replay.highest == other.highest


@pytest.mark.parametrize("steps", [30, 120])
def test_returns_of_dictionaries_are_those_of_sb3s_single_arrays(steps):
    ours = DictReplayBuffer(150, SPACE, spaces.Discrete(2), "cpu", 3, n_steps=4, gamma=0.9)
    theirs = NStepReplayBuffer(150, SPACE["at"], spaces.Discrete(2), "cpu", 3, n_steps=4, gamma=0.9)
    theirs.store = lambda row, after, action, reward, ends, limits: theirs.add(
        row["at"], after["at"], action, reward, ends, [{"TimeLimit.truncated": x} for x in limits]
    )
    for replay in (ours, theirs):
        fill(replay, steps, np.random.default_rng(3))
    for seed in range(20):
        drawn = []
        for replay in (ours, theirs):
            np.random.seed(seed)  # noqa: NPY002 - SB3's stream
            drawn.append(replay.sample(40))
        mine, other = drawn
        assert torch.equal(mine.observations["at"], other.observations)
        assert torch.equal(mine.next_observations["at"], other.next_observations)
        for name in ("actions", "rewards", "dones", "discounts"):
            assert torch.equal(getattr(mine, name), getattr(other, name)), name
