"""Stock Stable-Baselines3 on Atari, as its documentation sets it up: frames, stack, network."""

import ale_py
import gymnasium
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_atari_env
from stable_baselines3.common.vec_env import VecFrameStack

gymnasium.register_envs(ale_py)
torch.set_num_threads(1)
env = make_atari_env("PongNoFrameskip-v4", n_envs=4, seed=0)
env = VecFrameStack(env, n_stack=4)
model = PPO(
    "CnnPolicy",
    env,
    n_steps=512,
    batch_size=256,
    n_epochs=1,
    seed=0,
    device="cpu",
)
model.learn(2 * 512 * 4)
