"""The kernels that are called from Python: many worlds, many frames, one call."""

from __future__ import annotations

from numba import njit, prange

from nclone.sim import state as st
from nclone.sim.frame import advance_frame


@njit(cache=True, error_model="numpy")
def reset_world(levels, t_entities, t_movers, t_doors, worlds, entities, movers, doors, w):
    """Put world w back to the start of its level: copies of the level's templates."""
    world = worlds[w]
    level = levels[world.level]
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
        entities[w, e] = t_entities[level.first_entity + e]
    for m in range(level.movers):
        movers[w, m] = t_movers[level.first_mover + m]
    for d in range(level.doors):
        doors[w, d] = t_doors[level.first_door + d]
    if level.entities > 0:
        for c in range(44):
            world.crowd[c] = level.crowd[c]
        for c in range(st.CELLS):
            world.head[c] = level.head[c]


@njit(cache=True, error_model="numpy")
def reset_worlds(levels, t_entities, t_movers, t_doors, worlds, entities, movers, doors, which):
    """Reset the worlds listed in `which`."""
    for w in which:
        reset_world(levels, t_entities, t_movers, t_doors, worlds, entities, movers, doors, w)


@njit(cache=True, error_model="numpy")
def advance_world(
    levels,
    segments,
    things,
    doorways,
    lists,
    t_entities,
    t_movers,
    t_doors,
    worlds,
    entities,
    movers,
    doors,
    actions,
    frames,
    on_end,
    w,
):
    """Play actions[:, w] for `frames` frames each; the number of frames that were executed."""
    world = worlds[w]
    level = levels[world.level]
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
                reset_world(
                    levels, t_entities, t_movers, t_doors, worlds, entities, movers, doors, w
                )
                world.restarts += 1
            advance_frame(
                level, world, segments, things, doorways, lists, entities, movers, doors, w, h, j
            )
            executed += 1
    return executed


@njit(cache=True, error_model="numpy", nogil=True)
def advance_serial(
    levels,
    segments,
    things,
    doorways,
    lists,
    t_entities,
    t_movers,
    t_doors,
    worlds,
    entities,
    movers,
    doors,
    actions,
    frames,
    on_end,
    executed,
):
    """Advance all worlds one after the other. Mutates the four world arrays and `executed`."""
    for w in range(worlds.shape[0]):
        executed[w] = advance_world(
            levels,
            segments,
            things,
            doorways,
            lists,
            t_entities,
            t_movers,
            t_doors,
            worlds,
            entities,
            movers,
            doors,
            actions,
            frames,
            on_end,
            w,
        )


@njit(cache=True, error_model="numpy", nogil=True, parallel=True)
def advance_parallel(
    levels,
    segments,
    things,
    doorways,
    lists,
    t_entities,
    t_movers,
    t_doors,
    worlds,
    entities,
    movers,
    doors,
    actions,
    frames,
    on_end,
    executed,
):
    """Advance all worlds on Numba's threads. Mutates the four world arrays and `executed`."""
    for w in prange(worlds.shape[0]):
        executed[w] = advance_world(
            levels,
            segments,
            things,
            doorways,
            lists,
            t_entities,
            t_movers,
            t_doors,
            worlds,
            entities,
            movers,
            doors,
            actions,
            frames,
            on_end,
            w,
        )
