"""Environments that nobody here wrote, each as stock Stable-Baselines3 scripts make it."""

from __future__ import annotations

import importlib
import itertools
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


class SeededNetHack(gym.Wrapper[Any, Any, Any, Any]):
    """Games that follow from the seed: by itself NLE's `reset` leaves them to true randomness."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """A new game."""
        game: Any = self.unwrapped
        if seed is not None:
            self.drawn = np.random.default_rng(seed)
        core, shown = self.drawn.integers(1 << 62, size=2).tolist()
        game.seed(core, shown, reseed=False)
        return self.env.reset(seed=seed, options=options)


class SeededFromOne(gym.Wrapper[Any, Any, Any, Any]):
    """Tetris takes a seed of 0 for none, and is then left to true randomness."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """A new game."""
        return self.env.reset(seed=None if seed is None else seed + 1, options=options)


class CrafterEnv(gym.Env[Any, Any]):
    """Crafter speaks the older protocol; this is its picture in today's."""

    observation_space = gym.spaces.Box(0, 255, (64, 64, 3), np.uint8)
    action_space = gym.spaces.Discrete(17)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """A new world."""
        super().reset(seed=seed)
        world = int(self.np_random.integers(1 << 31))
        self.env = importlib.import_module("crafter").Env(seed=world)
        return self.env.reset(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """One step in it."""
        picture, reward, done, _ = self.env.step(int(action))
        return picture, float(reward), done, False, {}


def crafter(num_envs: int) -> VecEnv:
    """Pictures of 64 x 64 x 3; creatures are told apart by when they came, so that runs agree.

    The simulator draws creatures from sets, whose order is that of their addresses in memory:
    `Crafter, as it comes` plays other worlds in each process.
    """
    creature = importlib.import_module("crafter.objects").Object
    begin, count = creature.__init__, itertools.count()

    def begin_numbered(self: Any, *given: Any, **keywords: Any) -> None:
        self.number = next(count)
        begin(self, *given, **keywords)

    creature.__init__, creature.__hash__ = begin_numbered, lambda self: self.number
    return crafter_as_it_comes(num_envs)


def crafter_as_it_comes(num_envs: int) -> VecEnv:
    """The simulator as it is."""
    importlib.import_module("crafter")
    return VecTransposeImage(make_vec_env(CrafterEnv, n_envs=num_envs, seed=0))


class DeepMindControl(gym.Env[Any, Any]):
    """A task of dm_control from pixels, each action in thirds; EGL draws without a display."""

    observation_space = gym.spaces.Box(0, 255, (84, 84, 3), np.uint8)

    def __init__(self, domain: str, task: str) -> None:
        suite = importlib.import_module("dm_control.suite")
        self.env = suite.load(domain, task, task_kwargs={"random": 0})
        limits = self.env.action_spec()
        self.low, self.high = limits.minimum, limits.maximum
        self.action_space = gym.spaces.Discrete(3)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """A new episode."""
        super().reset(seed=seed)
        self.env.task._random = np.random.RandomState(int(self.np_random.integers(1 << 31)))
        self.env.reset()
        return self.see(), {}

    def see(self) -> Any:
        """The picture of the first camera."""
        return self.env.physics.render(84, 84, camera_id=0)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Two simulated steps."""
        force = self.low + (self.high - self.low) * int(action) / 2
        for _ in range(2):
            last = self.env.step(force)
        return self.see(), float(last.reward or 0), False, bool(last.last()), {}


class Craftax(gym.Env[Any, Any]):
    """Craftax-Classic's symbolic observation, outside of JAX."""

    action_space = gym.spaces.Discrete(17)

    def __init__(self) -> None:
        self.jax = importlib.import_module("jax")
        made = importlib.import_module("craftax.craftax_env").make_craftax_env_from_name
        self.env = made("Craftax-Classic-Symbolic-v1", auto_reset=False)
        self.given = self.env.default_params
        shape = self.env.observation_space(self.given).shape
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, shape, np.float32)
        self._reset, self._step = self.jax.jit(self.env.reset), self.jax.jit(self.env.step)

    def key(self) -> Any:
        """Random bits for JAX."""
        return self.jax.random.PRNGKey(int(self.np_random.integers(1 << 31)))

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """A new world."""
        super().reset(seed=seed)
        seen, self.state = self._reset(self.key(), self.given)
        return np.asarray(seen, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """One step in it."""
        seen, self.state, reward, done, _ = self._step(
            self.key(), self.state, int(action), self.given
        )
        return np.asarray(seen, np.float32), float(reward), bool(done), False, {}


def many(kind: Callable[..., Any], *given: Any) -> Make:
    """N environments of a class; pictures with their channels first."""

    def make(num_envs: int) -> VecEnv:
        envs = make_vec_env(lambda: kind(*given), n_envs=num_envs, seed=0)
        shape = envs.observation_space.shape or ()
        return VecTransposeImage(envs) if len(shape) == 3 else envs

    return make


def pursuit(num_envs: int) -> VecEnv:
    """PettingZoo's pursuers, an environment each, through SuperSuit."""
    supersuit = importlib.import_module("supersuit")
    game = importlib.import_module("pettingzoo.sisl.pursuit_v5").parallel_env(n_pursuers=num_envs)
    envs = supersuit.pettingzoo_env_to_vec_env_v1(supersuit.black_death_v3(game))
    made: VecEnv = supersuit.concat_vec_envs_v1(envs, 1, num_cpus=0, base_class="stable_baselines3")

    def seeded(seed: int | None = None) -> list[int | None]:
        made.venv.reset(seed=seed)  # it has no `seed` of its own; later resets draw on from there
        return [seed] * made.num_envs

    made.seed = seeded
    return made


def miniworld(num_envs: int) -> VecEnv:
    """A hallway in three dimensions, drawn without a display."""
    importlib.import_module("pyglet").options["headless"] = True
    return registered("miniworld", "MiniWorld-Hallway-v0")(num_envs)


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
    "Seaquest, 4 x 84 x 84": atari("Seaquest"),
    "Pong, 210 x 160 x 3": registered("ale_py", "ALE/Pong-v5"),
    "Pong, RAM": registered("ale_py", "ALE/Pong-v5", obs_type="ram"),
    "MiniGrid DoorKey, view": registered("minigrid", "MiniGrid-DoorKey-5x5-v0", grid("")),
    "MiniGrid DoorKey, pixels": registered(
        "minigrid", "MiniGrid-DoorKey-5x5-v0", grid("RGBImgPartialObsWrapper")
    ),
    "Crafter": crafter,
    "Crafter, as it comes": crafter_as_it_comes,
    "NetHack": registered("nle", "NetHackScore-v0", SeededNetHack),
    "NetHack, as it comes": registered("nle", "NetHackScore-v0"),
    "MiniHack": registered(
        "minihack", "MiniHack-Room-5x5-v0", observation_keys=("glyphs", "chars")
    ),
    "highway": registered("highway_env", "highway-fast-v0"),
    "parking": registered("highway_env", "parking-v0"),
    "CarRacing": registered("", "CarRacing-v3"),
    "LunarLander": registered("", "LunarLander-v3"),
    "HalfCheetah": registered("", "HalfCheetah-v5"),
    "CartPole": registered("", "CartPole-v1"),
    "VizDoom": registered("vizdoom.gymnasium_wrapper", "VizdoomBasic-v1"),
    "MiniWorld": miniworld,
    "dm_control, pixels": many(DeepMindControl, "cartpole", "swingup"),
    "Craftax Classic": many(Craftax),
    "PettingZoo pursuit": pursuit,
    "Tetris": registered("tetris_gymnasium.envs", "tetris_gymnasium/Tetris", SeededFromOne),
    "Tetris, as it comes": registered("tetris_gymnasium.envs", "tetris_gymnasium/Tetris"),
    "trading": registered("gym_anytrading", "stocks-v0"),
    "Flappy Bird": registered("flappy_bird_gymnasium", "FlappyBird-v0"),
    "Mortar Mayhem": registered("memory_gym", "MortarMayhem-Grid-v0"),
    "noise, 4 x 84 x 84": lambda num_envs: make_vec_env(Noise, n_envs=num_envs, seed=0),
}
