"""Many worlds side by side: their arrays, reset, step, snapshots."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numba
import numpy as np
from numpy.typing import ArrayLike, NDArray

from frugal_rl.errors import ConfigError
from frugal_rl.vec_env.shares import Shares
from nclone.sim import state as st
from nclone.sim.advance import advance_worlds, reset_worlds
from nclone.sim.pace import Pace
from nclone.sim.table import LevelTable

if TYPE_CHECKING:
    from nclone.levels.level import Level


MOST_THREADS: int = numba.config.NUMBA_NUM_THREADS
PAUSE = 6
"""In place of an action: the world stands still."""
WORTH_A_THREAD = 64
"""Worlds whose step takes as long as waking a thread."""


class Arrays(NamedTuple):
    """All that changes about some worlds, first axis = worlds; a copy of it is a snapshot."""

    worlds: NDArray[np.void]
    entities: NDArray[np.void]
    movers: NDArray[np.void]
    doors: NDArray[np.void]


def action_of(hor: ArrayLike, jump: ArrayLike) -> NDArray[np.uint8]:
    """Horizontal -1, 0, 1 and jump 0, 1 -> action 0 none, 1 left, 2 right, 3..5 with jump."""
    h = np.asarray(hor)
    side = np.where(h < 0, 1, np.where(h > 0, 2, 0))
    return (side + 3 * (np.asarray(jump) != 0)).astype(np.uint8)


def held_actions(actions: ArrayLike, worlds: int) -> NDArray[np.uint8]:
    """[worlds] or [T, worlds] actions 0..5 -> [T, worlds] uint8.

    Raises:
        ValueError: another shape, or another value.
    """
    held = np.atleast_2d(np.asarray(actions))
    if held.dtype != np.uint8:
        held = held.astype(np.uint8)
    if held.shape[1] != worlds or held.max(initial=0) > 5:
        raise ValueError(
            f"Actions of shape {held.shape} with values up to {held.max(initial=0)}; "
            f"pass [{worlds}] or [T, {worlds}] with values 0..5."
        )
    return held


def level_ids(levels: ArrayLike, which: NDArray[np.int64], count: int) -> NDArray[np.int32]:
    """One level id, or one for each world in `which` -> that many ids of a table of `count`.

    Raises:
        IndexError: an id that the table does not have.
    """
    ids = np.broadcast_to(np.asarray(levels, dtype=np.int32), which.shape)
    if len(ids) and not 0 <= ids.min() <= ids.max() < count:
        raise IndexError(f"Level ids {ids.min()}..{ids.max()} do not fit a table of {count}.")
    return ids


class World:
    """N worlds on any mix of levels, advanced by k frames in one kernel call.

    `worlds` [N] holds the ninja and the entity grid, `entities` [N, E], `movers` [N, M] and
    `doors` [N, D] what changes about entities, padded to the largest level in use. All properties
    are views of these arrays; take them anew after `reset`, which may let the arrays grow.
    """

    def __init__(
        self,
        levels: Sequence[Level] | LevelTable,
        level_of_world: ArrayLike | None = None,
        threads: int | None = None,
        begun: bool = True,
    ) -> None:
        """Build the worlds and reset them.

        Args:
            levels: the levels, or a table that may be shared with other worlds.
            level_of_world: [N] level id of each world; by default one world per level.
            threads: most threads to use; None means Numba's number, 1 never starts a thread.
            begun: False leaves the reset to whoever plays them; until then they are all zeros.

        Raises:
            ConfigError: more threads than Numba starts in this process.
        """
        self.table = levels if isinstance(levels, LevelTable) else LevelTable(levels)
        if level_of_world is None:
            given = levels.level if isinstance(levels, LevelTable) else levels
            level_of_world = [self.table.id_of(level) for level in given]
        ids = np.asarray(level_of_world, dtype=np.int32).ravel()
        self.num_worlds = len(ids)
        self.threads = min(threads or MOST_THREADS, max(self.num_worlds, 1))
        if self.threads > MOST_THREADS:
            raise ConfigError(
                f"World(threads={threads}): Numba starts at most {MOST_THREADS} here, as "
                "NUMBA_NUM_THREADS or the number of cores says. Give fewer, or start Python with "
                f"NUMBA_NUM_THREADS={self.threads}."
            )
        self.pace, self.shares = Pace(self.threads), Shares(self.threads, WORTH_A_THREAD)
        self.worlds = np.zeros(self.num_worlds, st.WORLD)
        self.entities = np.zeros((self.num_worlds, 0), st.ENTITY)
        self.movers = np.zeros((self.num_worlds, 0), st.MOVER)
        self.doors = np.zeros((self.num_worlds, 0), st.DOOR)
        self.executed = np.zeros(self.num_worlds, np.int32)
        if begun:
            self.reset(levels=ids)

    def reset(self, mask: ArrayLike | None = None, levels: ArrayLike | None = None) -> None:
        """Start worlds anew.

        Args:
            mask: [N] bool, or indices of worlds; None means all.
            levels: level id of each world that is reset; None keeps their levels. Levels may
                have been added to `table` since.
        """
        which = self.indices(mask)
        if levels is not None:
            ids = level_ids(levels, which, len(self.table))
            self.worlds["level"][which] = ids
            self.make_room(ids)
        reset_worlds(self.table.tables, self.arrays, which)

    def step(
        self,
        actions: ArrayLike,
        frames: int = 4,
        on_end: int = st.STOP,
    ) -> NDArray[np.int32]:
        """Hold actions for some frames each, in all worlds.

        Args:
            actions: [N] or [T, N] integers 0..5.
            frames: frames per action.
            on_end: `STOP` after the frame of a death or a win, `RUN_ON` as the game does, or
                `RESTART` the level.

        Returns:
            [N] frames executed; a reused array. Worlds that had ended before stay as they are.
        """
        held = held_actions(actions, self.num_worlds)
        if self.threads == 1:
            numba.set_num_threads(1)  # its own number is that of the cores
            self.play(self.arrays, held, frames, on_end, self.executed, 1)
            return self.executed
        threads = self.pace.begin()
        numba.set_num_threads(threads)  # for what is observed afterwards as well
        self.play(self.arrays, held, frames, on_end, self.executed, threads)
        self.pace.end()
        return self.executed

    def warm_up(self, which: ArrayLike, actions: ArrayLike, frames: ArrayLike) -> None:
        """Hold an action for some frames in worlds that were just reset: varied beginnings.

        A world that ends on the way starts from its level's beginning instead. The frame counter
        and events are cleared, but for switches and doors: the episode begins afterwards.

        Args:
            which: indices of M worlds; the others stay as they are.
            actions: [M] integers 0..5.
            frames: [M] for how many frames.
        """
        at, count = self.indices(which), np.asarray(frames)
        if not count.any():
            return
        begun, times = self.snapshot(at), np.arange(count.max(initial=0))[:, None]
        held = np.where(times < count, actions, PAUSE).astype(np.uint8)
        self.play(begun, held, 1, st.STOP, np.zeros(len(at), np.int32))
        worlds = begun.worlds
        worlds["frame"] = 0
        worlds["events"] &= st.SWITCH_HIT | st.DOOR_OPENED
        self.restore(begun, at)
        ended = at[worlds["state"] >= st.DEAD]
        if len(ended):
            reset_worlds(self.table.tables, self.arrays, ended)

    def play(
        self,
        arrays: Arrays,
        held: NDArray[np.uint8],
        frames: int,
        on_end: int,
        executed: NDArray,
        threads: int | None = None,
    ) -> None:
        """Play any worlds of this table: these, or copies of them.

        Args:
            arrays: the worlds, which change.
            held: [T, worlds] uint8 actions, or `PAUSE`.
            frames: frames per action.
            on_end: as in `step`.
            executed: [worlds] int32 frames, overwritten.
            threads: None means as many as steps take.
        """
        tables, lively = self.table.tables, self.table.lively

        def play(first: int, end: int) -> None:
            advance_worlds(tables, arrays, held, frames, on_end, lively, executed, first, end)

        self.shares.each(len(executed), play, threads or self.pace.threads)

    def share(self, count: int, job: Callable[[int, int], object]) -> None:
        """Calls `job(first, end)` for shares of `count` worlds, on as many threads as steps take.

        The job releases the interpreter's lock, as kernels with `nogil` do.
        """
        self.shares.each(count, job, self.pace.threads)

    def snapshot(self, which: ArrayLike | None = None) -> Arrays:
        """Copy of all worlds, or of those given by mask or indices."""
        at = self.indices(which)
        return Arrays(self.worlds[at], self.entities[at], self.movers[at], self.doors[at])

    def restore(self, snapshot: Arrays, which: ArrayLike | None = None) -> None:
        """Put a snapshot into all worlds, or into those given by mask or indices.

        A snapshot of one world may go to many. Level ids must mean the same table.
        """
        at = self.indices(which)
        self.make_room(snapshot.worlds["level"])
        for name in Arrays._fields:
            source, goal = getattr(snapshot, name), getattr(self, name)
            if name == "worlds":
                goal[at] = source
            else:
                goal[at, : source.shape[1]] = source

    @property
    def arrays(self) -> Arrays:
        """The arrays themselves, as kernels take them."""
        return Arrays(self.worlds, self.entities, self.movers, self.doors)

    @property
    def nbytes(self) -> int:
        """Bytes of all world arrays."""
        return sum(array.nbytes for array in self.arrays)

    @property
    def bytes_per_world(self) -> int:
        """Bytes that each further world costs."""
        return self.nbytes // max(self.num_worlds, 1)

    @property
    def level(self) -> NDArray[np.int32]:
        """[N] level id."""
        return self.worlds["level"]

    @property
    def position(self) -> NDArray[np.float64]:
        """[N, 2] x, y in px."""
        return self._pair("x")

    @property
    def velocity(self) -> NDArray[np.float64]:
        """[N, 2] in px per frame."""
        return self._pair("vx")

    @property
    def velocity_before(self) -> NDArray[np.float64]:
        """[N, 2] velocity at the start of the last frame."""
        return self._pair("vx_before")

    @property
    def floor_normal(self) -> NDArray[np.float64]:
        """[N, 2] unit normal of the last floor."""
        return self._pair("floor_x")

    @property
    def ceiling_normal(self) -> NDArray[np.float64]:
        """[N, 2] unit normal of the last ceiling."""
        return self._pair("ceiling_x")

    @property
    def state(self) -> NDArray[np.int8]:
        """[N] state 0..8 of the ninja (`nclone.sim.state`)."""
        return self.worlds["state"]

    @property
    def buffers(self) -> NDArray[np.int8]:
        """[N, 4] jump, floor, wall, launch-pad buffer; -1 = off."""
        return self._pair("jump_buffer", 4)

    @property
    def dead(self) -> NDArray[np.bool_]:
        """[N] the ninja is dead."""
        return self.worlds["state"] == st.DEAD

    @property
    def won(self) -> NDArray[np.bool_]:
        """[N] the level is completed."""
        return self.worlds["state"] == st.WON

    @property
    def ended(self) -> NDArray[np.bool_]:
        """[N] dead or completed."""
        return self.dead | self.won

    @property
    def death_cause(self) -> NDArray[np.int8]:
        """[N] 0 none, 1 mine, 2 impact, 3 hazard, 4 other."""
        return self.worlds["cause"]

    @property
    def events(self) -> NDArray[np.int32]:
        """[N] what happened in the last step, one bit each (`nclone.sim.state`)."""
        return self.worlds["events"]

    @property
    def frame(self) -> NDArray[np.int32]:
        """[N] frames since the reset."""
        return self.worlds["frame"]

    @property
    def gold(self) -> NDArray[np.int16]:
        """[N] gold collected."""
        return self.worlds["gold"]

    @property
    def door_closed(self) -> NDArray[np.int8]:
        """[N, D] 1 where a door's segment collides; rows as in `Level.doors`."""
        return self.doors["closed"]

    @property
    def entity_state(self) -> NDArray[np.int8]:
        """[N, E] state of each entity; rows as in `Level.entities`."""
        return self.entities["state"]

    @property
    def entity_active(self) -> NDArray[np.int8]:
        """[N, E] 1 while an entity is in play."""
        return self.entities["active"]

    def _pair(self, first: str, count: int = 2) -> NDArray:
        """[N, count] view of neighbouring fields of one type."""
        column = self.worlds[first]
        return np.lib.stride_tricks.as_strided(
            column, (self.num_worlds, count), (column.strides[0], column.itemsize)
        )

    def indices(self, which: ArrayLike | None) -> NDArray[np.int64]:
        """Numbers of the worlds that a [N] mask, or indices, or None for all, stand for."""
        if which is None:
            return np.arange(self.num_worlds)
        at = np.asarray(which)
        return np.nonzero(at)[0] if at.dtype == bool else np.atleast_1d(at).astype(np.int64)

    def make_room(self, ids: NDArray[np.integer]) -> None:
        """Widen the entity arrays to what the levels need."""
        for name, most in self.table.widest.items():
            array = getattr(self, name)
            if array.shape[1] >= most:
                continue  # as soon as a run goes on; looking at levels takes longer than a reset
            need = int(self.table.tables.levels[name][ids].max(initial=0))
            if need > array.shape[1]:
                wider = np.zeros((self.num_worlds, need), array.dtype)
                wider[:, : array.shape[1]] = array
                setattr(self, name, wider)
