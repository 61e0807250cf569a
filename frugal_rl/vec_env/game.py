"""A game: N worlds of one problem, in arrays with the world on the first axis. Imports no torch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium import spaces

if TYPE_CHECKING:
    from frugal_rl.observation.encoder import Raw
    from frugal_rl.observation.tables import Tables


@dataclass
class Advance:
    """What one step did to all N worlds. Arrays may be the game's own, valid until the next step.

    reward      [N] float32
    terminated  [N] bool    the problem is solved or lost
    truncated   [N] bool    a limit ended the episode; never together with `terminated`
    events      name -> [N], what happened, for a network's auxiliary labels
    """

    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    events: Mapping[str, np.ndarray] = field(default_factory=dict)


class Game(ABC):
    """The rules of one problem for N worlds side by side.

    `frugal_rl.vec_env.game_env` makes of it what a trainer steps (`GameVecEnv`) and what Gymnasium
    steps (`GameEnv`). Worlds are named by their places `which` [M] int64.
    """

    num_worlds: int
    tables: Tables
    """Static rows that the worlds have met; ids in `observe` refer to them."""
    action_space: spaces.Space[Any]
    level_names: Sequence[str] = ()
    """Names of the statistic `level`'s values, for an evaluation's parts; empty without levels."""

    @abstractmethod
    def seed(self, rngs: Sequence[np.random.Generator]) -> None:
        """One source of randomness per world, from which all its episodes draw."""

    @abstractmethod
    def begin(self, which: np.ndarray) -> None:
        """Start new episodes in the worlds listed."""

    @abstractmethod
    def advance(self, actions: np.ndarray) -> Advance:
        """One action [N, ...] each; worlds that ended wait for `begin`."""

    @abstractmethod
    def observe(self, which: np.ndarray | None = None) -> Raw:
        """Raw fields [N, *shape] of all worlds, or [M, *shape] of those listed.

        Those of all may be the game's own arrays, overwritten by the next call.
        """

    @abstractmethod
    def outcomes(self, which: np.ndarray) -> dict[str, np.ndarray]:
        """Statistics [M] float64 of the episodes that ended in the worlds listed.

        Always `length` (steps) and `success` (0/1). `return` is added by whoever steps the game,
        from the rewards, unless the game gives it.
        """

    @abstractmethod
    def parts(self) -> dict[str, int]:
        """Bytes held, by name: worlds, static tables."""

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """All that an exact resume needs: plain values and arrays."""

    @abstractmethod
    def load(self, state: dict[str, Any]) -> None:
        """Continue from `state()`."""

    def vet(self, state: dict[str, Any]) -> None:  # noqa: B027 - most games check in `load`
        """Refuse a checkpoint's state that would hang or end this process, before `load` has it.

        Raises:
            DataError: what is wrong with it.
        """

    def close(self) -> None:  # noqa: B027 - most games hold nothing to release
        """Release threads and files."""


def generator_states(rngs: Sequence[np.random.Generator]) -> list[dict[str, Any]]:
    """The states of generators as plain values."""
    return [dict(rng.bit_generator.state) for rng in rngs]


def restored(states: Sequence[Mapping[str, Any]]) -> list[np.random.Generator]:
    """Generators that continue from `generator_states`."""
    rngs = [np.random.default_rng(0) for _ in states]
    for rng, state in zip(rngs, states, strict=True):
        rng.bit_generator.state = state
    return rngs
