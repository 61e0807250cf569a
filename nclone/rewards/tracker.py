"""The reward's memory of N worlds: potentials, visited cells, and sums per episode."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from nclone.rewards.kernels import (
    BONUS,
    COMPONENTS,
    POTENTIALS,
    VISITED_BYTES,
    Events,
    Motion,
    Paths,
    reward_worlds,
    start_worlds,
)

if TYPE_CHECKING:
    from nclone.graph.distance import DistanceTables
    from nclone.rewards.config import Reward

FASTEST = 2.0
"""Wins in less than half of the best known frames earn no more."""


class RewardTracker:
    """Rewards `num_worlds` worlds; every component is summed apart until the episode ends.

    Attributes:
        reward: [N] float32, of the last step; its components [N, 10] float64 are beside it.
        sums: [N, 10] float64, component sums of the running episodes (names: `COMPONENTS`).
        phi: [N] float64, the potential of the present states.
        parts: [N, 3] float64, objective, hazard and impact part of it before weighting.
        explored: [N, 4] int32, cells of 24, 96, 192, 384 px visited in the episode.
    """

    def __init__(self, config: Reward, gamma: float, num_worlds: int) -> None:
        if not 0.0 < gamma <= 1.0:
            raise ValueError(f"gamma is {gamma}; use a value above 0 and at most 1.")
        self.config = config
        self.gamma = gamma
        self._weights = config.weights()
        self.reward = np.zeros(num_worlds, np.float32)
        self.components = np.zeros((num_worlds, len(COMPONENTS)))
        self.sums = np.zeros((num_worlds, len(COMPONENTS)))
        self.phi = np.zeros(num_worlds)
        self.parts = np.zeros((num_worlds, len(POTENTIALS)))
        self.explored = np.zeros((num_worlds, 4), np.int32)
        self._visited = np.zeros((num_worlds, VISITED_BYTES), np.uint8)

    @staticmethod
    def paths(
        tables: DistanceTables,
        entry: np.ndarray,
        level: np.ndarray,
        switch_hit: np.ndarray,
        entity_state: np.ndarray,
    ) -> Paths:
        """The tables' present arrays beside the worlds' own; make it anew in every step."""
        return Paths(
            tables.hops,
            tables.goal_row,
            tables.scale_px,
            tables.reach_px,
            tables.mine_reachable,
            tables.mine_offset,
            tables.mine_xy,
            tables.mine_entity,
            entry,
            level,
            switch_hit,
            entity_state,
        )

    def begin(self, begun: np.ndarray, motion: Motion, paths: Paths) -> None:
        """Start new episodes in the worlds marked in begun [N] bool, after their reset."""
        self.sums[begun] = 0.0
        start_worlds(
            begun, motion, paths, self._weights, self.phi, self.parts, self._visited, self.explored
        )

    def step(self, motion: Motion, paths: Paths, events: Events) -> np.ndarray:
        """[N] float32, the rewards of a step, given the state before any automatic reset."""
        reward_worlds(
            motion,
            paths,
            events,
            self._weights,
            self.gamma,
            self.phi,
            self.parts,
            self._visited,
            self.explored,
            self.components,
            self.reward,
        )
        self.sums += self.components
        return self.reward

    def pay_speed(self, won: np.ndarray, frames: np.ndarray, best: np.ndarray) -> None:
        """Add what the worlds listed in `won` [M] earn by `frames` against `best` frames, [M] each.

        Call it after `step`, before the reward is used.
        """
        paid = self.config.speed * np.minimum(FASTEST, best / np.maximum(frames, 1))
        self.components[won, BONUS] += paid
        self.sums[won, BONUS] += paid
        self.reward[won] += paid.astype(np.float32)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in self._arrays().values())

    def state(self) -> dict[str, np.ndarray]:
        """What the running episodes need to go on: copies."""
        return {name: array.copy() for name, array in self._arrays().items()}

    def load(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from `state()`."""
        for name, array in self._arrays().items():
            array[:] = state[name]

    def _arrays(self) -> dict[str, np.ndarray]:
        names = ("reward", "components", "sums", "phi", "parts", "explored", "_visited")
        return {name.strip("_"): getattr(self, name) for name in names}
