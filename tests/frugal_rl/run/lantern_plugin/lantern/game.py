"""N lanterns: turn the flame up or down until it is as bright as the sky asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from frugal_rl.observation.spec import Derived, ObservationSpec, Stored
from frugal_rl.observation.tables import Tables
from frugal_rl.vec_env.game import Advance, Game, generator_states, restored
from lantern.codec import NibbleCodec

WINDOWS = 8


def glow(sources: Mapping[str, np.ndarray], tables: Any) -> np.ndarray:
    """`flames` [N, 8] -> [N, 1] float32: their sum, from 0 to 120."""
    return sources["flames"].sum(axis=-1, dtype=np.int64)[:, None].astype(np.float32)


SPEC = ObservationSpec(
    (
        Stored("flames", (WINDOWS,), np.uint8, 0, 15, "of 8 windows", codecs=(NibbleCodec(),)),
        Derived(
            "glow", (1,), np.float32, 0, 120, "their sum",
            sources=("flames",), derive=glow, twin="lantern.network:glow",
        ),
    )
)  # fmt: skip


class LanternGame(Game):
    """An action turns one window's flame up; full brightness everywhere is a success."""

    def __init__(self, num_worlds: int, episode_steps: int) -> None:
        self.num_worlds, self.episode_steps, self.tables = num_worlds, episode_steps, Tables()
        self.action_space = spaces.Discrete(WINDOWS)
        self.flames = np.zeros((num_worlds, WINDOWS), np.uint8)
        self.steps = np.zeros(num_worlds, np.int64)
        self.rngs: list[np.random.Generator] = []

    def seed(self, rngs: Sequence[np.random.Generator]) -> None:
        """One source of randomness per lantern."""
        self.rngs = list(rngs)

    def begin(self, which: np.ndarray) -> None:
        """Flames of random height."""
        for world in which:
            self.flames[world] = self.rngs[world].integers(10, 16, WINDOWS)
        self.steps[which] = 0

    def advance(self, actions: np.ndarray) -> Advance:
        """One flame up; a flame that is full already is a step lost."""
        every = np.arange(self.num_worlds)
        useful = self.flames[every, actions] < 15
        self.flames[every, actions] += useful
        self.steps += 1
        full = (self.flames == 15).all(axis=-1)
        late = (self.steps >= self.episode_steps) & ~full
        return Advance(useful.astype(np.float32), full, late)

    def observe(self, which: np.ndarray | None = None) -> dict[str, np.ndarray]:
        """The flames."""
        return {"flames": self.flames if which is None else self.flames[which]}

    def outcomes(self, which: np.ndarray) -> dict[str, np.ndarray]:
        """Length and success."""
        full = (self.flames[which] == 15).all(axis=-1)
        return {"length": self.steps[which].astype(float), "success": full.astype(float)}

    def parts(self) -> dict[str, int]:
        """Bytes of the lanterns."""
        return {"simulators": self.flames.nbytes + self.steps.nbytes}

    def state(self) -> dict[str, Any]:
        """Flames, steps and generators."""
        arrays = {"flames": self.flames.copy(), "steps": self.steps.copy()}
        return arrays | {"rngs": generator_states(self.rngs)}

    def load(self, state: dict[str, Any]) -> None:
        """Continue from `state()`."""
        self.flames[:], self.steps[:] = state["flames"], state["steps"]
        self.rngs = restored(state["rngs"])
