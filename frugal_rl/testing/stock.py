"""Stock Stable-Baselines3 on the episodes that `vec=serial` plays, so that both can be compared."""

from __future__ import annotations

from typing import Any

import numpy as np
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnvWrapper

from frugal_rl.vec_env.interface import env_seeds


class OurSeeds(DummyVecEnv):
    """Environment i begins with the seed that our batches give it."""

    def seed(self, seed: int | None = None) -> list[int | None]:
        """From the run's seed."""
        assert seed is not None
        self._seeds = list(env_seeds(self.num_envs, seed))
        return self._seeds


class Contiguous(VecEnvWrapper):
    """Pictures whose channels lie first in memory too: others are convolved in another order."""

    def reset(self) -> Any:
        """[N, C, H, W]."""
        return np.ascontiguousarray(self.venv.reset())

    def step_wait(self) -> Any:
        """What the environments gave, the pictures laid out anew."""
        shown, *rest = self.venv.step_wait()
        return np.ascontiguousarray(shown), *rest
