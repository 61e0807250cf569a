"""Levels at the edge of what a policy can do: drawn more often, and new ones made of them.

Each level has a rate at which it is won, which forgets; before it is played, the searcher's effort
stands for it. What is won as often as lost is drawn most, r (1 - r) being the variance of the
result, and is changed a little (`nclone.levels.mutation`); what the searcher wins joins. As in
ACCEL (Parker-Holder et al. 2022), with the variance in place of a regret.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from frugal_rl.errors import DataError
from nclone.levels.evolved import levels_in
from nclone.levels.generators.dice import Dice
from nclone.levels.mutation import mutated
from nclone.search.proof import Prover

if TYPE_CHECKING:
    from frugal_rl.learn.ranks import Ranks
    from nclone.levels.level import Level
    from nclone.levels.played import PlayedLevels

ROOTS_SHARE = 0.5
"""Share of the episodes on levels that were given, each as often as any other."""
FORGET = 0.95
"""What an earlier result counts beside the next."""
PRIOR_PLAYS = 1.0
"""Results that the searcher's effort counts as."""
EVERY_EPISODES, TRIES = 64, 4
"""After so many episodes so many levels are changed and searched."""
BUDGET_FRAMES = 100_000
DRAWS = 1 << 20
"""Equal parts of which a draw of the dice is one."""


class LevelEvolution:
    """Draws levels by how uncertain their result is, and lets new ones join.

    Args:
        levels: what is played; it has room for what is evolved.
        efforts: [L] frames that the searcher simulated until it won each; 0 where nobody knows.
    """

    def __init__(self, levels: PlayedLevels, efforts: np.ndarray) -> None:
        self.levels, self.roots, self.most = levels, len(levels), levels.more
        self.efforts = [int(effort) for effort in efforts]
        room = self.roots + self.most
        self.plays, self.wins = np.zeros(room), np.zeros(room)
        self.expected = np.full(room, 0.5)
        self.expected[: self.roots] = expected_rates(efforts, efforts)
        self.steps = self.ended = self.tries = self.seed = 0
        self._prover = Prover(budget_frames=BUDGET_FRAMES)

    @property
    def evolved(self) -> int:
        """How many levels have joined."""
        return len(self.levels) - self.roots

    @property
    def nbytes(self) -> int:
        """Bytes of the results of all levels, room for further ones included."""
        return int(self.plays.nbytes + self.wins.nbytes + self.expected.nbytes)

    @property
    def rates(self) -> np.ndarray:
        """[L] float64 in (0, 1): how often each level is won at present, as far as is known."""
        count = len(self.levels)
        prior = PRIOR_PLAYS * self.expected[:count]
        rates: np.ndarray = (self.wins[:count] + prior) / (self.plays[:count] + PRIOR_PLAYS)
        return rates

    def next(self, draws: np.ndarray) -> np.ndarray:
        """Ids of the next levels; draws [M] in [0, 1) decide them."""
        if not self.seed:
            self.seed = 1 + int(draws[0] * 2**52)
        while self.evolved < self.most and self.ended // EVERY_EPISODES > self.tries // TRIES:
            self._evolve()
        ids = self._weighted((draws - ROOTS_SHARE) / (1 - ROOTS_SHARE))
        given = draws < ROOTS_SHARE
        at = (draws[given] / ROOTS_SHARE * self.roots).astype(np.int64)
        ids[given] = self.levels.playlist[at]
        return ids

    def record(self, ids: np.ndarray, won: np.ndarray) -> None:
        """The episodes that ended: their levels' ids [M], won [M] bool."""
        for level, success in zip(ids, won, strict=True):
            self.plays[level] = FORGET * self.plays[level] + 1
            self.wins[level] = FORGET * self.wins[level] + success
        self.ended += len(ids)

    def told(self, ids: np.ndarray) -> dict[str, np.ndarray]:
        """What episodes on these levels [M] tell: whether the level was made while learning."""
        return {"evolved": (np.asarray(ids) >= self.roots).astype(np.float64)}

    def agree(self, ranks: Ranks) -> None:
        """Each process evolves levels of its own."""

    def _weighted(self, draws: np.ndarray) -> np.ndarray:
        """[M] ids, each as often as its result is uncertain."""
        rates = self.rates
        shares = np.cumsum(rates * (1 - rates))
        found = np.searchsorted(shares, np.clip(draws, 0, 1) * shares[-1], side="right")
        ids: np.ndarray = np.minimum(found, len(rates) - 1)
        return ids

    def _evolve(self) -> None:
        """Change a few levels at the edge; those that the searcher wins join."""
        dice = Dice("evolved", self.seed + self.tries)
        self.tries += TRIES
        draws = np.array([dice.between(0, DRAWS - 1) for _ in range(TRIES)]) / DRAWS
        for parent in self._weighted(draws):
            child = mutated(self.levels.table.level[parent], dice)
            if child is None or self.evolved == self.most or not self.levels.fits(child):
                continue
            proof = self._prover.prove(child, seed=self.tries)
            if proof.inputs is not None:
                self._join(child, proof.frames_spent)

    def _join(self, level: Level, effort: int) -> None:
        known = np.array(self.efforts[: self.roots])
        self.expected[len(self.levels)] = expected_rates(np.array([effort]), known)[0]
        self.levels.add(level)
        self.efforts.append(effort)

    def state(self) -> dict[str, Any]:
        """All that an exact resume needs; evolved levels as their bytes, one after the other."""
        evolved = [level.map_data for level in self.levels.table.level[self.roots :]]
        count = len(self.levels)
        return {
            "steps": self.steps,
            "seed": self.seed,
            "tries": self.tries,
            "ended": self.ended,
            "plays": self.plays[:count].copy(),
            "wins": self.wins[:count].copy(),
            "efforts": np.array(self.efforts[self.roots :], np.int64),
            "ends": np.cumsum([len(data) for data in evolved], dtype=np.int64),
            "evolved": np.frombuffer(b"".join(evolved), np.uint8),
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Continue from `state()`, as a checkpoint holds it.

        Raises:
            DataError: it holds levels that this run has no room for.
        """
        for level, effort in zip(levels_in(state), state["efforts"], strict=True):
            if not self.levels.fits(level):
                raise DataError(
                    f"The checkpoint holds {len(state['ends'])} levels that were evolved, more or "
                    f"larger ones than env.evolved={self.most} has room for; resume it with the "
                    "env.levels and env.evolved that it was begun with."
                )
            self._join(level, int(effort))
        count = len(self.levels)
        self.plays[:count], self.wins[:count] = state["plays"], state["wins"]
        for name in ("steps", "seed", "tries", "ended"):
            setattr(self, name, int(state[name]))


def expected_rates(efforts: np.ndarray, among: np.ndarray) -> np.ndarray:
    """[M] float64: what to expect of levels by the searcher's effort, before they are played.

    The share of `among` that took more effort; 0.5 where nothing is known.
    """
    known = np.sort(among[among > 0])
    if not len(known):
        return np.full(len(efforts), 0.5)
    harder = (
        len(known)
        - np.searchsorted(known, efforts, side="left") / 2
        - np.searchsorted(known, efforts, side="right") / 2
    )
    rates: np.ndarray = np.where(efforts > 0, (harder + 0.5) / (len(known) + 1), 0.5)
    return rates
