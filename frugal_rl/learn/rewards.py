"""Rewards divided by the running deviation of the discounted return, as Stable-Baselines3 does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from frugal_rl.learn.ranks import Ranks


class RewardScale:
    """Scales rewards [N] by the deviation of discounted returns seen so far; state is saved.

    The variance of returns follows Chan et al.'s parallel update; rewards are clipped to
    +- `limit` after scaling. Rewards keep their sign and their zero.
    """

    def __init__(self, num_envs: int, gamma: float, limit: float = 10.0) -> None:
        self.gamma = gamma
        self.limit = limit
        self.returns = np.zeros(num_envs)
        self.mean, self.var, self.count = 0.0, 1.0, 1e-4
        self.agreed = self._sums()

    def __call__(self, reward: np.ndarray, done: np.ndarray) -> np.ndarray:
        """Reward [N] float32, done [N] bool -> scaled reward [N] float32, an array of its own."""
        self.returns = self.returns * self.gamma + reward
        self._update(float(self.returns.mean()), float(self.returns.var()), len(reward))
        self.returns[done] = 0.0
        scaled = np.clip(reward / np.sqrt(self.var + 1e-8), -self.limit, self.limit)
        return np.asarray(scaled, np.float32)

    def _update(self, mean: float, var: float, count: int) -> None:
        delta, total = mean - self.mean, self.count + count
        spread = self.var * self.count + var * count + delta**2 * self.count * count / total
        self.mean += delta * count / total
        self.var, self.count = spread / total, total

    def agree(self, ranks: Ranks) -> None:
        """Take in what the other ranks have seen since they last did so: all scale alike again."""
        if ranks.size == 1:
            return
        seen = ranks.summed(self._sums() - self.agreed)
        count, total, squares = self.agreed + seen
        self.mean, self.count = float(total / count), float(count)
        self.var = float(squares / count - self.mean**2)
        self.agreed = self._sums()

    def _sums(self) -> np.ndarray:
        """Count, sum and sum of squares of the returns seen."""
        squares = (self.var + self.mean**2) * self.count
        return np.array([self.count, self.mean * self.count, squares])

    def state(self) -> dict[str, Any]:
        """Moments and running returns."""
        moments = {"mean": self.mean, "var": self.var, "count": self.count}
        return {**moments, "returns": self.returns.copy()}

    def load(self, state: dict[str, Any]) -> None:
        """Continue exactly from `state()`."""
        self.mean, self.var, self.count = state["mean"], state["var"], state["count"]
        self.agreed = self._sums()
        if "returns" in state:  # a run on another number of processes begins new episodes
            self.returns = np.array(state["returns"], np.float64)
