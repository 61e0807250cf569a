"""What entities do to the ninja: pushes in a substep, effects after the last one (section 8)."""

from __future__ import annotations

import math

import numpy as np

from nclone.sim import state as st
from nclone.sim.compile import device, inlined
from nclone.sim.edges import set_door
from nclone.sim.geometry import cell_of, circle_meets_segment, square_penetration, touch
from nclone.sim.grid import append, deactivate, window
from nclone.sim.ninja import add_contact, displace, is_target, kill, win
from nclone.sim.state import NINJA_RADIUS

MINE_RADII = (4.0, 3.5, 4.5)
"""By state: deadly, harmless, toggling."""
BLOCK_SHARE = 1 - 0.2
LAUNCH_BOOST = 36.0 / 7.0


@device
def one_way_contact(world, thing):
    """Depth at which a one-way platform holds the ninja; negative if it lets it pass."""
    nx = thing.nx
    ny = thing.ny
    dx = world.x - thing.x
    dy = world.y - thing.y
    lateral = dy * nx - dx * ny
    direction = (world.vy * nx - world.vx * ny) * lateral
    k = 0.91 if direction < 0.0 else 0.51
    if not abs(lateral) < k * NINJA_RADIUS + 12.0:
        return -1.0
    depth = dx * nx + dy * ny
    if not 0.0 < depth <= NINJA_RADIUS:
        return -1.0
    if not world.vx * nx + world.vy * ny <= 0.0:
        return -1.0
    depth_old = (world.x_old - thing.x) * nx + (world.y_old - thing.y) * ny
    if not NINJA_RADIUS - depth_old <= 1.1:
        return -1.0
    return NINJA_RADIUS - depth


@inlined
def push_from(level, world, things, entities, movers, w, e):
    """Physical response of one entity at the ninja's current place; True if there was one."""
    thing = things[level.first_entity + e]
    kind = thing.kind
    if kind == 11:
        depth = one_way_contact(world, thing)
        if depth < 0.0:
            return False
        ux, uy = thing.nx, thing.ny
    elif kind == 17 or kind == 20 or kind == 28:
        mover = movers[w, thing.mover]
        state = entities[w, e].state
        if kind == 28 and state > 1:
            return False
        half = 22.0 if kind == 28 else 19.0
        ux, uy, depth, _ = square_penetration(mover.x, mover.y, world.x, world.y, half)
        if ux == 0.0 and uy == 0.0:
            return False
        if kind == 28 and state != 0 and not mover.tx * ux + mover.ty * uy >= 0.01:
            return False
        if kind == 17:
            qx = ux * depth * BLOCK_SHARE
            qy = uy * depth * BLOCK_SHARE
            mover.x -= qx
            mover.y -= qy
            mover.vx -= qx
            mover.vy -= qy
            depth = depth * 0.2
    else:
        return False
    qx = ux * depth
    qy = uy * depth
    world.x += qx
    world.y += qy
    if kind != 17:
        world.crush_x += qx
        world.crush_y += qy
        world.crush_length += depth
    if kind == 20:
        world.crushable = 1
    if kind == 11:
        c = world.vx * uy - world.vy * ux
        world.vx = c * uy
        world.vy = c * (-ux)
    else:
        world.vx += qx
        world.vy += qy
    add_contact(world, ux, uy, uy)
    return True


@inlined
def push_from_entities(level, world, things, entities, movers, w):
    """Physical responses of the entities around the ninja, in order; True if there was any."""
    c0, c1, r0, r1 = window(world.x, world.y)
    mask = (2 << r1) - (1 << r0)
    pushed = False
    for c in range(c0, c1 + 1):
        if np.int64(world.crowd[c]) & mask == 0:
            continue
        for row in range(r0, r1 + 1):
            e = np.int64(world.head[c * 25 + row])
            while e >= 0:
                if push_from(level, world, things, entities, movers, w, e):
                    pushed = True
                e = np.int64(entities[w, e].next)
    return pushed


