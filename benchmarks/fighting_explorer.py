"""A walker of Roam that remembers what it has seen and goes to the nearest tile that is new.

The script beside random play in fighting_cartridges.py: breadth-first over a map of its own, which
it draws from the seven by seven tiles around it. It knows the features of the profile, no more.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import numpy as np

from fighting.cartridge.reading import load_profile

if TYPE_CHECKING:
    from frugal_rl.run.evaluate import Rows

NAMES = load_profile("roam").feature_names
AROUND, X, Y, KEYS, PLACES = (NAMES.index(n) for n in ("around_0", "x", "y", "keys", "places"))
ROWS, COLUMNS, REACH = 128, 256, 3
CLOSED, TRODDEN, DOOR, NEW = range(4)
CODES = {-1.0: CLOSED, -0.5: DOOR, 0.0: TRODDEN, 1.0: NEW, 2.0: NEW}
"""Values of `around`; what was never seen is closed."""
STEPS = (1, -1, -COLUMNS, COLUMNS)
"""Right, left, up, down: the profile's actions, as places of a map in one row."""


class Walker:
    """One walker: `known` holds a code for each of 128 * 256 tiles, row by row."""

    def __init__(self) -> None:
        self.known = bytearray(ROWS * COLUMNS)
        self.path: list[int] = []

    def choose(self, seen: np.ndarray) -> int:
        """Features [F] -> action."""
        if round(seen[PLACES] * 32768) == 1:  # a new episode
            self.known, self.path = bytearray(len(self.known)), []
        x, y = round(seen[X] * 255), round(seen[Y] * 127)
        self.note(x, y, seen[AROUND : AROUND + 49].tolist())
        if not self.path:
            self.path = self.way(y * COLUMNS + x, bool(seen[KEYS]))
        return self.path.pop() if self.path else 0

    def note(self, x: int, y: int, around: list[float]) -> None:
        """Enters the tiles around into the map."""
        values = iter(around)
        for row in range(y - REACH, y + REACH + 1):
            for column in range(x - REACH, x + REACH + 1):
                self.known[row % ROWS * COLUMNS + column % COLUMNS] = CODES[next(values)]

    def way(self, start: int, key: bool) -> list[int]:
        """The actions to the nearest new tile, or door to a key that is held, the last first."""
        known, came, todo = self.known, bytearray(len(self.known)), deque([start])
        goals = (NEW, DOOR) if key else (NEW,)
        came[start] = len(STEPS) + 1
        while todo:
            place = todo.popleft()
            for action, step in enumerate(STEPS, start=1):
                beside = (place + step) % len(known)
                if came[beside] or not known[beside]:
                    continue
                if known[beside] in goals:
                    came[beside] = action
                    return _back(beside, start, came)
                if known[beside] == TRODDEN:
                    came[beside] = action
                    todo.append(beside)
        return []


def _back(place: int, start: int, came: bytearray) -> list[int]:
    """The actions that led from `start` to `place`, the last first."""
    actions = []
    while place != start:
        actions.append(came[place] - 1)
        place = (place - STEPS[actions[-1]]) % len(came)
    return actions


class Explorer:
    """A walker for each environment; all begin anew where only one place was trodden."""

    name = "the explorer"

    def __init__(self) -> None:
        self.walkers: list[Walker] = []

    def __call__(self, rows: Rows) -> np.ndarray:
        """Rows in policy form [N, ...] -> actions [N]."""
        features = rows["features"]
        if len(self.walkers) != len(features):
            self.walkers = [Walker() for _ in features]
        chosen = [w.choose(seen) for w, seen in zip(self.walkers, features, strict=True)]
        return np.array(chosen)
