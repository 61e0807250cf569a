"""The ninja between collisions: integration, jumps and the state machine (7.1, 7.4)."""

from __future__ import annotations

import math

from nclone.sim import state as st
from nclone.sim.compile import device, inlined
from nclone.sim.state import FALLING, JUMPING, RUNNING, SLIDING, STANDING, WALL_SLIDING

GROUND_ACCELERATION = 0.06666666666666665
AIR_ACCELERATION = 0.04444444444444444


@device
def is_target(world):
    """Whether entities still react to the ninja."""
    return world.state != st.DEAD and world.state != st.WON


@device
def kill(world, cause):
    """End the ninja's life in this frame, unless it is already dead or has won."""
    if world.state < st.DEAD:
        if world.state == JUMPING:
            world.gravity = st.GRAVITY_FALLING
        world.state = st.KILLED
        world.cause = cause
        world.events |= st.DIED


@device
def win(world):
    """Complete the level, unless the ninja is dead."""
    if world.state < st.DEAD:
        if world.state == JUMPING:
            world.gravity = st.GRAVITY_FALLING
        world.state = st.WON
        world.events |= st.COMPLETED


@inlined
def integrate(world):
    """Apply drag and gravity, move, and clear the sums of the frame's contacts."""
    world.vx_before = world.vx
    world.vy_before = world.vy
    world.vx = world.vx * world.drag
    world.vy = world.vy * world.drag + world.gravity
    world.x_old = world.x
    world.y_old = world.y
    world.x = world.x + world.vx
    world.y = world.y + world.vy
    world.vx_old = world.vx
    world.vy_old = world.vy
    world.floor_contacts = 0
    world.ceiling_contacts = 0
    world.floor_sum_x = 0.0
    world.floor_sum_y = 0.0
    world.ceiling_sum_x = 0.0
    world.ceiling_sum_y = 0.0
    world.crushable = 0
    world.crush_x = 0.0
    world.crush_y = 0.0
    world.crush_length = 0.0


@device
def add_contact(world, ux, uy, up):
    """Count a contact with normal ux, uy; `up` decides floor or ceiling (walls are ceilings)."""
    if up >= -0.0001:
        world.ceiling_contacts += 1
        world.ceiling_sum_x += ux
        world.ceiling_sum_y += uy
    else:
        world.floor_contacts += 1
        world.floor_sum_x += ux
        world.floor_sum_y += uy


@device
def displace(world, dx, dy):
    """Move the ninja outside of collision handling."""
    world.x += dx
    world.y += dy
    world.clearance -= abs(dx) + abs(dy)


@device
def next_buffer(buffer, last):
    """A running buffer counts up to `last`, then it is off (-1)."""
    return buffer + 1 if -1 < buffer < last else -1


@inlined
def think(world, h, j):
    """Buffers every frame, then what the state allows."""
    new_jump = j != 0 and world.jump_before == 0
    world.jump_before = j
    world.launch_buffer = next_buffer(world.launch_buffer, 3)
    world.jump_buffer = next_buffer(world.jump_buffer, 5)
    world.wall_buffer = next_buffer(world.wall_buffer, 5)
    world.floor_buffer = next_buffer(world.floor_buffer, 5)
    in_launch = -1 < world.launch_buffer < 4
    in_jump = -1 < world.jump_buffer < 5
    in_wall = -1 < world.wall_buffer < 5
    in_floor = -1 < world.floor_buffer < 5
    if new_jump and world.airborn:
        world.jump_buffer = 0
    if world.walled:
        world.wall_buffer = 0
    if not world.airborn:
        world.floor_buffer = 0
    if world.state == st.DEAD:
        return
    if world.state == st.KILLED:
        world.state = st.DEAD
    elif world.state == st.WON:
        world.drag = st.DRAG if world.airborn else st.DRAG_SLOW
    elif world.airborn:
        think_in_air(world, h, j, new_jump, in_jump, in_wall, in_floor, in_launch)
    else:
        think_on_floor(world, h, new_jump, in_jump)


@inlined
def think_on_floor(world, h, new_jump, in_jump):
    """Run, slide, stand or jump off the floor."""
    v1 = world.vx + GROUND_ACCELERATION * h
    if abs(v1) < st.MAX_INPUT_SPEED:
        world.vx = v1
    world.friction = st.FRICTION_GROUND
    if world.state > SLIDING:
        if world.state == JUMPING:
            world.gravity = st.GRAVITY_FALLING
        world.state = SLIDING if world.vx * h <= 0.0 else RUNNING
    if in_jump or new_jump:
        if not new_jump:
            world.events |= st.BUFFERED_JUMP
        floor_jump(world, h)
        return
    vx = world.vx
    fx = world.floor_x
    along = abs(world.vy * fx - vx * world.floor_y)
    if world.state == SLIDING:
        if h * along * vx > 0.0:
            world.state = RUNNING
        elif along < 0.1 and fx == 0.0:
            world.state = STANDING
        elif world.vy < 0.0 and fx != 0.0:
            slide_uphill(world)
        else:
            world.vx = vx * st.FRICTION_GROUND
    elif world.state == RUNNING:
        if h * along * vx > 0.0:
            if h * fx < 0.0 and abs(v1) < st.MAX_INPUT_SPEED:
                fy = world.floor_y
                boost = GROUND_ACCELERATION / 2.0 * h
                world.vx += boost * fy * fy
                world.vy += boost * fy * (-fx)
        else:
            world.state = SLIDING
    elif h != 0:
        world.state = RUNNING
    elif along < 0.1:
        world.vx = vx * st.FRICTION_SLOW
        world.friction = st.FRICTION_SLOW
    else:
        world.state = SLIDING


