"""How large estimated returns are, beside the largest that the rewards seen can add up to."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

LEAST_REWARD = 1.0
"""Smaller rewards count as this: networks begin with values of about one."""


def largest_return(rewards: np.ndarray, gamma: float, episode_steps: int) -> float:
    """What the largest reward in every step would be worth, discounted; 0 steps mean no limit."""
    most = max(LEAST_REWARD, float(rewards.max(initial=0)), -float(rewards.min(initial=0)))
    steps = episode_steps or math.inf
    return most * (min(steps, 1 / (1 - gamma)) if gamma < 1 else steps)


@torch.no_grad()
def mean_value(policy: Any, rows: dict[str, Tensor]) -> float:
    """The mean size of what a policy of SB3 expects of observations [B], acting at its best."""
    policy.set_training_mode(False)
    net = getattr(policy, "q_net", None) or getattr(policy, "quantile_net", None)
    if net is not None:
        by_action = net(rows)  # [B, A], or quantiles [B, Q, A]
        by_action = by_action.mean(dim=1) if by_action.ndim == 3 else by_action
        best = by_action.max(dim=1).values  # forbidden actions have the least value of all
    else:
        best = policy.critic(rows, policy._predict(rows, deterministic=True))
        best = best[0] if isinstance(best, tuple) else best  # of two critics the first
    return float(best.abs().mean())
