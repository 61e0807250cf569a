"""Reward of N worlds per step: presets, potential-based shaping, every component apart."""

from nclone.rewards.config import (
    PRESETS,
    Discount,
    Reach,
    Reward,
    Shaping,
    TerminalPotential,
    TimePenalty,
)
from nclone.rewards.kernels import COMPONENTS, POTENTIALS, Events, Motion, Paths
from nclone.rewards.tracker import RewardTracker

__all__ = [
    "COMPONENTS",
    "POTENTIALS",
    "PRESETS",
    "Discount",
    "Events",
    "Motion",
    "Paths",
    "Reach",
    "Reward",
    "RewardTracker",
    "Shaping",
    "TerminalPotential",
    "TimePenalty",
]
