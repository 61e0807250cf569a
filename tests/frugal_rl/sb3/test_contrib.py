"""sb3-contrib's algorithms with our rollouts: the same parameters after four updates."""

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3.common.env_util import make_vec_env

from frugal_rl.errors import ConfigError, EncodingError
from frugal_rl.sb3 import compact, shrink

contrib = pytest.importorskip("sb3_contrib", reason="pip install 'frugal-rl[contrib]'")

STEPS, ENVS = 48, 3


class Hall(gym.Env):
    """A walk with a map of the episode, in which one door of each side is closed."""

    def __init__(self, dictionary, actions):
        picture = spaces.Box(0, 255, (40,), np.uint8)
        numbers = spaces.Box(-1, 1, (3,), np.float32)
        self.dictionary, self.action_space = dictionary, actions
        both = spaces.Dict({"map": picture, "room": spaces.Discrete(4), "where": numbers})
        self.observation_space = both if dictionary else picture

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.map, self.steps = self.np_random.integers(0, 256, 40, np.uint8), 0
        return self.see(), {}

    def see(self):
        self.closed = int(self.np_random.integers(2))
        if not self.dictionary:
            return self.map
        where = self.np_random.random(3).astype(np.float32)
        return {"map": self.map, "room": self.closed, "where": where}

    def step(self, action):
        self.steps += 1
        good = float(np.sum(action) > self.closed)
        return self.see(), good, self.steps % 13 == 0, self.steps > 20, {}

    def action_masks(self):
        size = self.action_space
        mask = np.ones(int(np.sum(getattr(size, "nvec", getattr(size, "n", 0)))), bool)
        mask[self.closed] = False
        return mask


def trained(algorithm, dictionary, actions, small, **keywords):
    env = make_vec_env(lambda: Hall(dictionary, actions), n_envs=ENVS, seed=5)
    recurrent = algorithm == "RecurrentPPO"
    kind = getattr(contrib, algorithm)
    if algorithm != "TRPO":
        keywords |= {"n_epochs": 2}
    if small and not recurrent:
        keywords |= compact(env, algorithm=kind, compare_with_dense=True)
    policy = "MultiInput" if dictionary else "Mlp"
    policy += "LstmPolicy" if recurrent else "Policy"
    torch.manual_seed(0)
    given = {"n_steps": STEPS, "batch_size": 64, "seed": 3, "device": "cpu"}
    model = kind(policy, env, **given, **keywords)
    if small and recurrent:
        shrink(model, compare_with_dense=True)
    return model.learn(STEPS * ENVS * 4)


FOUR, TWO = spaces.Discrete(4), spaces.MultiDiscrete([2, 3])


@pytest.mark.parametrize(
    ("algorithm", "dictionary", "actions"),
    [
        ("MaskablePPO", False, FOUR),
        ("MaskablePPO", True, TWO),
        ("RecurrentPPO", False, FOUR),
        ("RecurrentPPO", True, spaces.Box(-1, 1, (2,))),
        ("TRPO", False, FOUR),
        ("TRPO", True, FOUR),
    ],
)
def test_parameters_after_four_updates_are_those_of_sb3_contrib(algorithm, dictionary, actions):
    lstm = {"policy_kwargs": {"lstm_hidden_size": 8}} if algorithm == "RecurrentPPO" else {}
    plain, ours = (trained(algorithm, dictionary, actions, s, **lstm) for s in (False, True))

    assert type(ours.rollout_buffer).__module__.startswith("frugal_rl")
    for name, value in plain.policy.state_dict().items():
        assert torch.equal(value, ours.policy.state_dict()[name]), name
    entry = "map" if dictionary else "obs"
    column = ours.rollout_buffer.columns[entry]
    assert column.nbytes < column.spec.nbytes(STEPS, ENVS)
    ours.rollout_buffer._twin[entry].values[3, 1] ^= 1
    with pytest.raises(EncodingError, match=f"'{entry}' was not given back"):
        ours.rollout_buffer.samples(np.arange(STEPS * ENVS))


def test_recurrent_ppo_is_told_how_it_is_done():
    env = make_vec_env(lambda: Hall(False, FOUR), n_envs=2)
    with pytest.raises(ConfigError, match=r"takes no rollout_buffer_class.*shrink\(model"):
        compact(env, algorithm=contrib.RecurrentPPO)


def test_an_algorithm_that_stores_nothing_is_told_so():
    env = make_vec_env(lambda: Hall(False, FOUR), n_envs=1)
    with pytest.raises(ConfigError, match=r"ARS keeps neither.*without compact"):
        compact(env, algorithm=contrib.ARS)
