"""Episodes of any Gymnasium environment, played out and written as a Minari data set.

Needs `pip install 'frugal-rl[offline]'`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from frugal_rl.errors import ConfigError, DataError
from frugal_rl.invocation import installing


@dataclass
class Episode:
    """What was observed, [T + 1] of them, done and earned, [T] each."""

    observations: list[Any]
    actions: list[Any] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)
    terminated: bool = False
    """Whether it ended by itself, not by a limit nor because the player stopped."""


def play_out(env: gym.Env[Any, Any], act: Callable[[Any], Any], **reset: Any) -> Episode:
    """Play one episode of a Gymnasium environment.

    Args:
        env: the environment.
        act: what to do, by the observation; None ends the episode early.
        reset: what `env.reset` is given, such as `seed=3`.
    """
    seen = env.reset(**reset)[0]
    episode = Episode([seen])
    while (action := act(seen)) is not None:
        seen, reward, terminated, truncated, _ = env.step(action)
        episode.observations.append(seen)
        episode.actions.append(np.asarray(action, env.action_space.dtype))
        episode.rewards.append(float(reward))
        if terminated or truncated:
            episode.terminated = bool(terminated)
            break
    return episode


class EpisodeWriter:
    """A new Minari data set of this id in `folder`, episode after episode.

    Args:
        folder: new or empty.
        name: such as `nclone/solved-v0`.
        observations: space of one observation.
        actions: space of one action.

    Raises:
        ConfigError: Minari is not installed.
        DataError: the folder holds something already.
    """

    def __init__(
        self,
        folder: str | Path,
        name: str,
        observations: spaces.Space[Any],
        actions: spaces.Space[Any],
    ) -> None:
        folder = Path(folder)
        if folder.exists() and any(folder.iterdir()):
            raise DataError(f"{folder} is not empty; name another folder for the data set.")
        storage = minari_part("minari.dataset.minari_storage").MinariStorage
        self._episode = minari_part("minari.data_collector").EpisodeBuffer
        folder.mkdir(parents=True, exist_ok=True)
        self.storage = storage.new(folder, observations, actions)
        version = minari_part("minari").__version__
        self.storage.update_metadata({"dataset_id": name, "minari_version": version})

    @property
    def episodes(self) -> int:
        """Episodes written so far."""
        return int(self.storage.total_episodes)

    def add(self, episode: Episode) -> None:
        """Write one episode; one without a step is left out."""
        if not episode.rewards:
            return
        ends = np.zeros((2, len(episode.rewards)), bool)
        ends[0 if episode.terminated else 1, -1] = True
        seen = episode.observations
        observed: Any
        if isinstance(seen[0], Mapping):
            observed = {name: np.stack([one[name] for one in seen]) for name in seen[0]}
        else:
            observed = np.stack(seen)
        buffer = self._episode(
            observations=observed,
            actions=np.stack(episode.actions),
            rewards=list(episode.rewards),
            terminations=list(ends[0]),
            truncations=list(ends[1]),
        )
        self.storage.update_episodes([buffer])


def minari_part(name: str) -> ModuleType:
    """A module of Minari, or an error that says how to get it."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"Minari data sets need Minari and h5py: {installing('offline')}"
        ) from error