@inlined
def meet_entities(level, world, things, entities, movers, doors, lists, lively, w):
    """Logical collisions with the entities around the ninja; the sum of their wall normals."""
    c0, c1, r0, r1 = window(world.x, world.y)
    mask = (2 << r1) - (1 << r0)
    walls = 0.0
    switches = False
    for c in range(c0, c1 + 1):
        if np.int64(world.crowd[c]) & mask == 0:
            continue
        for row in range(r0, r1 + 1):
            e = np.int64(world.head[c * 25 + row])
            while e >= 0:
                following = np.int64(entities[w, e].next)
                kind = things[level.first_entity + e].kind
                if kind == 4:
                    switches |= meet_exit_switch(level, world, things, entities, w, e)
                elif kind == 11 or kind == 17 or kind == 20 or kind == 28:
                    if lively is not None:
                        walls += meet_solid(level, world, things, entities, movers, w, e)
                elif kind != 24:
                    meet_item(level, world, things, entities, movers, doors, w, e)
                e = following
    if switches:
        open_exits(level, world, things, entities, lists, w)
    return walls


@device
def meet_exit_switch(level, world, things, entities, w, e):
    """Collect an exit switch; its exit joins the grid when the frame's collisions are over."""
    thing = things[level.first_entity + e]
    if not touch(thing.x, thing.y, 6.0, world.x, world.y, NINJA_RADIUS):
        return False
    entities[w, e].state = 0
    entities[w, e - 1].state = 1
    world.events |= st.SWITCH_HIT
    deactivate(world, entities, w, e)
    return True


@device
def open_exits(level, world, things, entities, lists, w):
    """Put every exit whose switch was hit into the grid, once."""
    for at in range(level.lists[st.EXITS], level.lists[st.EXITS + 1]):
        e = lists[at]
        if entities[w, e].state == 1 and entities[w, e].cell < 0:
            thing = things[level.first_entity + e]
            append(world, entities, w, e, cell_of(thing.x, thing.y))


@inlined
def meet_item(level, world, things, entities, movers, doors, w, e):
    """Things that are touched: mines, gold, exits, doors, launch pads, drones, balls."""
    thing = things[level.first_entity + e]
    kind = thing.kind
    x, y = world.x, world.y
    entity = entities[w, e]
    if kind == 1 or kind == 21:
        deadly = entity.state == 0 and is_target(world)
        if deadly and touch(thing.x, thing.y, MINE_RADII[0], x, y, NINJA_RADIUS):
            entity.state = 1
            kill(world, st.BY_MINE)
    elif kind == 2:
        if world.state != st.WON and touch(thing.x, thing.y, 6.0, x, y, NINJA_RADIUS):
            world.gold += 1
            world.events |= st.GOLD_TAKEN
            entity.state = 0
            deactivate(world, entities, w, e)
    elif kind == 3:
        if touch(thing.x, thing.y, 12.0, x, y, NINJA_RADIUS):
            win(world)
    elif kind == 5:
        if touch(thing.x, thing.y, 10.0, x, y, NINJA_RADIUS):
            if doors[w, thing.door].closed:
                world.events |= st.DOOR_OPENED
            set_door(world, doors, w, thing.door, False)
            doors[w, thing.door].timer = 0
    elif kind == 6 or kind == 8:
        if touch(thing.x, thing.y, 5.0, x, y, NINJA_RADIUS):
            set_door(world, doors, w, thing.door, kind == 8)
            world.events |= st.DOOR_OPENED if kind == 6 else st.DOOR_CLOSED
            deactivate(world, entities, w, e)
    elif kind == 10:
        meet_launch_pad(world, thing)
    elif kind == 14 or kind == 26:
        mover = movers[w, thing.mover]
        radius = 7.5 if kind == 14 else 4.0
        if is_target(world) and touch(mover.x, mover.y, radius, x, y, NINJA_RADIUS):
            kill(world, st.BY_HAZARD)
    elif kind == 25:
        meet_ball(world, movers[w, thing.mover])


