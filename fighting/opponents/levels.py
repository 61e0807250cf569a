"""Which level of the cartridge's own player is met: drawn, in turn, or rising."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np

from fighting.choices import Rival

if TYPE_CHECKING:
    from fighting.config import DuelConfig

MAX_LEVEL = 7


class Levels:
    """Which level of the cartridge's player the next episode is fought against.

    In training it is drawn from `config.levels`; a curriculum starts at the lowest of them, draws
    the present level in most of the episodes and any one up to it in `easier_share`, and rises when
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
        if self.present > 0 and rng.random() < self.config.easier_share:
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
