"""The smallest environment with goals, registered as `Reach-v0`."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

PLACE = spaces.Box(-np.inf, np.inf, (2,), np.float64)


class Reach(gym.Env[Any, Any]):
    """A point to be brought to a goal; episodes end beyond the edge, or by a limit of 9 steps."""

    def __init__(self) -> None:
        self.observation_space = spaces.Dict(
            {"observation": PLACE, "achieved_goal": PLACE, "desired_goal": PLACE}
        )
        self.action_space = spaces.Box(-1, 1, (2,), np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """A point in the middle, a goal anywhere."""
        super().reset(seed=seed)
        self.at, self.goal = np.zeros(2), self.np_random.uniform(-1, 1, 2)
        return self.seen(), {}

    def seen(self) -> dict[str, np.ndarray]:
        """The point and the goal."""
        at, goal = self.at.copy(), self.goal.copy()
        return {"observation": at - 1, "achieved_goal": at, "desired_goal": goal}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Move a little, by chance more than by the action."""
        self.at = self.at + self.np_random.normal(0, 0.3, 2) + 0.1 * np.asarray(action)
        over = bool(abs(self.at).max() > 1)
        return self.seen(), float(self.compute_reward(self.at, self.goal, {})), over, False, {}

    def compute_reward(self, achieved: Any, desired: Any, info: Any) -> Any:
        """0 near the goal, -1 elsewhere."""
        return -(np.linalg.norm(achieved - desired, axis=-1) > 0.3).astype(np.float32)


gym.register("Reach-v0", entry_point=f"{__name__}:Reach", max_episode_steps=9)
