"""Varied beginnings of episodes: some frames of one held input before the first observation."""

from __future__ import annotations

from collections.abc import Callable

from numba import njit

from nclone.sim import state as st
from nclone.sim.advance import advance_frame, reset_world, source_stamp


@njit(error_model="numpy")
def _warm_up(tables, arrays, which, frames, hor, jump):
    """Hold an input for some frames in the worlds listed in `which`, which were just reset.

    frames, hor, jump [M] int64. A world that ends on the way starts from its level's beginning
    instead. The frame counter and events are cleared: the episode begins afterwards.
    """
    for m in range(which.size):
        w = which[m]
        world = arrays.worlds[w]
        level = tables.levels[world.level]
        for _ in range(frames[m]):
            advance_frame(
                level,
                world,
                tables.segments,
                tables.things,
                tables.doorways,
                tables.lists,
                arrays.entities,
                arrays.movers,
                arrays.doors,
                w,
                hor[m],
                jump[m],
            )
            if world.state >= st.DEAD:
                reset_world(tables, arrays, w)
                break
        world.frame = 0
        world.events &= st.SWITCH_HIT | st.DOOR_OPENED


def _build_kernel(stamp: int) -> Callable[..., None]:
    """The kernel that Python calls; `stamp` becomes a part of its cache key."""

    @njit(cache=True, error_model="numpy")
    def warm_up(tables, arrays, which, frames, hor, jump):
        """As `_warm_up`."""
        if stamp >= 0:
            _warm_up(tables, arrays, which, frames, hor, jump)

    return warm_up


warm_up = _build_kernel(source_stamp())
"""`_warm_up`, compiled once per version of the simulator."""
