"""What a few rows of a ring have besides, found by step and environment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from frugal_rl.errors import DataError


class SideTable:
    """Values [*shape] for some (step, environment) pairs, appended and dropped in order of steps.

    keys    [room] int64   step * N + environment, ascending
    values  [room, *shape]
    """

    def __init__(self, num_envs: int, shape: tuple[int, ...], dtype: Any) -> None:
        self.num_envs = num_envs
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
        held = slice(self.begin, self.end)
        room = len(self.keys)
        room = room + room // 4 + 1 if 2 * len(self) >= room else room
        for name in ("keys", "values"):
            old = getattr(self, name)
            new = np.zeros((room, *old.shape[1:]), old.dtype)
            new[: len(self)] = old[held]
            setattr(self, name, new)
        self.begin, self.end = 0, len(self)

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

    def check_held(self, marked: np.ndarray, count: int) -> None:
        """Refuse a table that lacks a value which a ring [T, N] of marks says is there.

        Raises:
            DataError: it does.
        """
        steps = np.arange(max(0, count - len(marked)), count) if len(marked) else np.zeros(0, int)
        at, n = np.nonzero(marked[steps % max(1, len(marked))])
        if not np.isin(steps[at] * self.num_envs + n, self.keys).all():
            raise DataError("a table of a replay lacks what its rows say it holds.")

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return int(self.keys.nbytes + self.values.nbytes)
