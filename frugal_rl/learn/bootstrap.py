"""What a limit cut off: the value of an episode's last observation, added to its last reward.

A policy answers many rows in hardly more time than one, so they wait for each other until the
rollout ends, or until they take a mebibyte.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import torch

from frugal_rl.observation.decoder import to_tensors

if TYPE_CHECKING:
    from frugal_rl.learn.policy import Actor
    from frugal_rl.store.rollout import RolloutBuffer

ROOM_BYTES = 1 << 20


class Bootstraps:
    """Last observations in policy form, and where in the rollout their value is due."""

    def __init__(self, at_once: int) -> None:
        """So many are valued at once; each alone is SB3's way, and last bits may differ."""
        self.at_once = at_once
        self.rows: list[dict[str, np.ndarray]] = []
        self.steps: list[np.ndarray] = []
        self.envs: list[np.ndarray] = []
        self.nbytes = 0

    def add(self, t: int, envs: np.ndarray, rows: Mapping[str, np.ndarray]) -> None:
        """Remember the last rows [M, ...] of some environments [M], which step `t` ended."""
        self.rows.append({name: row.copy() for name, row in rows.items()})
        self.nbytes += sum(row.nbytes for row in rows.values())
        self.steps.append(np.full(len(envs), t))
        self.envs.append(np.array(envs))

    @property
    def full(self) -> bool:
        """Whether they should not wait longer."""
        return self.nbytes >= ROOM_BYTES

    def pay(self, rollout: RolloutBuffer, policy: Actor) -> None:
        """Add the discounted values of all that wait to their rewards."""
        if not self.rows:
            return
        rows = {name: np.concatenate([r[name] for r in self.rows]) for name in self.rows[0]}
        where = np.concatenate(self.steps), np.concatenate(self.envs)
        tensors, count = to_tensors(rows, policy.device), len(where[0])
        values = torch.cat(
            [
                policy.predict_values({n: row[i : i + self.at_once] for n, row in tensors.items()})
                for i in range(0, count, self.at_once)
            ]
        )
        rollout.rewards[where] += rollout.gamma * values.flatten().numpy(force=True)
        self.rows, self.steps, self.envs, self.nbytes = [], [], [], 0
