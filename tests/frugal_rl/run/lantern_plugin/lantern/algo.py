"""An algorithm of its own: PPO whose rewards are those of the whole group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from frugal_rl.learn.ppo import PpoConfig, PpoLearner


@dataclass(frozen=True)
class GroupPpo(PpoConfig):
    """PPO in which a share of each reward is the mean of all lanterns'."""

    share: float = 0.5

    def build(self, run: Any, vec_env: Any) -> GroupLearner:
        """The learner."""
        return GroupLearner(self, run, vec_env)


class GroupLearner(PpoLearner):
    """Blends advantages before it learns; counts how often."""

    config: GroupPpo
    blended = 0

    def learn(self, rollout: Any) -> dict[str, float]:
        """All epochs, from blended advantages."""
        mean = rollout.advantages.mean(axis=1, keepdims=True)
        rollout.advantages += np.float32(self.config.share) * (mean - rollout.advantages)
        self.blended += 1
        return {**super().learn(rollout), "lantern/blended": float(self.blended)}

    def state(self) -> dict[str, Any]:
        """With the count."""
        return {**super().state(), "blended": self.blended}

    def load(self, state: dict[str, Any]) -> None:
        """Continue from `state()`."""
        super().load(state)
        self.blended = int(state["blended"])
