"""Who stands on the other side: the cartridge's levels, fixed scripts, a rising curriculum."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from fighting.config import DuelConfig, PoolChoice, Rival
from fighting.league import updated
from fighting.signals import DISTANCE, HIS_STARTUP, HIS_WAVE, OWN_WAVE

# Places in the profile's list of combos.
NEUTRAL, TOWARD, AWAY, UP, DOWN = range(5)
DOWN_AWAY, LIGHT, HEAVY, SWEEP, TOWARD_LIGHT, TOWARD_HEAVY = 8, 9, 10, 12, 13, 14
MAX_LEVEL = 7
Rngs = Sequence[np.random.Generator]
Script = Callable[[np.ndarray, np.ndarray, Rngs], np.ndarray]
"""signals (N, 24), steps since the episode began (N,), random numbers -> combos (N,)."""


def still(signals: np.ndarray, clock: np.ndarray, rngs: Rngs) -> np.ndarray:
    """Does nothing."""
    return np.zeros(len(signals), np.int64)


def at_random(signals: np.ndarray, clock: np.ndarray, rngs: Rngs) -> np.ndarray:
    """Any of the sixteen combos."""
    return np.array([rng.integers(16) for rng in rngs])


def masher(signals: np.ndarray, clock: np.ndarray, rngs: Rngs) -> np.ndarray:
    """Walks up and presses A and B in turn."""
    attack = np.where(clock % 4 < 2, LIGHT, HEAVY)
    return np.where(signals[:, DISTANCE] > 26, TOWARD, np.where(clock % 2 == 0, attack, NEUTRAL))


def heavy(signals: np.ndarray, clock: np.ndarray, rngs: Rngs) -> np.ndarray:
    """Walks up and presses B without end: what a beginner finds out first."""
    return np.where(signals[:, DISTANCE] > 34, TOWARD, np.where(clock % 2 == 0, HEAVY, NEUTRAL))


def spammer(signals: np.ndarray, clock: np.ndarray, rngs: Rngs) -> np.ndarray:
    """Toward and B in every step, whatever happens: what a learner must beat to have learned."""
    return np.full(len(signals), TOWARD_HEAVY)


def riser(signals: np.ndarray, clock: np.ndarray, rngs: Rngs) -> np.ndarray:
    """The motion of the rising strike over and over: the strongest attack, never aimed."""
    return np.choose(clock % 3, [TOWARD, DOWN, TOWARD_HEAVY])


def blocker(signals: np.ndarray, clock: np.ndarray, rngs: Rngs) -> np.ndarray:
    """Holds low block and answers now and then with a sweep."""
    answer = (signals[:, DISTANCE] < 38) & np.array([rng.random() < 0.08 for rng in rngs])
    return np.where(answer, SWEEP, DOWN_AWAY)


def turtle(signals: np.ndarray, clock: np.ndarray, rngs: Rngs) -> np.ndarray:
    """Throws waves from afar, blocks when it is near or something flies."""
    wave = np.choose(clock % 3, [DOWN, TOWARD, TOWARD_LIGHT])
    danger = (signals[:, DISTANCE] < 45) | (signals[:, HIS_STARTUP] > 0)
    danger |= (signals[:, HIS_WAVE] > 0) & (signals[:, HIS_WAVE] < 40)
    return np.where(danger, AWAY, np.where(signals[:, OWN_WAVE] > 0, NEUTRAL, wave))


SCRIPTS: dict[Rival, Script] = {
    Rival.still: still,
    Rival.random: at_random,
    Rival.masher: masher,
    Rival.heavy: heavy,
    Rival.spammer: spammer,
    Rival.riser: riser,
    Rival.blocker: blocker,
    Rival.turtle: turtle,
}


class RivalSeat(Protocol):
    """Whoever sits in the other seat of `count` cartridges."""

    def begin(self, place: int, rng: np.random.Generator) -> None:
        """A new fight begins at one place."""

    def act(self, signals: np.ndarray, clock: np.ndarray, rngs: Rngs) -> np.ndarray:
        """As a `Script`, for all places."""

    def tell(self, place: int, score: float) -> None:
        """The learner scored 1, 0.5 or 0 at one place."""

    def state(self) -> Any:
        """For an exact resume."""

    def load(self, state: Any) -> None:
        """Continue from `state`."""


@dataclass
class Scripted:
    """A fixed script at every place."""

    script: Script

    def begin(self, place: int, rng: np.random.Generator) -> None:
        """Scripts remember nothing."""

    def act(self, signals: np.ndarray, clock: np.ndarray, rngs: Rngs) -> np.ndarray:
        """What the script does."""
        return self.script(signals, clock, rngs)

    def tell(self, place: int, score: float) -> None:
        """Scripts do not learn."""

    def state(self) -> Any:
        """Nothing."""
        return None

    def load(self, state: Any) -> None:
        """Nothing."""


class PastSelves:
    """A pool of players and their Elo ratings, one of them at each place.

    The pool begins with the scripts, so that the first fights have an opponent and later ones do
    not forget the simple ones. The learner's own rating rises and falls with its fights here.
    """

    def __init__(self, choice: PoolChoice, count: int) -> None:
        self.choice = choice
        self.names = [rival.value for rival in SCRIPTS]
        self.players: list[Script] = list(SCRIPTS.values())
        self.ratings = [1000.0] * len(self.players)
        self.own = 1000.0
        self.chosen = np.zeros(count, np.int64)

    def add(self, name: str, player: Script) -> None:
        """A past self joins, rated as the present one is."""
        self.names.append(name)
        self.players.append(player)
        self.ratings.append(self.own)

    def begin(self, place: int, rng: np.random.Generator) -> None:
        """Draws the opponent of a new fight."""
        count = len(self.players)
        if self.choice is PoolChoice.latest and rng.random() < 0.5:
            self.chosen[place] = rng.integers(max(count - 3, 0), count)
        elif self.choice is PoolChoice.closest:
            away = np.abs(np.array(self.ratings) - self.own)
            weights = np.exp(-away / 100)
            self.chosen[place] = rng.choice(count, p=weights / weights.sum())
        else:
            self.chosen[place] = rng.integers(count)

    def act(self, signals: np.ndarray, clock: np.ndarray, rngs: Rngs) -> np.ndarray:
        """Each place asks its own player, those of one player together."""
        out = np.zeros(len(signals), np.int64)
        for member in np.unique(self.chosen):
            at = np.flatnonzero(self.chosen == member)
            out[at] = self.players[member](signals[at], clock[at], [rngs[i] for i in at])
        return out

    def tell(self, place: int, score: float) -> None:
        """Both ratings move."""
        member = int(self.chosen[place])
        self.own, self.ratings[member] = updated(self.own, self.ratings[member], score)

    def state(self) -> Any:
        """Ratings and choices; the players' weights belong to the learner."""
        return {"ratings": list(self.ratings), "own": self.own, "chosen": self.chosen.copy()}

    def load(self, state: Any) -> None:
        """Continue from `state`."""
        self.ratings, self.own = list(state["ratings"]), float(state["own"])
        self.chosen[:] = state["chosen"]


def rival_of(config: DuelConfig, count: int) -> RivalSeat:
    """Who sits in the other seat of the cartridges that have one row."""
    if config.opponent is Rival.self_play:
        return PastSelves(config.pool_choice, count)
    if config.opponent is Rival.policy:
        from fighting.self_play import saved_player  # imports torch

        return Scripted(saved_player(config.rival))
    return Scripted(SCRIPTS[config.opponent])


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
