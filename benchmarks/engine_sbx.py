"""SBX's half of `benchmarks/engine.py`, run by the interpreter of an environment with jax.

    PYTHON benchmarks/engine_sbx.py NUM_ENVS HIDDEN BATCH STEPS EPOCHS

Imports nothing of ours but how it answers. The cores that it may use are those of its parent.
"""

from __future__ import annotations

import sys

import numpy as np
from engine_serve import Mark, serve
from gymnasium import spaces
from sbx import PPO
from stable_baselines3.common.callbacks import CallbackList
from stable_baselines3.common.vec_env import VecEnv

NUM_ENVS, HIDDEN, BATCH, STEPS, EPOCHS = map(int, sys.argv[1:])


class Noise(VecEnv):
    """64 normal floats, 4 actions, episodes of 128 steps."""

    def __init__(self) -> None:
        super().__init__(NUM_ENVS, spaces.Box(-10, 10, (64,)), spaces.Discrete(4))
        self.random = np.random.default_rng(0)
        self.age = 0

    def observation(self) -> np.ndarray:
        """Fresh numbers."""
        return self.random.standard_normal((NUM_ENVS, 64), dtype=np.float32)

    def reset(self) -> np.ndarray:
        """Fresh numbers."""
        return self.observation()

    def step_async(self, actions: np.ndarray) -> None:
        """Nothing depends on them."""

    def step_wait(self):
        """A reward that is noise, too."""
        self.age += 1
        done = np.full(NUM_ENVS, self.age % 128 == 0)
        obs = self.observation()
        infos = [{"terminal_observation": obs[i]} if done[i] else {} for i in range(NUM_ENVS)]
        return obs, self.random.random(NUM_ENVS, dtype=np.float32), done, infos

    def close(self) -> None:
        """Nothing is open."""

    def get_attr(self, name, indices=None):
        """No attributes."""
        return [None] * NUM_ENVS

    def set_attr(self, name, value, indices=None):
        """No attributes."""

    def env_method(self, name, *args, indices=None, **kwargs):
        """No methods."""
        return [None] * NUM_ENVS

    def env_is_wrapped(self, wrapper_class, indices=None):
        """Not wrapped."""
        return [False] * NUM_ENVS


def main() -> None:
    """Serve rollouts and updates."""
    model = PPO(
        "MlpPolicy",
        Noise(),
        n_steps=STEPS,
        batch_size=BATCH,
        n_epochs=EPOCHS,
        policy_kwargs={"net_arch": [HIDDEN, HIDDEN]},
    )
    model._setup_learn(10**9, None)
    callback = CallbackList([])
    callback.init_callback(model)

    def iteration(mark: Mark) -> None:
        model.collect_rollouts(model.env, callback, model.rollout_buffer, STEPS)
        mark()
        model.train()

    serve(iteration)


if __name__ == "__main__":
    main()
