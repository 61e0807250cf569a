"""What a few rows of a ring have besides, found by step and environment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from frugal_rl.errors import DataError

NO_KEY = np.iinfo(np.int64).min


class SideTable:
    """Values [*shape] for some (step, environment) pairs, appended and dropped in order of steps.

    keys    [room] int64   step * N + environment, ascending
    values  [room, *shape]

    `most` values are held at once, if that is known: there is little more room than for those.
    """

    def __init__(
        self, num_envs: int, shape: tuple[int, ...], dtype: Any, most: int | None = None
    ) -> None:
        self.num_envs = num_envs
        self.most_room = most if most is None else most + most // 32 + 1
        self.keys = np.zeros(0, np.int64)
        self.values = np.zeros((0, *shape), dtype)
        self.begin = self.end = 0

    def __len__(self) -> int:
        return self.end - self.begin

    def append(self, step: int, n: int, value: Any) -> None:
        """Add one value; steps never fall, and environments rise within a step."""
        if self.end == len(self.keys):
            self._make_room()
        self.keys[self.end] = step * self.num_envs + n
        self.values[self.end] = value
        self.end += 1

    def _make_room(self) -> None:
        """Move what is held to the front; take a quarter more room if half of it is held."""
        room = self._room()
        for name in ("keys", "values"):
            old = getattr(self, name)
            if room == len(old):
                move_to_front(old, self.begin, self.end)
                continue
            new = np.zeros((room, *old.shape[1:]), old.dtype)
            new[: len(self)] = old[self.begin : self.end]
            setattr(self, name, new)
        self.begin, self.end = 0, len(self)

    def _room(self) -> int:
        """Values that there is room for once one more comes."""
        room = len(self.keys)
        if 2 * len(self) < room:
            return room
        wider = room + room // 4 + 1
        return wider if self.most_room is None else max(len(self) + 1, min(wider, self.most_room))

    def holds(self, steps: np.ndarray, n: np.ndarray) -> np.ndarray:
        """[B] bool, which of these pairs have a value."""
        held, wanted = self.keys[self.begin : self.end], np.asarray(steps) * self.num_envs + n
        at = np.searchsorted(held, wanted)
        found: np.ndarray = np.append(held, NO_KEY)[at] == wanted
        return found

    def forget(self, step: int, n: int) -> None:
        """Drop one value that is held, among the newest."""
        held = self.keys[self.begin : self.end]
        at = self.begin + int(np.searchsorted(held, step * self.num_envs + n))
        for kept in (self.keys, self.values):
            kept[at : self.end - 1] = kept[at + 1 : self.end]
        self.end -= 1

    def find(self, steps: np.ndarray, n: np.ndarray) -> np.ndarray:
        """Values [B, *shape] of pairs that are held."""
        wanted = np.asarray(steps) * self.num_envs + n
        at = self.begin + np.searchsorted(self.keys[self.begin : self.end], wanted)
        found: np.ndarray = self.values[at]
        return found

    def drop_before(self, step: int) -> None:
        """Forget the values of all steps before this one."""
        if self.begin == self.end or self.keys[self.begin] >= step * self.num_envs:
            return
        held = self.keys[self.begin : self.end]
        self.begin += int(np.searchsorted(held, step * self.num_envs))

    def state(self) -> dict[str, Any]:
        """What is held."""
        held = slice(self.begin, self.end)
        return {"keys": self.keys[held].copy(), "values": self.values[held].copy()}

    def load(self, state: Mapping[str, Any]) -> None:
        """Hold what `state()` told."""
        keys, values = np.asarray(state["keys"]), np.asarray(state["values"])
        if values.shape != (len(keys), *self.values.shape[1:]) or values.dtype != self.values.dtype:
            raise DataError(f"a table of a replay holds {values.dtype} {list(values.shape)}.")
        self.keys, self.values = keys.astype(np.int64), values.copy()
        self.begin, self.end = 0, len(keys)
        if (np.diff(self.keys) <= 0).any():
            raise DataError("a table of a replay is not in order.")

    def check_held(self, marked: np.ndarray, count: int, next_in: SideTable | None = None) -> None:
        """Refuse a table that lacks a value which a ring [T, N] of marks says is there.

        Where it lies in the table `next_in` under the step after, it is not missed.

        Raises:
            DataError: it does.
        """
        steps = np.arange(max(0, count - len(marked)), count) if len(marked) else np.zeros(0, int)
        at, n = np.nonzero(marked[steps % max(1, len(marked))])
        held = self.holds(steps[at], n)
        if next_in is not None:
            held |= next_in.holds(steps[at] + 1, n)
        if not held.all():
            raise DataError("a table of a replay lacks what its rows say it holds.")

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return int(self.keys.nbytes + self.values.nbytes)


def move_to_front(rows: np.ndarray, begin: int, end: int) -> None:
    """Rows [begin, end) to the front of their array, in pieces that need no copy in between."""
    for first in range(begin, end, max(begin, 1)):
        piece = rows[first : min(first + begin, end)]
        rows[first - begin : first - begin + len(piece)] = piece