@device
def meet_launch_pad(world, thing):
    """Throw the ninja in the direction of the pad, every frame of contact."""
    nx = thing.nx
    ny = thing.ny
    if not is_target(world) or not touch(thing.x, thing.y, 6.0, world.x, world.y, NINJA_RADIUS):
        return
    ahead = (thing.x - (world.x - NINJA_RADIUS * nx)) * nx
    ahead = ahead + (thing.y - (world.y - NINJA_RADIUS * ny)) * ny
    if not ahead >= -0.1:
        return
    k = 1.0 - ny if ny < 0.0 else 1.0
    qx = nx * LAUNCH_BOOST * 2.0 / 3.0
    qy = ny * LAUNCH_BOOST * k * 2.0 / 3.0
    displace(world, qx, qy)
    world.vx = qx
    world.vy = qy
    world.floor_contacts = 0
    world.floor_buffer = -1
    m = math.sqrt(qx * qx + qy * qy)
    world.launch_x = qx / m
    world.launch_y = qy / m
    world.launch_buffer = 0
    if world.state == st.JUMPING:
        world.gravity = st.GRAVITY_FALLING
    if world.state == st.KILLED:
        world.cause = st.NOT_DEAD
        world.events &= ~st.DIED
    world.state = st.FALLING


@device
def meet_ball(world, ball):
    """A death ball kills and bounces off."""
    if not is_target(world) or not touch(ball.x, ball.y, 5.0, world.x, world.y, NINJA_RADIUS):
        return
    dx = ball.x - world.x
    dy = ball.y - world.y
    d = math.sqrt(dx * dx + dy * dy)
    if d > 0.0:
        ball.vx += dx / d * 10.0
        ball.vy += dy / d * 10.0
    kill(world, st.BY_HAZARD)


@inlined
def meet_solid(level, world, things, entities, movers, w, e):
    """Wall value of one-way platforms, blocks and thwumps; thwumps may kill."""
    thing = things[level.first_entity + e]
    kind = thing.kind
    if kind == 11:
        if one_way_contact(world, thing) >= 0.0 and abs(thing.nx) == 1.0:
            return thing.nx
        return 0.0
    mover = movers[w, thing.mover]
    if kind == 28:
        return meet_shove_thwump(world, entities, mover, w, e)
    if kind == 20 and not is_target(world):
        return 0.0
    ux, uy, _, _ = square_penetration(mover.x, mover.y, world.x, world.y, 19.1)
    if kind == 20 and (ux != 0.0 or uy != 0.0):
        sign = 1.0 if thing.orientation == 0 or thing.orientation == 2 else -1.0
        if thing.orientation == 0 or thing.orientation == 4:
            deadly = circle_meets_segment(
                world.x, world.y, 12.0, mover.x + 11.0 * sign, mover.y - 7.0, 0.0, 14.0
            )
        else:
            deadly = circle_meets_segment(
                world.x, world.y, 12.0, mover.x - 7.0, mover.y + 11.0 * sign, 14.0, 0.0
            )
        if deadly:
            kill(world, st.BY_HAZARD)
    return ux


@device
def meet_shove_thwump(world, entities, mover, w, e):
    """Arm a shove thwump by leaning on it; its core kills once it is under way."""
    entity = entities[w, e]
    ux, uy, _, across = square_penetration(mover.x, mover.y, world.x, world.y, 22.1)
    if (ux != 0.0 or uy != 0.0) and entity.state <= 1:
        if entity.state == 0:
            entity.flag = 1
            if across > 0.2:
                mover.tx = ux
                mover.ty = uy
                entity.state = 1
        elif mover.tx * ux + mover.ty * uy >= 0.01:
            entity.flag = 1
        else:
            return 0.0
        return ux
    if touch(mover.x, mover.y, 8.0, world.x, world.y, NINJA_RADIUS):
        kill(world, st.BY_HAZARD)
    return 0.0
