"""Stable-Baselines3's algorithms as published entries mean them: names, defaults, layers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

UNLIMITED = 1e9
"""A norm that no gradient reaches: clipping to it changes no bit."""

REPLAY = {
    "learning_rate": 3e-4,
    "buffer_size": 1_000_000,
    "learning_starts": 100,
    "batch_size": 256,
    "tau": 0.005,
    "gamma": 0.99,
    "train_freq": 1,
    "gradient_steps": 1,
}
Q_LEARNING = REPLAY | {
    "learning_rate": 1e-4,
    "batch_size": 32,
    "tau": 1.0,
    "train_freq": 4,
    "target_update_interval": 10_000,
    "exploration_fraction": 0.1,
    "exploration_initial_eps": 1.0,
    "exploration_final_eps": 0.05,
    "max_grad_norm": 10.0,
}
QUANTILES = Q_LEARNING | {
    "learning_rate": 5e-5,
    "exploration_fraction": 0.005,
    "exploration_final_eps": 0.01,
    "max_grad_norm": UNLIMITED,
}
CLIPPED = {
    "learning_rate": 3e-4,
    "n_steps": 2048,
    "batch_size": 64,
    "n_epochs": 10,
    "gamma": 0.99,
    "gae_lambda": 0.95,
    "clip_range": 0.2,
    "clip_range_vf": None,
    "normalize_advantage": True,
    "ent_coef": 0.0,
    "vf_coef": 0.5,
    "max_grad_norm": 0.5,
    "target_kl": None,
}


@dataclass(frozen=True)
class Algorithm:
    """What an entry that says nothing else means.

    units are the hidden layers; constants are values that may be stated, and change nothing.
    """

    choice: str
    defaults: Mapping[str, Any]
    units: tuple[int, ...] = (256, 256)
    activation: str = "relu"
    learns_from_replay: bool = True
    constants: Mapping[str, Any] = field(default_factory=dict)


AUTO = {"ent_coef": "auto", "target_entropy": "auto"}
ALGORITHMS = {
    "ppo": Algorithm("ppo", CLIPPED, (64, 64), "tanh", False),
    "dqn": Algorithm("dqn", Q_LEARNING, (64, 64)),
    "qrdqn": Algorithm("qr_dqn", QUANTILES, (64, 64)),
    "sac": Algorithm("sac", REPLAY, constants=AUTO | {"target_update_interval": 1}),
    "td3": Algorithm("td3", REPLAY | {"learning_rate": 1e-3}, (400, 300)),
    "tqc": Algorithm("tqc", REPLAY, constants=AUTO | {"target_update_interval": 1}),
}
"""By the name that files have; PPO of the unmasked, feed-forward kind."""
