"""The trivial vector environment that trainers are compared on, and runs over it.

64 normal floats, 4 actions, episodes of 128 steps; the reward asks for the largest of the first
four numbers, so random play gets 0.25 per step and a trainer that works gets more.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import CallbackList

from frugal_rl.learn.agents import MlpAgent
from frugal_rl.learn.ppo_config import PpoConfig
from frugal_rl.memory import MemoryProfile
from frugal_rl.observation.encoding import Encoding
from frugal_rl.observation.spec import ObservationSpec, Stored
from frugal_rl.observation.tables import Tables
from frugal_rl.run.config import Hardware, RunConfig
from frugal_rl.sb3.adapter import Sb3VecEnv
from frugal_rl.vec_env.interface import EndedEpisodes, Rows, Step, VectorEnv

if TYPE_CHECKING:
    from frugal_rl.learn.ppo import PpoLearner

EPISODE = 128
SPEC = ObservationSpec((Stored("x", (64,), np.float32, -10, 10),))


class TrivialBatch(VectorEnv):
    """N environments in one array; a step costs about 0.1 milliseconds for 64 of them."""

    def __init__(self, num_envs: int, encoding: Encoding) -> None:
        self.num_envs = num_envs
        self.encoding = encoding
        self.tables = Tables()
        self.action_space = spaces.Discrete(4)

    def reset(self, seed: int) -> Rows:
        """Start N episodes of different age, so that they do not end together."""
        self.rng = np.random.default_rng(seed)
        self.age = np.arange(self.num_envs) % EPISODE
        self.returns = np.zeros(self.num_envs)
        return self._draw()

    def _draw(self) -> Rows:
        self.x = self.rng.standard_normal((self.num_envs, 64), dtype=np.float32)
        return {"x": self.x}

    def step(self, actions: np.ndarray) -> Step:
        """One action each."""
        reward = (actions == self.x[:, :4].argmax(axis=1)).astype(np.float32)
        self.returns += reward
        self.age += 1
        done = self.age >= EPISODE
        index = np.flatnonzero(done)
        ended = None
        if len(index):
            stats = {"return": self.returns[index], "length": np.full(len(index), EPISODE * 1.0)}
            ended = EndedEpisodes(index, stats | {"success": np.zeros(len(index))})
            self.returns[index] = 0
            self.age[index] = 0
        none = np.zeros(0, np.int64)
        return Step(self._draw(), reward, done, np.zeros_like(done), none, {}, ended)

    def parts(self) -> dict[str, int]:
        """Bytes of the current observation."""
        return {"simulators": self.x.nbytes}


@dataclass(frozen=True)
class Trivial:
    """The workload as a configuration."""

    name: str = "trivial"
    fields: Mapping[str, str] = field(default_factory=dict)
    episode_steps: int = EPISODE

    def spec(self) -> ObservationSpec:
        """64 floats."""
        return SPEC

    def make_vec(
        self, num_envs: int, encoding: Encoding, memory: MemoryProfile, vec: Any, split: str
    ) -> VectorEnv:
        """The batch."""
        return TrivialBatch(num_envs, encoding)


def ours(num_envs: int, hidden: int, batch_size: int, threads: int, fused: bool) -> PpoLearner:
    """Our learner on the workload: 128 steps per iteration, 4 epochs."""
    algo = PpoConfig(
        num_envs=num_envs,
        n_steps=128,
        batch_size=batch_size,
        n_epochs=4,
        total_steps=10**9,
        fused_adam=fused,
    )
    agent = MlpAgent(actor=(hidden, hidden), critic=(hidden, hidden))
    hardware = Hardware(device="cpu", threads=threads)
    run = RunConfig(Trivial(), agent, algo, MemoryProfile(), None, hardware=hardware)
    encoding = run.encoding()
    return algo.build(run, TrivialBatch(num_envs, encoding))


def iterate(learner: PpoLearner) -> dict[str, float]:
    """One iteration without a meter."""
    return learner.iterate(lambda phase: nullcontext())


def sb3(num_envs: int, hidden: int, batch_size: int, threads: int) -> PPO:
    """Stable-Baselines3's PPO with its own policy and rollout on the same environments."""
    torch.set_num_threads(threads)
    env = Sb3VecEnv(TrivialBatch(num_envs, Encoding.choose(SPEC, MemoryProfile().storage)))
    model = PPO(
        "MultiInputPolicy",
        env,
        n_steps=128,
        batch_size=batch_size,
        n_epochs=4,
        seed=0,
        policy_kwargs={"net_arch": [hidden, hidden]},
        device="cpu",
    )
    model._setup_learn(10**9, None)
    return model


def iterate_sb3(model: PPO) -> None:
    """One rollout and one update, as `learn` does them."""
    callback = CallbackList([])
    callback.init_callback(model)
    model.collect_rollouts(model.env, callback, model.rollout_buffer, model.n_steps)
    model.train()
