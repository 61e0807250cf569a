"""One environment at a time: the base of plain Gymnasium environments with a declared observation.

A subclass writes the problem and its raw fields; windows, static and derived fields of the full
observation come from the declaration.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np

from frugal_rl.observation.choices import Storage
from frugal_rl.observation.encoder import Encoder, decode
from frugal_rl.observation.encoding import Encoding
from frugal_rl.observation.history import History

if TYPE_CHECKING:
    from frugal_rl.observation.spec import ObservationSpec
    from frugal_rl.observation.tables import Tables

Raw = dict[str, np.ndarray]


class SpecEnv(gym.Env[Any, Any]):
    """A Gymnasium environment whose observation is computed from its spec.

    `tables` holds the static rows that this environment has met; ids in `raw` refer to it.
    The info of an episode's last step has `success` and may have `stats`, a dict of numbers.
    """

    def __init__(self, spec: ObservationSpec, tables: Tables, episode_steps: int) -> None:
        self.spec_fields = spec
        self.tables = tables
        self.observation_space = spec.observation_space
        encoding = Encoding.choose(spec, Storage.lossless)
        self._encoder = Encoder(encoding, tables, 1)
        self._history = History(encoding, 1, episode_steps)

    @abstractmethod
    def begin(self) -> None:
        """Start an episode; all randomness comes from `self.np_random`."""

    @abstractmethod
    def advance(self, action: Any) -> tuple[float, bool, bool, dict[str, Any]]:
        """Take one action: reward, terminated, truncated, info."""

    @abstractmethod
    def raw(self) -> Raw:
        """Stored fields [*shape] and `<table>_id` [] of the current observation."""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Start an episode; returns the full observation."""
        self.restart(seed)
        return self._observe(begins=True), {}

    def restart(self, seed: int | None = None) -> None:
        """Start an episode without computing the full observation."""
        super().reset(seed=seed)
        self.begin()

    def step(self, action: Any) -> tuple[dict[str, np.ndarray], float, bool, bool, dict[str, Any]]:
        """Take one action; returns the full observation."""
        reward, terminated, truncated, info = self.advance(action)
        return self._observe(begins=False), reward, terminated, truncated, info

    def _observe(self, begins: bool) -> dict[str, np.ndarray]:
        raw = {name: np.asarray(value)[None] for name, value in self.raw().items()}
        rows, _ = self._history.push(self._encoder.encode(raw), np.array([begins]))
        observed = decode(self._encoder.encoding, rows, self.tables)
        return {name: np.array(value[0]) for name, value in observed.items()}
