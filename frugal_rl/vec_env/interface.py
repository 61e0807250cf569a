"""What the trainer asks of any group of environments. Imports no torch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium import spaces

from frugal_rl.errors import ConfigError

if TYPE_CHECKING:
    from frugal_rl.observation.encoding import Encoding
    from frugal_rl.observation.tables import Tables

Rows = dict[str, np.ndarray]
"""Stored rows by name, each [N, *row shape]; views that stay valid until the next step."""


@dataclass
class EndedEpisodes:
    """The episodes that ended in one step.

    index  [M] int64   their environments
    stats  name -> [M] float64: always `return` (undiscounted), `length` (steps), `success`
           (0/1); further ones are the environment's (reward components, causes of death)
    """

    index: np.ndarray
    stats: dict[str, np.ndarray]


@dataclass
class Step:
    """One step of all N environments. Arrays are views, valid until the next step.

    rows          the observation after the step, of the new episode where one ended
    reward        [N] float32
    done          [N] bool    the episode ended (terminated or truncated); a new one has begun
    truncated     [N] bool    it ended by a limit: bootstrap from `final_rows`
    final_index   [M] int64   environments with truncated[i]; with done[i] after `tell_ends()`
    final_rows    rows of the last observation of those M episodes, each [M, *row shape]
    ended         statistics of all episodes that ended, None if none did
    events        name -> [N], what happened, for a network's auxiliary labels; mostly empty
    """

    rows: Rows
    reward: np.ndarray
    done: np.ndarray
    truncated: np.ndarray
    final_index: np.ndarray
    final_rows: Rows
    ended: EndedEpisodes | None
    events: dict[str, np.ndarray] = field(default_factory=dict)


class VectorEnv(ABC):
    """N environments that step together and hand out encoded rows."""

    num_envs: int
    encoding: Encoding
    tables: Tables
    action_space: spaces.Space[Any]
    level_names: Sequence[str] = ()
    """Names of the statistic `level`'s values; empty where they are told by number."""
    tells_ends: bool = False
    """Whether the last observation of every episode is told, not only of those cut by a limit."""

    def tell_ends(self) -> None:
        """Tell the last observation of every episode from now on."""
        raise ConfigError(
            "Goals in hindsight need the last observation of every episode, which this kind of "
            "environments does not tell. Choose env=gymnasium with vec=serial or vec=threads."
        )

    @abstractmethod
    def reset(self, seed: int) -> Rows:
        """Start N new episodes; equal seeds give equal episodes, whatever the backend."""

    @abstractmethod
    def step(self, actions: np.ndarray) -> Step:
        """Advance all environments by one action each; `actions` [N, ...]."""

    @abstractmethod
    def parts(self) -> dict[str, int]:
        """Bytes held, by name: simulator state, static tables, output rows."""

    def state(self) -> dict[str, Any]:
        """All that an exact resume needs: plain values and arrays."""
        raise NotImplementedError(f"{type(self).__name__} cannot be resumed mid-episode.")

    def load(self, state: dict[str, Any]) -> Rows:
        """Continue from `state`; returns the rows of the current observation."""
        raise NotImplementedError(f"{type(self).__name__} cannot be resumed mid-episode.")

    def numbering(self) -> Any:
        """Static rows in the order of their ids; None where `load` gives them the same again."""
        return None

    def number_again(self, kept: Any) -> None:  # noqa: B027 - see `numbering`
        """Give static rows the ids of `numbering()`, before `load` or `reset`.

        Raises:
            EncodingError: it is none of these environments' numbering.
        """

    def close(self) -> None:  # noqa: B027 - most environments hold nothing to release
        """Release workers and files."""


def env_seeds(num_envs: int, seed: int) -> list[int]:
    """One seed per environment, the same for every backend."""
    return [int(np.random.SeedSequence([seed, i]).generate_state(1)[0]) for i in range(num_envs)]
