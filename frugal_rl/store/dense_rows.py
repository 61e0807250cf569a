"""Small rows of bytes in a ring, with the interface of `FrameChain` and no differences."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np

from frugal_rl.memory.choices import RolloutLocation
from frugal_rl.store.region import Region
from frugal_rl.store.side_table import SideTable


class Rows(Protocol):
    """The newest rows of each of N environments, named by their absolute step."""

    count: int
    append: Callable[[np.ndarray], int]
    append_beside: Callable[[int, np.ndarray], None]
    has_beside: Callable[[np.ndarray, np.ndarray], np.ndarray]
    reset: Callable[[], None]
    parts: Callable[[], dict[str, int]]
    state: Callable[[], dict[str, Any]]
    load: Callable[[Mapping[str, Any]], None]

    def gather(
        self,
        first: np.ndarray,
        last: np.ndarray,
        n: np.ndarray,
        out: np.ndarray,
        place: np.ndarray,
        beside: np.ndarray,
    ) -> None:
        """Rows first[b] to last[b], and the one beside, into out[b, place[b]:]."""


class DenseRows:
    """Rows as they are.

    values      [steps, N, row_bytes] uint8   a ring by absolute step
    has_sides   [steps, N] bool               whether a row is kept beside this one
    """

    def __init__(
        self,
        row_bytes: int,
        steps: int,
        num_envs: int,
        location: RolloutLocation = RolloutLocation.ram,
        folder: str = "",
    ) -> None:
        self.row_bytes, self.steps, self.num_envs = row_bytes, steps, num_envs
        self.room = Region(steps * num_envs * row_bytes, location, folder)
        values = self.room.view(np.uint8)[: steps * num_envs * row_bytes]
        self.values = values.reshape(steps, num_envs, row_bytes)
        self.has_sides = np.zeros((steps, num_envs), np.bool_)
        self.reset()

    def reset(self) -> None:
        """Hold no row."""
        self.count = 0
        self.sides = SideTable(
            self.num_envs, (self.row_bytes,), np.uint8, self.steps * self.num_envs
        )

    def append(self, rows: np.ndarray) -> int:
        """Add one row per environment, [N, row_bytes] uint8; returns its step."""
        step, slot = self.count, self.count % self.steps
        size = self.num_envs * self.row_bytes
        self.room.reserve(slot * size, (slot + 1) * size)
        self.values[slot] = rows
        self.has_sides[slot] = False
        if step == slot:
            self.room.touch(slot * size, (slot + 1) * size)
        self.count += 1
        if len(self.sides):
            self.sides.drop_before(self.count - self.steps)
        return step

    def append_beside(self, n: int, row: np.ndarray) -> None:
        """Keep one more row beside the newest one of environment n."""
        self.sides.append(self.count - 1, n, row)
        self.has_sides[(self.count - 1) % self.steps, n] = True

    def has_beside(self, steps: np.ndarray, n: np.ndarray) -> np.ndarray:
        """[B] bool, whether a row is kept beside each of these."""
        found: np.ndarray = self.has_sides[steps % self.steps, n]
        return found

    def gather(
        self,
        first: np.ndarray,
        last: np.ndarray,
        n: np.ndarray,
        out: np.ndarray,
        place: np.ndarray,
        beside: np.ndarray,
    ) -> None:
        """Rows first[b] to last[b] into out[b, place[b]:], and the one beside last[b] behind."""
        begin = first - place
        for j in range(out.shape[1]):
            step = begin + j
            shown = np.flatnonzero((step >= first) & (step <= last))
            out[shown, j] = self.values[step[shown] % self.steps, n[shown]]
        if beside.any():
            at = np.flatnonzero(beside)
            out[at, last[at] - begin[at] + 1] = self.sides.find(last[at], n[at])

    def state(self) -> dict[str, Any]:
        """What is held, for an exact resume."""
        return {
            "count": self.count,
            "has_sides": self.has_sides.copy(),
            "room": self.room.state(),
            "sides": self.sides.state(),
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Continue from `state()`.

        Raises:
            DataError: a row that is said to have one beside it has none.
        """
        self.count = int(state["count"])
        self.has_sides[...] = state["has_sides"]
        self.room.load(state["room"])
        self.sides.load(state["sides"])
        self.sides.check_held(self.has_sides, self.count)

    @property
    def nbytes(self) -> int:
        """Bytes that hold memory."""
        return sum(self.parts().values())

    def parts(self) -> dict[str, int]:
        """Bytes by name: rows, tables."""
        return {
            "rows": self.room.nbytes,
            "tables": int(self.has_sides.nbytes) + self.sides.nbytes,
        }
