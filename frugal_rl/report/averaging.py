"""Curves of training episodes, averaged over rollouts as the terminal averages them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from frugal_rl.run.progress import WINDOW

EPISODES = "episode/"
"""How metrics begin that are means of the episodes which ended in one rollout."""


def is_averaged(metric: str, lengths: Iterable[int]) -> bool:
    """Whether curves of so many points each are averaged: all of them must be long enough."""
    return metric.startswith(EPISODES) and all(points >= 2 * WINDOW for points in lengths)


def averaged(steps: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each of P points with those before it in the window; the first that fills it begins.

    Args:
        steps: [P]; P is at least `WINDOW`.
        values: [P], one for each.
    """
    means = np.lib.stride_tricks.sliding_window_view(values, WINDOW).mean(-1)
    return steps[WINDOW - 1 :], means
