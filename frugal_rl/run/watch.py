"""Watching a trained policy: one environment of its evaluation, played step by step."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
import torch

from frugal_rl.observation.history import History
from frugal_rl.run.evaluate import policy_player
from frugal_rl.run.saved import Saved, open_saved

if TYPE_CHECKING:
    from frugal_rl.run.config import RunConfig
    from frugal_rl.vec_env.interface import Step, VectorEnv


class Watch:
    """A saved policy at play: ask it what to do, then do it.

    `vec_env` has one environment; look at it between `choose` and `step`.
    """

    def __init__(self, saved: Saved, deterministic: bool = True) -> None:
        self.run, self.vec_env = saved.run, saved.vec_env
        self._player = policy_player(saved.run, saved.policy, saved.vec_env, deterministic)
        self._history = History(
            saved.vec_env.encoding, saved.vec_env.num_envs, saved.run.env.episode_steps
        )
        torch.manual_seed(saved.run.evaluation.seed)
        self._rows = self._history.reset(saved.vec_env.reset(saved.run.evaluation.seed))

    def choose(self) -> np.ndarray:
        """The policy's actions for the present observation, [1, ...]."""
        return self._player(self._rows)

    def step(self, actions: np.ndarray) -> Step:
        """Take the actions; an ended episode begins anew."""
        env: VectorEnv = self.vec_env
        step = env.step(actions)
        self._rows, _ = self._history.push(step.rows, step.done)
        return step


@contextmanager
def open_watch(path: str, asked: RunConfig, deterministic: bool = True) -> Iterator[Watch]:
    """The policy in a checkpoint with one environment of its evaluation; closed at the end.

    Args:
        path: a checkpoint, a run folder, or its `checkpoints/`.
        asked: the composed run of the command at hand; words typed there change the saved run.
        deterministic: take the most likely action.
    """
    with open_saved(path, asked, num_envs=1) as saved:
        yield Watch(saved, deterministic)
