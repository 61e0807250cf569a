"""What a rollout will show the learner: observations of random play, for the probe's minibatches.

Networks that work on what is distinct in a minibatch (levels, graphs) hold more, the more episodes
it is drawn from. So the probe plays as a run does, and its smaller minibatches come from as many
fewer environments.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from frugal_rl.memory.base import TINY
from frugal_rl.observation.decoder import to_tensors
from frugal_rl.observation.history import History

if TYPE_CHECKING:
    from frugal_rl.run.config import RunConfig
    from frugal_rl.vec_env.interface import VectorEnv

SECONDS = 5.0
"""Random play ends after this; what was played by then stands for the rest."""
MOMENTS = 32
"""Rows kept of each environment."""
ROWS_BYTES = 256 << 20
"""The most that is kept of all rows."""
LONGEST = 512
"""Steps after which an environment has shown enough."""


@dataclass(frozen=True)
class Played:
    """Rows of `envs` environments, `moments` of each, one environment after the other."""

    rows: dict[str, np.ndarray]
    """Policy forms, [envs * moments, ...]."""
    envs: int
    moments: int
    share: float
    """The part of the run's environments that this is, in (0, 1]."""

    def minibatch(self, count: int, largest: int, device: torch.device) -> dict[str, Tensor]:
        """`count` rows from as few environments as their share of a minibatch of `largest`."""
        total = self.envs * self.moments
        wanted = math.ceil(total * min(1.0, count / (largest * self.share)))
        wanted = min(total, max(wanted, TINY["num_envs"] * self.moments))
        return self._at(np.arange(count) * wanted // count, device)

    def acting(self, count: int, device: torch.device) -> dict[str, Tensor]:
        """One row of each environment, again and again until there are `count`."""
        return self._at(np.arange(count) % self.envs * self.moments, device)

    def _at(self, index: np.ndarray, device: torch.device) -> dict[str, Tensor]:
        return to_tensors({name: row[index] for name, row in self.rows.items()}, device)


def play(run: RunConfig, vec_env: VectorEnv) -> Played:
    """Random play of the run's environments, a vector environment's worth at a time.

    Without tables nothing of an observation is shared, and a few steps are enough.
    """
    row_bytes = sum(r.nbytes for r in vec_env.encoding.rows)
    width, steps, groups = vec_env.num_envs, min(MOMENTS, 4), 1
    if vec_env.tables:
        steps = min(run.algo.n_steps, LONGEST)
        groups = math.ceil(run.algo.num_envs / width)
    room = ROWS_BYTES // max(1, row_bytes * width * groups)
    moments = max(1, min(MOMENTS, steps, room))
    ends = time.perf_counter() + SECONDS
    found = [_group(run, vec_env, 0, steps, moments)]
    while len(found) < groups and time.perf_counter() < ends:
        found.append(_group(run, vec_env, len(found), steps, moments))
    rows = {name: np.concatenate([rows[name] for rows in found]) for name in found[0]}
    return Played(rows, width * len(found), moments, len(found) / groups)


def _group(
    run: RunConfig, vec_env: VectorEnv, seed: int, steps: int, moments: int
) -> dict[str, np.ndarray]:
    """Rows at evenly spaced moments of random play from a reset, [envs * moments, ...]."""
    history = History(vec_env.encoding, vec_env.num_envs, run.env.episode_steps)
    rows = history.reset(vec_env.reset(seed))
    vec_env.action_space.seed(seed)
    kept: list[dict[str, np.ndarray]] = []
    for number in range(1, steps + 1):
        actions = np.stack([vec_env.action_space.sample() for _ in range(vec_env.num_envs)])
        step = vec_env.step(actions)
        rows, _ = history.push(step.rows, step.done)
        if number * moments // steps > len(kept):
            kept.append({name: row.copy() for name, row in rows.items()})
    return {n: np.stack([r[n] for r in kept], 1).reshape(-1, *rows[n].shape[1:]) for n in rows}
