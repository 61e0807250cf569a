"""Who stands on the other side: the cartridge's levels, fixed scripts, a rising curriculum."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from fighting.config import DuelConfig, Rival
from fighting.signals import DISTANCE, HIS_STARTUP, HIS_WAVE, OWN_WAVE

# Places in the profile's list of combos.
NEUTRAL, TOWARD, AWAY, UP, DOWN = range(5)
DOWN_AWAY, LIGHT, HEAVY, SWEEP, TOWARD_LIGHT = 8, 9, 10, 12, 13
MAX_LEVEL = 7
Script = Callable[[np.ndarray, np.ndarray, np.random.Generator], np.ndarray]
"""signals (N, 24), steps since the episode began (N,), random numbers -> combos (N,)."""


def still(signals: np.ndarray, clock: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Does nothing."""
    return np.zeros(len(signals), np.int64)


def at_random(signals: np.ndarray, clock: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Any of the sixteen combos."""
    return rng.integers(0, 16, len(signals))


def masher(signals: np.ndarray, clock: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Walks up and presses A and B in turn."""
    attack = np.where(clock % 4 < 2, LIGHT, HEAVY)
    return np.where(signals[:, DISTANCE] > 30, TOWARD, np.where(clock % 2 == 0, attack, NEUTRAL))


def blocker(signals: np.ndarray, clock: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Holds low block and answers now and then with a sweep."""
    answer = (signals[:, DISTANCE] < 38) & (rng.random(len(signals)) < 0.08)
    return np.where(answer, SWEEP, DOWN_AWAY)


def turtle(signals: np.ndarray, clock: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Throws waves from afar, blocks when it is near or something flies."""
    wave = np.choose(clock % 3, [DOWN, TOWARD, TOWARD_LIGHT])
    danger = (signals[:, DISTANCE] < 45) | (signals[:, HIS_STARTUP] > 0)
    danger |= (signals[:, HIS_WAVE] > 0) & (signals[:, HIS_WAVE] < 40)
    return np.where(danger, AWAY, np.where(signals[:, OWN_WAVE] > 0, NEUTRAL, wave))


SCRIPTS: dict[Rival, Script] = {
    Rival.still: still,
    Rival.random: at_random,
    Rival.masher: masher,
    Rival.blocker: blocker,
    Rival.turtle: turtle,
}


class Levels:
    """Which level of the cartridge's player the next episode is fought against.

    In training it is drawn from `config.levels`; a curriculum starts at the lowest of them, draws
    the present level in three quarters of the episodes and one below it in the rest, and rises when
    `raise_at` of the last `raise_after` fights at the present level were won. In evaluation the
    levels come in turn.
    """

    def __init__(self, config: DuelConfig, split: str, count: int) -> None:
        self.config, self.split = config, split
        self.pool = tuple(config.eval_levels or config.levels) if split == "eval" else config.levels
        self.present = min(self.pool)
        self.recent: deque[float] = deque(maxlen=config.raise_after)
        self.played = np.arange(count) % len(self.pool)
        self.rising = config.opponent is Rival.curriculum and split == "train"

    def draw(self, place: int, rng: np.random.Generator) -> int:
        """The level of the next episode of one cartridge."""
        if self.split == "eval":
            level = self.pool[self.played[place] % len(self.pool)]
            self.played[place] += 1
            return level
        if not self.rising:
            return int(self.pool[rng.integers(len(self.pool))])
        if self.present > 0 and rng.random() < 0.25:
            return int(rng.integers(max(min(self.pool), 0), self.present + 1))
        return self.present

    def tell(self, level: int, score: float) -> None:
        """The outcome of a fight: 1 won, 0.5 drawn, 0 lost."""
        if not self.rising or level != self.present:
            return
        self.recent.append(score)
        full = len(self.recent) == self.config.raise_after
        top = max(self.pool) if len(self.pool) > 1 else MAX_LEVEL
        if full and np.mean(self.recent) > self.config.raise_at and self.present < top:
            self.present += 1
            self.recent.clear()

    def state(self) -> dict[str, Any]:
        """For an exact resume."""
        return {
            "present": self.present,
            "recent": list(self.recent),
            "played": self.played.tolist(),
        }

    def load(self, state: dict[str, Any]) -> None:
        """Continue from `state`."""
        self.present = int(state["present"])
        self.recent.extend(state["recent"])
        self.played[:] = state["played"]
