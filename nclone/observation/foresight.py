"""What each action would lead to: held for a while in a copy of the world, which is simulated.

A mine that leaves a gap of a few px is a question of which input still gets through, and the
simulator answers it exactly. The copies are scratch; the worlds themselves are only read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from frugal_rl.observation.spec import Stored
from nclone.graph.goals import EXIT_DOOR, EXIT_SWITCH
from nclone.graph.paths import path_distances
from nclone.observation.observe import ACTIONS
from nclone.sim import state as st

if TYPE_CHECKING:
    from nclone.graph.distance import DistanceTables
    from nclone.sim.world import Arrays, World

HELD_FRAMES = 24
REACH_PX = 96.0
"""Unit of what is covered: a little more than the fastest ninja covers in `HELD_FRAMES`."""
HELD, TAPPED = 0, 1
"""Each action is held all the time, or for the first frames only and then let go."""
WAYS = 2
TAPPED_FRAMES = 4
VALUES = 5
FORESIGHT_FIELD = Stored(
    "foresight",
    (WAYS * ACTIONS, VALUES),
    np.float32,
    -1,
    1,
    f"one row per action, held for {HELD_FRAMES} frames, then one per action that is let go after "
    f"{TAPPED_FRAMES}: share of the frames survived, dx, dy and path gained / {REACH_PX:g} px, "
    "1 if the exit's switch or door is reached",
)


class Foresight:
    """Looks ahead for `num_worlds` worlds, `WAYS * ACTIONS` copies of each."""

    def __init__(self, world: World, num_worlds: int) -> None:
        self.world = world
        count = num_worlds * WAYS * ACTIONS
        rows = (np.zeros((count, *a.shape[1:]), a.dtype) for a in world.arrays)
        self.copies = world.arrays._make(rows)
        self.executed = np.zeros((2, count), np.int32)
        held = np.tile(np.arange(ACTIONS, dtype=np.uint8), (2, num_worlds, WAYS, 1))
        held[1, :, TAPPED] = 0
        self.held = held.reshape(2, count)
        self.before, self.after = np.zeros(num_worlds), np.zeros(count)

    @property
    def nbytes(self) -> int:
        """Bytes of the copies and of what is noted about them."""
        noted = (self.executed, self.held, self.before, self.after)
        return sum(array.nbytes for array in (*self.copies, *noted))

    def look(
        self,
        which: np.ndarray,
        distances: DistanceTables,
        entry: np.ndarray,
        switch_hit: np.ndarray,
        out: np.ndarray,
    ) -> None:
        """Write the rows [M, WAYS * ACTIONS, VALUES] float32 of the worlds listed in `which` [M].

        entry [N] int64 and switch_hit [N] bool: each world's distance table, and its objective.
        """
        of = np.repeat(which, WAYS * ACTIONS)
        copies = self._copied(of)
        frames, events = self._played(copies)
        worlds, begun, count = copies.worlds, self.world.worlds, len(of)
        goal = np.where(switch_hit, EXIT_DOOR, EXIT_SWITCH)
        before, after = self.before[: len(which)], self.after[:count]
        for at, x, y, far in (
            (which, begun["x"][which], begun["y"][which], before),
            (of, worlds["x"], worlds["y"], after),
        ):
            path_distances(distances.hops, distances.goal_row, entry[at], goal[at], x, y, far)
        before = np.repeat(before, WAYS * ACTIONS)
        reached = (worlds["state"] == st.WON) | ((events & st.SWITCH_HIT != 0) & ~switch_hit[of])
        known = np.isfinite(before) & np.isfinite(after)
        gained = np.zeros(count)
        np.subtract(before, after, out=gained, where=known)
        rows = out.reshape(count, VALUES)
        rows[:, 0] = np.where(worlds["state"] == st.DEAD, frames / HELD_FRAMES, 1.0)
        rows[:, 1] = np.clip((worlds["x"] - begun["x"][of]) / REACH_PX, -1, 1)
        rows[:, 2] = np.clip((worlds["y"] - begun["y"][of]) / REACH_PX, -1, 1)
        rows[:, 3] = np.where(reached, 1.0, np.clip(gained / REACH_PX, -1, 1))
        rows[:, 4] = reached

    def _copied(self, of: np.ndarray) -> Arrays:
        """The first copies, made equal to the worlds listed in `of`."""
        sources = self.world.arrays
        for name, source in sources._asdict().items():
            copy = getattr(self.copies, name)
            if copy.shape[1:] != source.shape[1:]:
                copy = np.zeros((len(copy), *source.shape[1:]), source.dtype)
                self.copies = self.copies._replace(**{name: copy})
        copies = self.copies._make(copy[: len(of)] for copy in self.copies)
        for source, copy in zip(sources, copies, strict=True):
            if source.size:
                np.take(_words(source), of, axis=0, out=_words(copy), mode="clip")
        return copies

    def _played(self, copies: Arrays) -> tuple[np.ndarray, np.ndarray]:
        """Frames that were executed and all that happened in them, after both parts."""
        count = len(copies.worlds)
        first, rest = self.executed[:, :count]
        self.world.play(copies, self.held[:1, :count], TAPPED_FRAMES, st.STOP, first)
        events = copies.worlds["events"].copy()
        self.world.play(copies, self.held[1:, :count], HELD_FRAMES - TAPPED_FRAMES, st.STOP, rest)
        return first + rest, events | copies.worlds["events"]


def _words(array: np.ndarray) -> np.ndarray:
    """Records as words, which are copied whole."""
    return array.reshape(len(array), -1).view(np.uint64)
