"""One frame of one world (specification, section 7)."""

from __future__ import annotations

import math

import numpy as np

from nclone.sim import state as st
from nclone.sim.compile import device, inlined
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
from nclone.sim.ninja import add_contact, integrate, is_target, kill, think
from nclone.sim.queries import closest, sweep, wall_normals
from nclone.sim.state import NINJA_RADIUS

SUBSTEPS = 4
MAX_PUSHES = 32
SWEEP_RADIUS = 5.0
SAFE_SWEEP = SWEEP_RADIUS + 0.01
SETTLED_CLEARANCE = 9.99
"""Lower bound of the distance to all segments once no push is left: sqrt((10 - 1e-7)^2 - 0.1)."""
IMPACT_LIMIT = 6.0
CRUSH_LIMIT = 0.05
FOUR_THIRDS = 4.0 / 3.0


@device
def contact_dx(x, a):
    """X - a, with tiny values made zero except at three places that the game is known for."""
    dx = x - a
    if abs(dx) <= 1e-7:
        dx = 0.0
        if x == 50.51197510492316 or x == 49.23232124849253:
            dx = -(2.0**-47)
        elif x == 49.153536108584795:
            dx = 2.0**-47
    return dx


@inlined
def push_out_of_tiles(level, world, segments, doorways, doors, w):
    """Push the ninja out of what it touches; number of pushes and a bound of its clearance."""
    for pushes in range(MAX_PUSHES):
        x = world.x
        y = world.y
        side, a, b = closest(level, segments, doorways, doors, w, x, y, NINJA_RADIUS)
        if side == 0:
            return pushes, SETTLED_CLEARANCE
        dx = contact_dx(x, a)
        dy = y - b
        distance = math.sqrt(dx * dx + dy * dy)
        if distance == 0.0:
            return pushes, 0.0
        depth = NINJA_RADIUS - distance * side
        if depth < 1e-7:
            return pushes, SETTLED_CLEARANCE
        ux = dx / distance
        uy = dy / distance
        qx = ux * depth
        qy = uy * depth
        world.x = x + qx
        world.y = y + qy
        world.crush_x += qx
        world.crush_y += qy
        world.crush_length += depth
        if world.vx * dx + world.vy * dy < 0.0:
            c = world.vx * dy - world.vy * dx
            q = distance * distance
            world.vx = c / q * dy
            world.vy = c / q * (-dx)
        add_contact(world, ux, uy, dy)
    return MAX_PUSHES, 0.0


@inlined
def collide(level, world, segments, things, doorways, entities, movers, doors, w):
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
def hits_too_hard(world, nx, ny):
    """Whether the old velocity against a surface with this normal is deadly."""
    impact = -(nx * world.vx_old + ny * world.vy_old)
    return impact > IMPACT_LIMIT - FOUR_THIRDS * abs(ny)


@inlined
def settle_contacts(world, walls):
    """Turn the frame's contacts into flags, normals and deadly impacts."""
    world.airborn_before = world.airborn
    world.airborn = 1
    world.walled = 0
    if walls != 0.0:
        world.walled = 1
        world.wall_normal = 1 if walls > 0.0 else -1
    if world.floor_contacts > 0:
        world.airborn = 0
        fx = world.floor_sum_x
        fy = world.floor_sum_y
        m = math.sqrt(fx * fx + fy * fy)
        world.floor_x = 0.0 if m == 0.0 else fx / m
        world.floor_y = -1.0 if m == 0.0 else fy / m
        lands = world.state != st.WON and world.airborn_before
        if lands and hits_too_hard(world, world.floor_x, world.floor_y):
            world.vx = world.vx_old
            world.vy = world.vy_old
            kill(world, st.BY_IMPACT)
    if world.ceiling_contacts > 0:
        cx = world.ceiling_sum_x
        cy = world.ceiling_sum_y
        m = math.sqrt(cx * cx + cy * cy)
        world.ceiling_x = 0.0 if m == 0.0 else cx / m
        world.ceiling_y = 1.0 if m == 0.0 else cy / m
        if world.state != st.WON and hits_too_hard(world, world.ceiling_x, world.ceiling_y):
            world.vx = world.vx_old
            world.vy = world.vy_old
            kill(world, st.BY_IMPACT)
    if world.crushable and world.crush_length > 0.0:
        length = math.sqrt(world.crush_x * world.crush_x + world.crush_y * world.crush_y)
        if length / world.crush_length < CRUSH_LIMIT:
            kill(world, st.BY_OTHER)


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
def run_entities(level, world, segments, things, doorways, lists, entities, movers, doors, w):
    """Every entity moves, then every entity thinks, in processing order."""
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
    if level.lists[st.WATCHED] < level.lists[st.WATCHED + 1]:
        watch_ninja(level, world, things, entities, lists, w)
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
def advance_frame(
    level, world, segments, things, doorways, lists, entities, movers, doors, w, h, j
):
    """Advance world w by one frame with horizontal input h and jump input j."""
    world.frame += 1
    world.hor = h
    world.jump = j
    if level.entities > 0:
        run_entities(level, world, segments, things, doorways, lists, entities, movers, doors, w)
    if world.state != st.DEAD:
        integrate(world)
        collide(level, world, segments, things, doorways, entities, movers, doors, w)
        walls = 0.0
        if level.entities > 0:
            walls = meet_entities(level, world, things, entities, movers, doors, lists, w)
        walls = wall_normals(level, segments, doorways, doors, w, world.x, world.y, walls)
        settle_contacts(world, walls)
    think(world, h, j)
