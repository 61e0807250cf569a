"""`env=gymnasium` with stacked pictures learns what stock PPO learns from them, to the bit."""

from contextlib import nullcontext

import gymnasium as gym
import numpy as np
import pytest
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.utils import set_random_seed
from stable_baselines3.common.vec_env import VecFrameStack, VecTransposeImage

from frugal_rl.learn.agents import NatureCnnAgent
from frugal_rl.learn.ppo_config import PpoConfig
from frugal_rl.memory import MemoryProfile
from frugal_rl.run.config import Hardware, RunConfig
from frugal_rl.testing.stock import Contiguous, OurSeeds
from frugal_rl.vec_env.registered import Registered

ENVS, STEPS, UPDATES, SEED = 3, 24, 4, 4


class Catch(gym.Env):
    """A ball falls, a paddle moves: pictures [40, 40, 1]; episodes end, or are cut off."""

    observation_space = gym.spaces.Box(0, 255, (40, 40, 1), np.uint8)
    action_space = gym.spaces.Discrete(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.ball, self.paddle = [0, int(self.np_random.integers(36))], 18
        return self.drawn(), {}

    def step(self, action):
        self.paddle = int(np.clip(self.paddle + 3 * (int(action) - 1), 0, 36))
        self.ball[0] += int(self.np_random.integers(2, 6))
        landed = self.ball[0] >= 36
        reward = float(landed and abs(self.ball[1] - self.paddle) < 5)
        return self.drawn(), reward, landed, False, {}

    def drawn(self):
        picture = np.zeros((40, 40, 1), np.uint8)
        row, column = min(self.ball[0], 36), self.ball[1]
        picture[row : row + 4, column : column + 4] = 255
        picture[38:, self.paddle : self.paddle + 4] = 128
        return picture


@pytest.fixture
def catch():
    gym.register("Catch-v0", Catch, max_episode_steps=9)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield "Catch-v0"
    torch.set_num_threads(before)
    del gym.registry["Catch-v0"]


def learned(env_id):
    algo = PpoConfig(
        num_envs=ENVS,
        n_steps=STEPS,
        batch_size=24,
        n_epochs=2,
        total_steps=ENVS * STEPS * UPDATES,
        ent_coef=0.01,
        clip_range=0.1,
        batched_bootstrap=False,
    )
    env = Registered(id=env_id, frame_stack=4)
    run = RunConfig(
        env, NatureCnnAgent(), algo, MemoryProfile(), None, hardware=Hardware("cpu", 1), seed=SEED
    )
    set_random_seed(SEED)
    vec_env = env.make_vec(ENVS, run.encoding(), run.memory, None, "train")
    learner = algo.build(run, vec_env)
    for _ in range(UPDATES):
        learner.iterate(lambda phase: nullcontext())
    return learner.policy.state_dict()


def learned_by_sb3(env_id):
    env = VecFrameStack(OurSeeds([lambda: gym.make(env_id)] * ENVS), 4)
    model = PPO(
        "CnnPolicy",
        Contiguous(VecTransposeImage(env)),
        n_steps=STEPS,
        batch_size=24,
        n_epochs=2,
        ent_coef=0.01,
        clip_range=0.1,
        device="cpu",
        seed=SEED,
    )
    model.learn(ENVS * STEPS * UPDATES)
    kept = model.policy.state_dict()
    return {k: v for k, v in kept.items() if not k.startswith(("pi_features", "vf_features"))}


def test_stacked_pictures_lead_to_the_parameters_of_stock_ppo_to_the_bit(catch):
    ours, theirs = learned(catch), learned_by_sb3(catch)

    assert [v.shape for v in ours.values()] == [v.shape for v in theirs.values()]
    for a, b in zip(ours.values(), theirs.values(), strict=True):
        assert torch.equal(a, b)
