"""Which level of the cartridge's own player is met: drawn, in turn, or rising."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from fighting.choices import Rival

if TYPE_CHECKING:
    from fighting.config import DuelConfig
    from frugal_rl.learn.ranks import Ranks

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
        self.agreed: dict[str, Any] | None = None
        """What all ranks last had in common; None in one process."""
        self.since: list[tuple[int, int, float]] = []
        """Step, level and score of the fights that ended here since."""

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

    def tell(self, level: int, score: float, step: int = 0) -> None:
        """The outcome of a fight: 1 won, 0.5 drawn, 0 lost; `step` orders those of ranks."""
        if not self.rising:
            return
        if self.agreed is not None:
            self.since.append((step, level, score))
        self._heed(level, score)

    def _heed(self, level: int, score: float) -> None:
        if level != self.present:
            return
        self.recent.append(score)
        full = len(self.recent) == self.config.raise_after
        top = max(self.pool) if len(self.pool) > 1 else MAX_LEVEL
        if full and np.mean(self.recent) > self.config.raise_at and self.present < top:
            self.present += 1
            self.recent.clear()

    def agree(self, ranks: Ranks) -> None:
        """Decide anew from the fights of all ranks: else each would need as many as one process."""
        if ranks.size == 1 or not self.rising:
            return
        if self.agreed is not None:
            ended = ranks.in_order(self.since)
            self.go_on(self.agreed)
            for _, level, score in ended:
                self._heed(level, score)
        self.agreed, self.since = self.common(), []

    def common(self) -> dict[str, Any]:
        """What a run on another number of processes goes on with."""
        return {"present": self.present, "recent": list(self.recent)}

    def go_on(self, common: Mapping[str, Any]) -> None:
        """Continue from `common()`."""
        self.present = int(common["present"])
        self.recent.clear()
        self.recent.extend(common["recent"])
        if self.agreed is not None:
            self.agreed, self.since = self.common(), []

    def state(self) -> dict[str, Any]:
        """For an exact resume."""
        return {**self.common(), "played": self.played.tolist()}

    def load(self, state: Mapping[str, Any]) -> None:
        """Continue from `state`."""
        self.go_on(state)
        self.played[:] = state["played"]