@device
def slide_uphill(world):
    """Friction on a slope that is climbed without input."""
    fy = world.floor_y
    speed = math.sqrt(world.vx * world.vx + world.vy * world.vy)
    friction = abs(world.vx * (1.0 - st.FRICTION_GROUND) * fy)
    slower = speed - friction * (fy * fy)
    world.vx = world.vx / speed * slower
    world.vy = world.vy / speed * slower


@inlined
def think_in_air(world, h, j, new_jump, in_jump, in_wall, in_floor, in_launch):
    """Steer, end a jump, jump again from a buffer, or slide along a wall."""
    v1 = world.vx + AIR_ACCELERATION * h
    if abs(v1) < st.MAX_INPUT_SPEED:
        world.vx = v1
    if world.state < JUMPING:
        world.state = FALLING
        return
    if world.state == JUMPING:
        world.jump_time += 1
        if j == 0 or world.jump_time > st.MAX_JUMP_FRAMES:
            world.gravity = st.GRAVITY_FALLING
            world.state = FALLING
            return
    if in_jump or new_jump:
        if world.walled or in_wall:
            if not new_jump or not world.walled:
                world.events |= st.BUFFERED_JUMP
            wall_jump(world, h)
            return
        if in_floor:
            world.events |= st.BUFFERED_JUMP
            floor_jump(world, h)
            return
        if in_launch and new_jump:
            world.events |= st.BUFFERED_JUMP
            launch_jump(world)
            return
    if not world.walled:
        if world.state == WALL_SLIDING:
            world.state = FALLING
    elif world.state == WALL_SLIDING:
        if h * world.wall_normal <= 0:
            world.vy = world.vy * st.FRICTION_WALL
        else:
            world.state = FALLING
    elif world.vy > 0.0 and h * world.wall_normal < 0:
        if world.state == JUMPING:
            world.gravity = st.GRAVITY_FALLING
        world.state = WALL_SLIDING


@device
def floor_jump(world, h):
    """Jump off the last floor, along its normal on a slope."""
    world.jump_buffer = -1
    world.floor_buffer = -1
    world.launch_buffer = -1
    world.state = JUMPING
    world.gravity = st.GRAVITY_JUMPING
    world.events |= st.JUMPED
    fx = world.floor_x
    fy = world.floor_y
    jx = 0.0
    jy = -2.0
    if fx != 0.0:
        if world.vx * fx >= 0.0:
            straight = world.vx * h < 0.0
        else:
            straight = world.vx * h > 0.0
            if not straight:
                world.vx = 0.0
        if straight:
            jy = -1.4
        else:
            jx = 2.0 / 3.0 * fx
            jy = 2.0 * fy
    if world.vy > 0.0:
        world.vy = 0.0
    world.vx += jx
    world.vy += jy
    displace(world, jx, jy)
    world.jump_time = 0


@device
def wall_jump(world, h):
    """Jump off a wall; weaker out of a slide with the stick towards the wall."""
    jx = 1.0
    jy = -1.4
    if h * world.wall_normal < 0 and world.state == WALL_SLIDING:
        jx = 2.0 / 3.0
        jy = -1.0
    world.state = JUMPING
    world.gravity = st.GRAVITY_JUMPING
    world.events |= st.JUMPED
    if world.vx * world.wall_normal < 0.0:
        world.vx = 0.0
    if world.vy > 0.0:
        world.vy = 0.0
    world.vx += jx * world.wall_normal
    world.vy += jy
    displace(world, jx * world.wall_normal, jy)
    world.jump_buffer = -1
    world.wall_buffer = -1
    world.launch_buffer = -1
    world.jump_time = 0


@device
def launch_jump(world):
    """Add speed in the direction of the launch pad that was just left."""
    world.floor_buffer = -1
    world.wall_buffer = -1
    world.jump_buffer = -1
    world.launch_buffer = -1
    world.events |= st.JUMPED
    factor = 2.0 * abs(world.launch_x) + 2.0
    if factor == 2.0:
        factor = 1.7
    world.vx += world.launch_x * factor * 2.0 / 3.0
    world.vy += world.launch_y * factor * 2.0 / 3.0
