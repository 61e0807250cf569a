"""Short scripts as numbers: lines of (condition, action), the first that holds acts.

A line is four numbers: nearest and farthest distance in pixels, what the other one does (`WHEN`),
and an action (`ACTIONS`). A script that no line of which holds does nothing.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from fighting.opponents import scripts as combo
from fighting.signals import (
    DISTANCE,
    HIS_ACTIVE,
    HIS_RECOVERY,
    HIS_STARTUP,
    HIS_STATE,
    HIS_WAVE,
    HIS_Y,
    HP_LEAD,
    HP_MAX,
    OWN_STATE,
)

FAR = 255
WHEN = (
    "always",
    "he jumps",
    "he winds up",
    "he strikes",
    "he recovers",
    "he recovers or jumps",
    "he winds up or strikes",
    "he is stunned",
    "he lies or gets up",
    "his wave flies",
    "he stands or walks",
    "he walks up",
    "he crouches",
    "I lead",
    "I do not lead",
    "I was stopped",
)
"""What a line may ask beside the distance."""
UP_TOWARD, UP_AWAY, AWAY_HEAVY, CROUCH_LIGHT = 5, 6, 15, 11
ACTIONS: dict[str, tuple[tuple[int, int], ...]] = {
    "nothing": ((combo.NEUTRAL, 1),),
    "toward": ((combo.TOWARD, 1),),
    "away": ((combo.AWAY, 1),),
    "guard low": ((combo.DOWN_AWAY, 1),),
    "crouch": ((combo.DOWN, 1),),
    "up": ((combo.UP, 1),),
    "jump toward": ((UP_TOWARD, 1),),
    "jump away": ((UP_AWAY, 1),),
    "light": ((combo.LIGHT, 1),),
    "heavy": ((combo.HEAVY, 1),),
    "crouch light": ((CROUCH_LIGHT, 1),),
    "sweep": ((combo.SWEEP, 1),),
    "throw": ((combo.TOWARD_HEAVY, 1),),
    "throw back": ((AWAY_HEAVY, 1),),
    "wave": ((combo.DOWN, 3), (combo.TOWARD, 3), (combo.TOWARD_LIGHT, 2)),
    "rising": ((combo.TOWARD, 3), (combo.DOWN, 3), (combo.TOWARD_HEAVY, 2)),
    "jump in, heavy": ((UP_TOWARD, 4), (combo.TOWARD, 18), (combo.HEAVY, 2)),
    "jump in, light": ((UP_TOWARD, 4), (combo.TOWARD, 18), (combo.LIGHT, 2)),
    "rise and kick": ((combo.UP, 4), (combo.NEUTRAL, 10), (combo.HEAVY, 2)),
}
"""Steps of (combo, frames); once begun they are carried out."""
Line = tuple[int, int, int, int]
Lines = tuple[Line, ...]


def line(near: int, far: int, when: str, action: str) -> Line:
    """A line from its words."""
    return near, far, WHEN.index(when), tuple(ACTIONS).index(action)


def words(lines: Lines) -> str:
    """A script as a person reads it."""
    said = []
    for near, far, when, action in lines:
        places = "" if (near, far) == (0, FAR) else f" at {near} to {min(far, 136)}"
        said.append(f"{WHEN[when]}{places}: {tuple(ACTIONS)[action]}")
    return "; ".join(said) or "nothing"


def steps(skip: int) -> tuple[np.ndarray, np.ndarray]:
    """Every action's combos (A, S) and how many of them there are (A,); a part counts as one."""
    each = [[c for c, frames in s for _ in range(-(-frames // skip))] for s in ACTIONS.values()]
    table = np.zeros((len(each), max(map(len, each))), np.int64)
    for row, combos in zip(table, each, strict=True):
        row[: len(combos)] = combos
    return table, np.array([len(combos) for combos in each])


@njit(cache=True)
def holds(when, s):
    """Whether a condition holds for one seat's signals (24,) uint8."""
    state = s[HIS_STATE]
    strikes = s[HIS_STARTUP] > 0 or s[HIS_ACTIVE] > 0
    if when < 7:
        if when == 0:
            return True
        if when == 1:
            return s[HIS_Y] > 0
        if when == 2:
            return s[HIS_STARTUP] > 0
        if when == 3:
            return s[HIS_ACTIVE] > 0
        if when == 6:
            return strikes
        return s[HIS_RECOVERY] > 0 or (when == 5 and s[HIS_Y] > 0)
    if when == 7:
        return state == 6 or state == 7
    if when == 8:
        return state == 8 or state == 9 or state == 13
    if when == 9:
        return 0 < s[HIS_WAVE] < 60
    if when == 10:
        return state < 3
    if when == 11 or when == 12:
        return state == (1 if when == 11 else 3)
    if when == 13 or when == 14:
        return (s[HP_LEAD] > HP_MAX) == (when == 13)
    return s[OWN_STATE] == 6 or s[OWN_STATE] == 7


@njit(cache=True)
def chosen(lines, s):
    """The action of the first of lines (L, 4) that holds, 0 if none does."""
    for n in range(lines.shape[0]):
        near, far, when, action = lines[n]
        if near <= s[DISTANCE] < far and holds(when, s):
            return action
    return 0
