"""Every kind of leaf that a stranger's space may have, drawn as stable-baselines3 draws it."""

import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3.common.buffers import DictRolloutBuffer, RolloutBuffer

from frugal_rl.sb3 import CompactRolloutBuffer

ENVS = 4
LEAVES = {
    "scalar": spaces.Box(-1, 1, (), np.float32),
    "byte": spaces.Box(0, 255, (), np.uint8),
    "unbounded": spaces.Box(-np.inf, np.inf, (5,), np.float64),
    "half": spaces.Box(-9, 9, (3, 2), np.float16),
    "long": spaces.Box(-(2**62), 2**62, (4,), np.int64),
    "first": spaces.Box(0, 255, (4, 12, 12), np.uint8),
    "last": spaces.Box(0, 255, (12, 12, 4), np.uint8),
    "choice": spaces.Discrete(5),
    "choices": spaces.MultiDiscrete([3, 70000, 2]),
    "flags": spaces.MultiBinary(11),
    "board": spaces.MultiBinary((3, 4)),
}


class Stream:
    """Rows [N, *shape] in one array that is written over: noise, repeats, stacks, resets."""

    def __init__(self, space, rng):
        self.space, self.rng = space, rng
        shape, dtype = space.shape, np.dtype(space.dtype)
        self.rows = np.zeros((ENVS, *shape), dtype)
        self.regime = 0

    def noise(self):
        """Any bits of the type, inside of the space where it has choices."""
        space, rng = self.space, self.rng
        if not isinstance(space, spaces.Box):
            return np.array([space.sample() for _ in range(ENVS)], self.rows.dtype)
        raw = rng.integers(0, 256, self.rows.nbytes, np.uint8)
        return raw.view(self.rows.dtype).reshape(self.rows.shape)

    def step(self):
        rng, rows = self.rng, self.rows
        if rng.random() < 0.01:
            self.regime = rng.integers(0, 5)
        if self.regime == 0:
            rows[...] = self.noise()
        elif self.regime == 1 and rng.random() < 0.2:
            rows[rng.integers(ENVS)] = 1
        elif self.regime == 2 and rows.ndim > 2:
            axis = 1 if rows.shape[1] == 4 else rows.ndim - 1
            moved = np.moveaxis(rows, axis, 0)
            moved[:-1] = moved[1:].copy()
            moved[-1] = np.moveaxis(self.noise(), axis, 0)[0]
        elif self.regime == 3:
            flat, other = rows.reshape(ENVS, -1), self.noise().reshape(ENVS, -1)
            flat[:, rng.integers(flat.shape[1])] = other[:, 0]
            if isinstance(self.space, spaces.MultiDiscrete):
                rows[...] = self.noise()
        if rng.random() < 0.02:
            rows[rng.integers(ENVS)] = 0
        return rows


def same(left, right):
    if isinstance(left, torch.Tensor):
        return left.dtype == right.dtype and left.numpy().tobytes() == right.numpy().tobytes()
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[k], right[k]) for k in left)
    return all(same(a, b) for a, b in zip(left, right, strict=True))


def compare(space, steps, rollouts):
    """Fill both buffers and compare every minibatch."""
    rng, action = np.random.default_rng(3), spaces.Discrete(2)
    space.seed(1)
    single = not isinstance(space, spaces.Dict)
    streams = {k: Stream(s, rng) for k, s in ({"": space} if single else space.spaces).items()}
    kind = RolloutBuffer if single else DictRolloutBuffer
    pair = [k(steps, space, action, "cpu", n_envs=ENVS) for k in (kind, CompactRolloutBuffer)]
    for rollout in range(rollouts):
        for buffer in pair:
            buffer.reset()
        for _ in range(steps):
            shown = {k: stream.step() for k, stream in streams.items()}
            for buffer in pair:
                row = shown[""] if single else shown
                zeros = torch.zeros(ENVS)
                buffer.add(row, np.zeros((ENVS, 1)), np.zeros(ENVS), np.zeros(ENVS), zeros, zeros)
        drawn = []
        for buffer in pair:
            buffer.compute_returns_and_advantage(torch.zeros(ENVS), np.zeros(ENVS, np.bool_))
            np.random.seed(rollout)  # noqa: NPY002 - SB3 draws from it
            drawn.append(list(buffer.get(256)))
        assert same(*drawn)


@pytest.mark.parametrize("name", LEAVES)
def test_a_leaf_is_drawn_as_it_came(name):
    compare(LEAVES[name], steps=40, rollouts=2)


def test_all_of_them_in_one_dictionary():
    compare(spaces.Dict(LEAVES), steps=40, rollouts=2)


@pytest.mark.slow
@pytest.mark.parametrize("name", LEAVES)
def test_a_hundred_thousand_transitions_of_each_leaf(name):
    compare(LEAVES[name], steps=1250, rollouts=20)
