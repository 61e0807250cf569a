"""Which level comes next: a curriculum over the pool's categories, drawn for N worlds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from nclone.levels.categories import CATEGORIES
from nclone.levels.curriculum import Curriculum, CurriculumConfig, Episode, Sink

if TYPE_CHECKING:
    from frugal_rl.learn.ranks import Ranks


class LevelSampler:
    """Draws levels as a `Curriculum` decides, and tells it how they ended.

    Args:
        places: category and source ("generator/preset") of every level in `env.levels`; the
            categories are the stages, in the order of the curriculum.
        rules: when a stage is left.
        log: receives every event; `replay_log` repeats the decisions from them.
        ids: [levels] the level id of each place; None where they are the places.
    """

    def __init__(
        self,
        places: Sequence[tuple[str, str]],
        rules: CurriculumConfig,
        log: Sink | None = None,
        ids: np.ndarray | None = None,
    ) -> None:
        self._place = list(places)
        self._ids = np.arange(len(self._place)) if ids is None else ids
        self._place_of = {int(k): p for p, k in reversed(list(enumerate(self._ids)))}
        self._levels: dict[tuple[str, str], np.ndarray] = {}
        for place in dict.fromkeys(self._place):
            self._levels[place] = np.flatnonzero([p == place for p in self._place])
        stages = {}
        for name, category in CATEGORIES.items():
            known = [s for s in category.sources if (name, "/".join(s)) in self._levels]
            if known:
                stages[name] = replace(category, sources=tuple(known))
        self._order = list(stages)
        self.curriculum = Curriculum(rules, stages, log)
        self.steps = 0
        self.agreed: dict[str, Any] | None = None
        """What all ranks last had in common; None in one process."""
        self.since: list[tuple[int, int, bool]] = []
        """Steps after that, place and success of the episodes that ended here since."""

    @property
    def nbytes(self) -> int:
        """Bytes of which level each place is."""
        return int(self._ids.nbytes)

    @property
    def stage(self) -> int:
        """Number of the present stage, 0 for the first."""
        return self._order.index(self.curriculum.stage)

    def next(self, draws: np.ndarray) -> np.ndarray:
        """Ids of the next levels; draws [M] in [0, 1) decide them."""
        chosen = np.empty(len(draws), np.int64)
        for i, draw in enumerate(draws):
            rng = np.random.default_rng(int(draw * 2**53))
            levels = self._levels[self.curriculum.draw(rng)[0]]
            chosen[i] = self._ids[levels[rng.integers(len(levels))]]
        return chosen

    def told(self, ids: np.ndarray) -> dict[str, np.ndarray]:
        """What episodes on these levels [M] tell of the curriculum: the stage that it is at."""
        return {"stage": np.full(len(ids), float(self.stage))}

    def record(self, ids: np.ndarray, won: np.ndarray) -> None:
        """The episodes that ended in one step: their levels' ids [M], won [M] bool."""
        for level, success in zip(ids, won, strict=True):
            place = self._place_of[int(level)]
            stage, source = self._place[place]
            self.curriculum.record(Episode(stage, source, bool(success), self.steps))
            if self.agreed is not None:
                self.since.append((self.steps - self.agreed["steps"], int(place), bool(success)))

    def agree(self, ranks: Ranks) -> None:
        """Decide anew from the episodes of all ranks, in the order in which they ended."""
        if ranks.size == 1:
            return
        if self.agreed is not None:
            base = self.agreed
            ended, own = ranks.in_order(self.since), self.steps - base["steps"]
            self.load(base)
            for at, place, success in ended:
                stage, source = self._place[place]
                steps = base["steps"] + at * ranks.size
                self.curriculum.record(Episode(stage, source, success, steps))
            self.steps = base["steps"] + own * ranks.size
        self.agreed, self.since = self.state(), []

    def state(self) -> dict[str, Any]:
        """All that an exact resume needs."""
        return {"steps": self.steps, "curriculum": self.curriculum.state()}

    def load(self, state: Mapping[str, Any]) -> None:
        """Continue from `state()`."""
        self.steps = int(state["steps"])
        self.curriculum.load(state["curriculum"])
        if self.agreed is not None:
            self.agreed, self.since = self.state(), []
