"""What each action would lead to: held for a while in a copy of the world, which is simulated.

A mine that leaves a gap of a few px is a question of which input still gets through, and the
simulator answers it exactly. The copies are scratch; the worlds themselves are only read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from frugal_rl.observation.spec import Stored
from nclone.graph.ahead import objective_rows, row_distances
from nclone.observation.observe import ACTIONS
from nclone.sim import state as st

if TYPE_CHECKING:
    from nclone.graph.routes import Doors, Reach
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
    "1 if the exit's switch or door or a locked door's switch is reached; the path is that of "
    "`path_ahead`",
)


class Followed(NamedTuple):
    """What decides which path N worlds follow; see `nclone.graph.routes.write_routes`.

    level and entry [N] int64: numbers of `DistanceTables`; hit [N] bool: the exit switch was hit
    """

    reach: Reach
    doors: Doors
    level: np.ndarray
    entry: np.ndarray
    hit: np.ndarray


def followed_rows(world: World, paths: Followed, which: np.ndarray) -> np.ndarray:
    """[M] int64 rows of the hop table that the paths of the worlds listed follow, -1 for none."""
    rows, x, y = np.zeros(len(which), np.int64), world.worlds["x"], world.worlds["y"]
    objective_rows(*paths, world.entity_active, x, y, which, rows)
    return rows


def path_left(world: World, paths: Followed, which: np.ndarray) -> np.ndarray:
    """[M] float64 px that are left of the paths of the worlds listed; inf where there is none."""
    rows, left = followed_rows(world, paths, which), np.zeros(len(which))
    x, y = world.worlds["x"][which], world.worlds["y"][which]
    row_distances(paths.reach.hops, rows, x, y, left)
    return left


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
        self.before, self.after = np.zeros(count), np.zeros(count)

    @property
    def nbytes(self) -> int:
        """Bytes of the copies and of what is noted about them."""
        noted = (self.executed, self.held, self.before, self.after)
        return sum(array.nbytes for array in (*self.copies, *noted))

    def look(self, which: np.ndarray, paths: Followed, out: np.ndarray) -> None:
        """Write rows [M, WAYS * ACTIONS, VALUES] float32 of the worlds listed in `which` [M]."""
        of = np.repeat(which, WAYS * ACTIONS)
        copies = self._copied(of)
        frames, events = self._played(copies)
        worlds, begun, count = copies.worlds, self.world.worlds, len(of)
        gained = self._gained(which, of, worlds, paths)
        reached = (worlds["state"] == st.WON) | ((events & st.SWITCH_HIT != 0) & ~paths.hit[of])
        reached |= self._switched(of, copies, paths)
        rows = out.reshape(count, VALUES)
        rows[:, 0] = np.where(worlds["state"] == st.DEAD, frames / HELD_FRAMES, 1.0)
        rows[:, 1] = np.clip((worlds["x"] - begun["x"][of]) / REACH_PX, -1, 1)
        rows[:, 2] = np.clip((worlds["y"] - begun["y"][of]) / REACH_PX, -1, 1)
        rows[:, 3] = np.where(reached, 1.0, np.clip(gained / REACH_PX, -1, 1))
        rows[:, 4] = reached

    def _gained(
        self, which: np.ndarray, of: np.ndarray, worlds: np.ndarray, paths: Followed
    ) -> np.ndarray:
        """[copies] float64 px by which each is nearer to what its world's path leads to."""
        begun, count = self.world.worlds, len(of)
        rows = np.repeat(followed_rows(self.world, paths, which), WAYS * ACTIONS)
        before, after = self.before[:count], self.after[:count]
        row_distances(paths.reach.hops, rows, begun["x"][of], begun["y"][of], before)
        row_distances(paths.reach.hops, rows, worlds["x"], worlds["y"], after)
        known = np.isfinite(before) & np.isfinite(after)
        return np.subtract(before, after, out=np.zeros(count), where=known)

    def _switched(self, of: np.ndarray, copies: Arrays, paths: Followed) -> np.ndarray:
        """[copies] bool, a locked door's switch was collected."""
        level = paths.level[of]
        most = int(paths.doors.count[level].max(initial=0))
        if not most:
            return np.zeros(len(of), np.bool_)
        switches = paths.doors.entity[level, :most]
        real = np.arange(most) < paths.doors.count[level][:, None]
        before = self.world.entity_active[of[:, None], switches]
        after = np.take_along_axis(copies.entities["active"], switches, axis=1)
        taken: np.ndarray = (real & (before != 0) & (after == 0)).any(axis=1)
        return taken

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
