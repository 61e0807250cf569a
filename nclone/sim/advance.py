"""One frame of one world (specification, section 7), and the kernels that play many of many."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numba import njit

from nclone.sim import state as st
from nclone.sim.compile import device, inlined, merged
from nclone.sim.contacts import MINE_RADII, meet_entities, push_from_entities
from nclone.sim.geometry import cell_of, touch
from nclone.sim.grid import window
from nclone.sim.movers import (
    move_bounce_block,
    move_drone,
    move_thwump,
    think_ball,
    think_regular_door,
    think_shove_thwump,
    think_thwump,
)
from nclone.sim.ninja import integrate, is_target, think
from nclone.sim.queries import sweep, wall_normals
from nclone.sim.settle import MAX_PUSHES, push_out_of_tiles, settle_contacts
from nclone.sim.state import NINJA_RADIUS

SUBSTEPS = 4
SWEEP_RADIUS = 5.0
SAFE_SWEEP = SWEEP_RADIUS + 0.01


@inlined
def collide(level, world, segments, things, doorways, entities, movers, doors, lively, w):
    """Four substeps of entities first, then tiles.

    A substep is a function of the ninja and the entities, so one that changes nothing ends the
    series: the rest would repeat it. For the same reason the tiles need no second look at the
    place where they had settled. The sweep is skipped while every segment is further away from
    the start of the frame than the way is long.
    """
    x_old = world.x_old
    y_old = world.y_old
    reach = world.clearance - SAFE_SWEEP
    settled_x = np.nan
    settled_y = np.nan
    clearance = 0.0
    for _ in range(SUBSTEPS):
        x = world.x
        y = world.y
        pushed = False
        if lively is not None:
            if level.physical:
                pushed = push_from_entities(level, world, things, entities, movers, w)
        dx = world.x - x_old
        dy = world.y - y_old
        t = 1.0
        if reach <= 0.0 or dx * dx + dy * dy >= reach * reach:
            t = sweep(level, segments, doorways, doors, w, x_old, y_old, dx, dy, SWEEP_RADIUS)
        world.x = x_old + t * dx
        world.y = y_old + t * dy
        if not (world.x == settled_x and world.y == settled_y):
            pushes, clearance = push_out_of_tiles(level, world, segments, doorways, doors, w)
            if pushes > 0:
                pushed = True
            if pushes < MAX_PUSHES:
                settled_x = world.x
                settled_y = world.y
        if not pushed and world.x == x and world.y == y:
            break
    world.clearance = clearance
    if level.doors > 0:
        cell = cell_of(world.x, world.y)
        if level.near_doors[cell // 25] >> np.uint32(cell % 25) & np.uint32(1):
            world.clearance = 0.0


@device
def watch(level, world, things, entities, w, e):
    """A mine's thought or a boost pad's move; both depend on nothing but the ninja."""
    thing = things[level.first_entity + e]
    entity = entities[w, e]
    target = is_target(world)
    x, y = world.x, world.y
    if thing.kind == 24:
        inside = target and touch(thing.x, thing.y, 6.0, x, y, NINJA_RADIUS)
        if inside and not entity.state:
            speed = math.sqrt(world.vx * world.vx + world.vy * world.vy)
            if speed > 0.0:
                ax = 2.0 * world.vx / speed
                ay = 2.0 * world.vy / speed
                world.vx += ax
                world.vy += ay
        world.pads_touching += int(inside) - int(entity.state)
        entity.state = inside
    elif target:
        if entity.state == 1:
            if touch(thing.x, thing.y, MINE_RADII[1], x, y, NINJA_RADIUS):
                entity.state = 2
                world.mines_toggling += 1
        elif entity.state == 2 and not touch(thing.x, thing.y, MINE_RADII[2], x, y, NINJA_RADIUS):
            entity.state = 0
            world.mines_toggling -= 1
    elif entity.state == 2 and world.state == st.DEAD:
        entity.state = 1
        world.mines_toggling -= 1


@inlined
def watch_ninja(level, world, things, entities, lists, w):
    """Mines and boost pads: first those in contact, wherever they are, then those around.

    They stand still, do not see each other and reach less than a cell, so all others would do
    nothing, and neither their order nor a second look has an effect.
    """
    if world.mines_toggling > 0 or world.pads_touching > 0:
        for at in range(level.lists[st.WATCHED], level.lists[st.WATCHED + 1]):
            e = lists[at]
            state = entities[w, e].state
            kind = things[level.first_entity + e].kind
            if (state == 2 and kind != 24) or (state == 1 and kind == 24):
                watch(level, world, things, entities, w, e)
    if not is_target(world):
        return
    c0, c1, r0, r1 = window(world.x, world.y)
    mask = (2 << r1) - (1 << r0)
    for c in range(c0, c1 + 1):
        bits = np.int64(level.watched[c]) & mask
        if bits == 0:
            continue
        for row in range(r0, r1 + 1):
            if bits >> row & 1:
                e = np.int64(world.head[c * 25 + row])
                while e >= 0:
                    kind = things[level.first_entity + e].kind
                    if kind == 1 or kind == 21 or kind == 24:
                        watch(level, world, things, entities, w, e)
                    e = np.int64(entities[w, e].next)


@inlined
def move_entities(level, world, things, doorways, lists, entities, movers, doors, w):
    """Every entity that moves by itself, in processing order."""
    for at in range(level.lists[st.MOVING], level.lists[st.MOVING + 1]):
        e = lists[at]
        thing = things[level.first_entity + e]
        mover = movers[w, thing.mover]
        if thing.kind == 17:
            if mover.vx != 0.0 or mover.vy != 0.0 or mover.x != thing.x or mover.y != thing.y:
                move_bounce_block(world, thing, mover, entities, w, e)
        elif thing.kind == 20:
            if entities[w, e].state != 0:
                move_thwump(level, world, thing, mover, doorways, entities, doors, w, e)
        else:
            move_drone(level, world, thing, mover, doorways, entities, doors, w, e)


@inlined
def think_entities(level, world, segments, things, doorways, lists, entities, movers, doors, w):
    """Every entity that decides what it does next, in processing order."""
    for at in range(level.lists[st.THINKING], level.lists[st.THINKING + 1]):
        e = lists[at]
        thing = things[level.first_entity + e]
        if thing.kind == 5:
            think_regular_door(world, doors, w, thing.door)
        elif thing.kind == 20:
            if entities[w, e].state == 0:
                mover = movers[w, thing.mover]
                think_thwump(level, world, thing, mover, doorways, entities, doors, w, e)
        elif thing.kind == 25:
            think_ball(level, world, segments, doorways, entities, movers, doors, w, e, thing.mover)
        elif entities[w, e].state != 0:
            mover = movers[w, thing.mover]
            think_shove_thwump(level, world, thing, mover, doorways, entities, doors, w, e)


@inlined
def run_entities(
    level, world, segments, things, doorways, lists, entities, movers, doors, lively, w
):
    """Every entity moves, then every entity thinks."""
    if lively is not None:
        move_entities(level, world, things, doorways, lists, entities, movers, doors, w)
    if level.lists[st.WATCHED] < level.lists[st.WATCHED + 1]:
        watch_ninja(level, world, things, entities, lists, w)
    if lively is not None:
        think_entities(level, world, segments, things, doorways, lists, entities, movers, doors, w)


@merged
def advance_frame(
    level, world, segments, things, doorways, lists, entities, movers, doors, lively, w, h, j
):
    """Advance world w by one frame with horizontal input h and jump input j."""
    world.frame += 1
    world.hor = h
    world.jump = j
    if level.entities > 0:
        run_entities(
            level, world, segments, things, doorways, lists, entities, movers, doors, lively, w
        )
    if world.state != st.DEAD:
        integrate(world)
        collide(level, world, segments, things, doorways, entities, movers, doors, lively, w)
        walls = 0.0
        if level.entities > 0:
            walls = meet_entities(level, world, things, entities, movers, doors, lists, lively, w)
        walls = wall_normals(level, segments, doorways, doors, w, world.x, world.y, walls)
        settle_contacts(world, walls)
    think(world, h, j)


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


@merged
def advance_world(tables, arrays, actions, frames, on_end, lively, w):
    """Play actions[:, w] for `frames` frames each; the number of frames that were executed.

    What lies above the last action is a pause, in which the world stands still. `lively` is
    None where no level has anything that moves, thinks or pushes: what that takes is two thirds
    of the kernel, and is not even compiled then, as Numba drops what stands under a test of an
    argument that is None. It does so in functions that are called, not in those that are merged.
    """
    world = arrays.worlds[w]
    level = tables.levels[world.level]
    world.events = 0
    executed = 0
    for t in range(actions.shape[0]):
        action = actions[t, w]
        if action > 5:
            continue
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
                lively,
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


def _build_kernels(stamp: int) -> tuple[Callable, Callable]:
    """The two kernels that Python calls; `stamp` becomes a part of their cache key."""

    @njit(cache=True, error_model="numpy", _nrt=False)
    def reset_worlds(tables, arrays, which):
        """Reset the worlds listed in `which`."""
        if stamp >= 0:
            for w in which:
                reset_world(tables, arrays, w)

    @njit(cache=True, error_model="numpy", nogil=True, _nrt=False, no_cfunc_wrapper=True)
    def advance_worlds(tables, arrays, actions, frames, on_end, lively, executed, first, end):
        """Advance worlds [first, end) one after the other; mutates their arrays and `executed`.

        Threads take a range each. A parallel loop of Numba's would compile the simulator a second
        time, for twice as long as this, and would be a kernel beside this one.
        """
        if stamp >= 0:
            for w in range(first, end):
                executed[w] = advance_world(tables, arrays, actions, frames, on_end, lively, w)

    return reset_worlds, advance_worlds


reset_worlds, advance_worlds = _build_kernels(source_stamp())
