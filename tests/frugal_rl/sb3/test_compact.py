"""Stock SB3 with the store that finds savings: the same parameters, fewer bytes, for any space."""

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3 import A2C, PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecFrameStack

from frugal_rl.sb3.compact import CompactRolloutBuffer, compact


class Screen(gym.Env):
    """A dot that walks on a map of its episode; images in one array that is written over."""

    def __init__(self, dictionary=False):
        image = spaces.Box(0, 255, (36, 36, 1), np.uint8)
        self.parts = {
            "image": image,
            "map": spaces.Box(-1, 1, (40,), np.float32),
            "mask": spaces.MultiBinary(5),
            "room": spaces.Discrete(7),
            "tools": spaces.MultiDiscrete([3, 4]),
        }
        self.dictionary = dictionary
        self.observation_space = spaces.Dict(self.parts) if dictionary else image
        self.action_space = spaces.Discrete(4)
        self.image = np.zeros((36, 36, 1), np.uint8)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.map = self.np_random.random(40).astype(np.float32)
        self.at, self.steps = self.np_random.integers(36, size=2), 0
        return self.see(), {}

    def see(self):
        self.image[:] = 0
        self.image[tuple(self.at)] = 255
        if not self.dictionary:
            return self.image
        rng = self.np_random
        return {
            "image": self.image,
            "map": self.map,
            "mask": rng.integers(0, 2, 5).astype(np.int8),
            "room": int(rng.integers(7)),
            "tools": rng.integers(0, 3, 2),
        }

    def step(self, action):
        move = ((0, 1), (1, 0), (0, 35), (35, 0))[int(action)]
        self.at, self.steps = (self.at + move) % 36, self.steps + 1
        return self.see(), float(self.at[0] == 0), self.steps % 23 == 0, self.steps > 40, {}


def trained(algorithm, dictionary, **keywords):
    env = make_vec_env(lambda: Screen(dictionary), n_envs=3, seed=5)
    env = env if dictionary else VecFrameStack(env, 4)
    torch.manual_seed(0)
    sizes = {"n_steps": 24} | ({"batch_size": 24, "n_epochs": 2} if algorithm is PPO else {})
    policy = "MultiInputPolicy" if dictionary else "CnnPolicy"
    model = algorithm(policy, env, seed=3, device="cpu", **sizes, **keywords)
    return model.learn(24 * 3 * 4)


@pytest.mark.parametrize("algorithm", [PPO, A2C])
@pytest.mark.parametrize("dictionary", [False, True])
def test_parameters_after_four_updates_are_those_of_stock_sb3(algorithm, dictionary):
    plain = trained(algorithm, dictionary)
    ours = trained(algorithm, dictionary, **compact(plain.env))

    assert isinstance(ours.rollout_buffer, CompactRolloutBuffer)
    for name, value in plain.policy.state_dict().items():
        assert torch.equal(value, ours.policy.state_dict()[name]), name
    if not dictionary:
        assert ours.rollout_buffer.nbytes < plain.rollout_buffer.observations.nbytes / 5
