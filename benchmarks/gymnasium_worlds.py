"""Environments that nobody here wrote, each as stock Stable-Baselines3 scripts make it."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from stable_baselines3.common.env_util import make_atari_env, make_vec_env
from stable_baselines3.common.vec_env import VecEnv, VecFrameStack, VecTransposeImage

Make = Callable[[int], VecEnv]


def atari(game: str) -> Make:
    """Four stacked 84 x 84 frames, as in SB3's documentation."""

    def make(num_envs: int) -> VecEnv:
        gym.register_envs(importlib.import_module("ale_py"))
        frames = make_atari_env(f"{game}NoFrameskip-v4", n_envs=num_envs, seed=0)
        return VecTransposeImage(VecFrameStack(frames, 4))

    return make


def registered(module: str, name: str, wrap: Any = None, **keywords: Any) -> Make:
    """A registered id, with a wrapper around it."""

    def make(num_envs: int) -> VecEnv:
        if module:
            gym.register_envs(importlib.import_module(module))
        inner = wrap or (lambda env: env)
        envs = make_vec_env(lambda: inner(gym.make(name, **keywords)), n_envs=num_envs, seed=0)
        shape = envs.observation_space.shape
        picture = shape is not None and len(shape) == 3 and shape[2] == 3
        return VecTransposeImage(envs) if picture else envs

    return make


def grid(wrapper: str) -> Any:
    """A wrapper of MiniGrid's, its picture alone."""

    def wrap(env: gym.Env[Any, Any]) -> gym.Env[Any, Any]:
        known = importlib.import_module("minigrid.wrappers")
        inner = getattr(known, wrapper)(env) if wrapper else env
        return known.ImgObsWrapper(inner)

    return wrap


class CrafterEnv(gym.Env[Any, Any]):
    """Crafter speaks the older protocol; this is its picture in today's."""

    observation_space = gym.spaces.Box(0, 255, (64, 64, 3), np.uint8)
    action_space = gym.spaces.Discrete(17)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """A new world."""
        self.env = importlib.import_module("crafter").Env(seed=seed)
        return self.env.reset(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """One step in it."""
        picture, reward, done, _ = self.env.step(int(action))
        return picture, float(reward), done, False, {}


def crafter(num_envs: int) -> VecEnv:
    """Pictures of 64 x 64 x 3."""
    importlib.import_module("crafter")
    return VecTransposeImage(make_vec_env(CrafterEnv, n_envs=num_envs, seed=0))


class Noise(gym.Env[Any, Any]):
    """Nothing to find: pictures of noise."""

    observation_space = gym.spaces.Box(0, 255, (4, 84, 84), np.uint8)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Noise."""
        super().reset(seed=seed)
        return self.np_random.integers(0, 256, (4, 84, 84), np.uint8), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """More of it."""
        return self.np_random.integers(0, 256, (4, 84, 84), np.uint8), 0.0, False, False, {}


WORLDS: Mapping[str, Make] = {
    "Pong, 4 x 84 x 84": atari("Pong"),
    "Breakout, 4 x 84 x 84": atari("Breakout"),
    "SpaceInvaders, 4 x 84 x 84": atari("SpaceInvaders"),
    "Riverraid, 4 x 84 x 84": atari("Riverraid"),
    "Pong, 210 x 160 x 3": registered("ale_py", "ALE/Pong-v5"),
    "Pong, RAM": registered("ale_py", "ALE/Pong-v5", obs_type="ram"),
    "MiniGrid DoorKey, view": registered("minigrid", "MiniGrid-DoorKey-5x5-v0", grid("")),
    "MiniGrid DoorKey, pixels": registered(
        "minigrid", "MiniGrid-DoorKey-5x5-v0", grid("RGBImgPartialObsWrapper")
    ),
    "Crafter": crafter,
    "NetHack": registered("nle", "NetHackScore-v0"),
    "highway": registered("highway_env", "highway-fast-v0"),
    "parking": registered("highway_env", "parking-v0"),
    "CarRacing": registered("", "CarRacing-v3"),
    "LunarLander": registered("", "LunarLander-v3"),
    "HalfCheetah": registered("", "HalfCheetah-v5"),
    "CartPole": registered("", "CartPole-v1"),
    "noise, 4 x 84 x 84": lambda num_envs: make_vec_env(Noise, n_envs=num_envs, seed=0),
}
