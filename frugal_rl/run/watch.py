"""Watching a policy: one environment of its evaluation, played step by step."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
import torch

from frugal_rl.observation.history import History
from frugal_rl.run.evaluate import evaluation_env, policy_player
from frugal_rl.run.saved import open_saved, with_one_env

if TYPE_CHECKING:
    from frugal_rl.learn.policy import FrugalPolicy
    from frugal_rl.run.config import RunConfig
    from frugal_rl.vec_env.interface import Step, VectorEnv


class Watch:
    """A policy at play: ask it what to do, then do it.

    `vec_env` has one environment; look at it between `choose` and `step`.
    """

    def __init__(
        self, run: RunConfig, policy: FrugalPolicy, vec_env: VectorEnv, deterministic: bool = True
    ) -> None:
        self.run, self.vec_env = run, vec_env
        self._player = policy_player(run, policy, vec_env, deterministic)
        self._history = History(vec_env.encoding, vec_env.num_envs, run.env.episode_steps)
        torch.manual_seed(run.evaluation.seed)
        self._rows = self._history.reset(vec_env.reset(run.evaluation.seed))

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
    with open_saved(path, asked, single=True) as saved:
        yield Watch(saved.run, saved.policy, saved.vec_env, deterministic)


@contextmanager
def watch_policy(run: RunConfig, policy: FrugalPolicy) -> Iterator[Watch]:
    """A policy that is being trained, with one environment of its evaluation."""
    vec_env = evaluation_env(with_one_env(run))
    try:
        yield Watch(run, policy, vec_env, run.evaluation.deterministic)
    finally:
        vec_env.close()
