"""Fixed scripts: players that see one seat's bytes and choose a set of buttons."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from fighting.choices import Rival
from fighting.signals import DISTANCE, HIS_STARTUP, HIS_WAVE, OWN_WAVE

# Places in the profile's list of combos.
NEUTRAL, TOWARD, AWAY, UP, DOWN = range(5)
DOWN_AWAY, LIGHT, HEAVY, SWEEP, TOWARD_LIGHT, TOWARD_HEAVY = 8, 9, 10, 12, 13, 14
Rngs = Sequence[np.random.Generator]
Script = Callable[[np.ndarray, np.ndarray, Rngs], np.ndarray]
"""What one seat sees (N, ...), steps since the episode began (N,), random numbers -> actions (N,).

It sees Duel's signals (24 bytes), or the features of a profile.
"""


def still(signals: np.ndarray, clock: np.ndarray, rngs: Rngs) -> np.ndarray:
    """Does nothing."""
    return np.zeros(len(signals), np.int64)


def any_of(actions: int) -> Script:
    """Any of that many actions."""

    def at_random(signals: np.ndarray, clock: np.ndarray, rngs: Rngs) -> np.ndarray:
        return np.array([rng.integers(actions) for rng in rngs])

    return at_random


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


def of_any_game(actions: int) -> dict[Rival, Script]:
    """What anybody can do who has `actions` to choose from."""
    return {Rival.still: still, Rival.random: any_of(actions)}


SCRIPTS: dict[Rival, Script] = {
    Rival.still: still,
    Rival.random: any_of(16),
    Rival.masher: masher,
    Rival.heavy: heavy,
    Rival.spammer: spammer,
    Rival.riser: riser,
    Rival.blocker: blocker,
    Rival.turtle: turtle,
}
