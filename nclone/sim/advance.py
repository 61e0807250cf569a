"""The kernels that are called from Python: many worlds, many frames, one call."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from numba import njit, prange

from nclone.sim import state as st
from nclone.sim.compile import device, inlined
from nclone.sim.frame import advance_frame


@device
def reset_world(tables, arrays, w):
    """Put world w back to the start of its level: copies of the level's templates."""
    world = arrays.worlds[w]
    level = tables.levels[world.level]
    world.x = world.x_old = level.spawn_x
    world.y = world.y_old = level.spawn_y
    world.vx = world.vy = world.vx_old = world.vy_old = world.vx_before = world.vy_before = 0.0
    world.gravity = st.GRAVITY_FALLING
    world.drag = st.DRAG
    world.friction = st.FRICTION_GROUND
    world.floor_x = world.ceiling_x = world.launch_x = world.launch_y = 0.0
    world.floor_y = -1.0
    world.ceiling_y = 1.0
    world.clearance = 0.0
    world.frame = world.events = 0
    world.floor_contacts = world.ceiling_contacts = world.gold = 0
    world.mines_toggling = world.pads_touching = 0
    world.state = world.airborn = world.airborn_before = world.walled = world.wall_normal = 0
    world.hor = world.jump = world.jump_before = world.jump_time = 0
    world.jump_buffer = world.floor_buffer = world.wall_buffer = world.launch_buffer = -1
    world.crushable = world.cause = 0
    for e in range(level.entities):
        arrays.entities[w, e] = tables.entities[level.first_entity + e]
    for m in range(level.movers):
        arrays.movers[w, m] = tables.movers[level.first_mover + m]
    for d in range(level.doors):
        arrays.doors[w, d] = tables.doors[level.first_door + d]
    if level.entities > 0:
        for c in range(44):
            world.crowd[c] = level.crowd[c]
        for c in range(st.CELLS):
            world.head[c] = level.head[c]


@inlined
def advance_world(tables, arrays, actions, frames, on_end, w):
    """Play actions[:, w] for `frames` frames each; the number of frames that were executed."""
    world = arrays.worlds[w]
    level = tables.levels[world.level]
    world.events = 0
    executed = 0
    for t in range(actions.shape[0]):
        action = actions[t, w]
        j = 1 if action > 2 else 0
        side = action - 3 * j
        h = 0 if side == 0 else (-1 if side == 1 else 1)
        for _ in range(frames):
            if on_end != st.RUN_ON and (world.state == st.DEAD or world.state == st.WON):
                if on_end == st.STOP:
                    return executed
                reset_world(tables, arrays, w)
                world.restarts += 1
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
                h,
                j,
            )
            executed += 1
    return executed


def source_stamp(*more: Path) -> int:
    """A number that changes with any source file of the simulator, and with the files given.

    Numba's cache looks at the time stamp of one file only. Kernels that contain the simulator
    capture this number and are the only cached ones, so that an edit or an update never runs an
    old kernel.
    """
    paths = [*sorted(Path(__file__).parent.glob("*.py")), *more]
    texts = (path.read_bytes() for path in paths)
    return int.from_bytes(hashlib.blake2b(b"".join(texts), digest_size=7).digest(), "little")


def _build_kernels(stamp: int) -> tuple[Callable, Callable, Callable]:
    """The three kernels that Python calls; `stamp` becomes a part of their cache key."""

    @njit(cache=True, error_model="numpy", _nrt=False)
    def reset_worlds(tables, arrays, which):
        """Reset the worlds listed in `which`."""
        if stamp >= 0:
            for w in which:
                reset_world(tables, arrays, w)

    @njit(cache=True, error_model="numpy", nogil=True, _nrt=False)
    def advance_serial(tables, arrays, actions, frames, on_end, executed):
        """Advance all worlds one after the other. Mutates the world arrays and `executed`."""
        if stamp >= 0:
            for w in range(arrays.worlds.shape[0]):
                executed[w] = advance_world(tables, arrays, actions, frames, on_end, w)

    @njit(cache=True, error_model="numpy", nogil=True, parallel=True)
    def advance_parallel(tables, arrays, actions, frames, on_end, executed):
        """Advance all worlds on Numba's threads. Mutates the world arrays and `executed`."""
        if stamp >= 0:
            for w in prange(arrays.worlds.shape[0]):
                executed[w] = advance_world(tables, arrays, actions, frames, on_end, w)

    return reset_worlds, advance_serial, advance_parallel


reset_worlds, advance_serial, advance_parallel = _build_kernels(source_stamp())
