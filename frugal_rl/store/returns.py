"""Returns of several steps: rewards that are summed up before a target's value is asked."""

from __future__ import annotations

import numpy as np


def steps_counted(ends: np.ndarray) -> np.ndarray:
    """How many of the steps of [B, k] count, up to the first that ended an episode: [B] int64."""
    found: np.ndarray = np.where(ends.any(axis=1), ends.argmax(axis=1) + 1, ends.shape[1])
    return found


def discounted(
    rewards: np.ndarray, counted: np.ndarray, gamma: float
) -> tuple[np.ndarray, np.ndarray]:
    """Sums of rewards [B, k] over the steps that count, and the discount of what follows them.

    Both are [B, 1] float32.
    """
    steps = np.arange(rewards.shape[1], dtype=np.float32)
    powers = np.power(np.float32(gamma), steps)
    returns = (rewards * powers * (steps < counted[:, None])).sum(axis=1, keepdims=True)
    return returns, np.power(np.float32(gamma), counted[:, None].astype(np.float32))
