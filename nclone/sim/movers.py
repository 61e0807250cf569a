"""Entities with a move or a thought of their own: drones, blocks, thwumps, balls (section 8)."""

from __future__ import annotations

import math

import numpy as np

from nclone.sim.compile import device
from nclone.sim.edges import column_free, row_free, set_door
from nclone.sim.geometry import half_index
from nclone.sim.grid import re_cell
from nclone.sim.ninja import is_target
from nclone.sim.queries import closest, sweep

ZAP_SPEED, ZAP_RADIUS, ZAP_STEP = 8.0 / 7.0, 7.5, 24.0
MINI_SPEED, MINI_RADIUS, MINI_STEP = 1.3, 4.0, 12.0
TURNS = np.array([(1, 0, 3, 2), (3, 0, 1, 2), (0, 1, 3, 2), (0, 3, 1, 2)])
"""Turns that a drone tries at a corner, by mode."""
SPRING = 0.02222222222222222
THWUMP_FORWARD, THWUMP_BACK = 20.0 / 7.0, 8.0 / 7.0
BALL_MAX_SPEED = 0.85
REGULAR_DOOR_FRAMES = 5


@device
def unit_x(direction):
    """X part of direction 0 right, 1 down, 2 left, 3 up."""
    return 1 - direction if direction % 2 == 0 else 0


@device
def unit_y(direction):
    """Y part of direction 0 right, 1 down, 2 left, 3 up."""
    return 2 - direction if direction % 2 == 1 else 0


@device
def drone_may_go(level, doorways, doors, w, x, y, direction, radius, step):
    """Whether no edge lies between a drone and its next target in a direction."""
    if direction % 2 == 0:
        e = unit_x(direction)
        at = half_index(x + e * radius)
        goal = half_index(x + step * e + e * radius)
        low = half_index(y - radius)
        high = half_index(y + radius)
        while at != goal:
            if not column_free(level, doorways, doors, w, at, low, high, e):
                return False
            at += e
        return True
    e = unit_y(direction)
    at = half_index(y + e * radius)
    goal = half_index(y + step * e + e * radius)
    low = half_index(x - radius)
    high = half_index(x + radius)
    while at != goal:
        if not row_free(level, doorways, doors, w, low, high, at, e):
            return False
        at += e
    return True


@device
def move_drone(level, world, thing, mover, doorways, entities, doors, w, e):
    """Patrol along the grid; at each target choose the first free turn of the mode's list."""
    speed, radius, step = ZAP_SPEED, ZAP_RADIUS, ZAP_STEP
    if thing.kind == 26:
        speed, radius, step = MINI_SPEED, MINI_RADIUS, MINI_STEP
    direction = entities[w, e].state
    dx = mover.tx - mover.x
    dy = mover.ty - mover.y
    sx = speed * unit_x(direction)
    sy = speed * unit_y(direction)
    passes = dx * (mover.tx - (mover.x + sx)) + dy * (mover.ty - (mover.y + sy)) < 0.0
    if passes or math.sqrt(dx * dx + dy * dy) < 1e-6:
        d = math.sqrt(dx * dx + dy * dy)
        mover.x = mover.tx
        mover.y = mover.ty
        for i in range(4):
            n = (direction + TURNS[thing.mode, i]) % 4
            if drone_may_go(level, doorways, doors, w, mover.x, mover.y, n, radius, step):
                entities[w, e].state = n
                mover.tx = mover.x + step * unit_x(n)
                mover.ty = mover.y + step * unit_y(n)
                mover.x += (speed - d) * unit_x(n)
                mover.y += (speed - d) * unit_y(n)
                break
    else:
        mover.x += sx
        mover.y += sy
        re_cell(world, entities, w, e, mover.x, mover.y)


@device
def move_bounce_block(world, thing, mover, entities, w, e):
    """A damped spring pulls a block that is not at rest back to where it was built."""
    mover.vx *= 0.98
    mover.vy *= 0.98
    mover.x += mover.vx
    mover.y += mover.vy
    a = SPRING * (thing.x - mover.x)
    b = SPRING * (thing.y - mover.y)
    mover.x += a
    mover.y += b
    mover.vx += a
    mover.vy += b
    re_cell(world, entities, w, e, mover.x, mover.y)


@device
def move_thwump(level, world, thing, mover, doorways, entities, doors, w, e):
    """Charge until an edge stops it, then go back to the start; not for idle ones."""
    state = entities[w, e].state
    horizontal = thing.orientation == 0 or thing.orientation == 4
    sign = 1 if thing.orientation == 0 or thing.orientation == 2 else -1
    speed = THWUMP_FORWARD if state == 1 else THWUMP_BACK
    sd = sign * state
    at = mover.x if horizontal else mover.y
    across = mover.y if horizontal else mover.x
    home = thing.x if horizontal else thing.y
    goal = at + speed * sd
    if state == -1 and (goal - home) * (at - home) < 0.0:
        if horizontal:
            mover.x = home
        else:
            mover.y = home
        entities[w, e].state = 0
        return
    c = half_index(at + sd * 11.0)
    cn = half_index(goal + sd * 11.0)
    if c != cn:
        low = half_index(across - 11.0)
        high = half_index(across + 11.0)
        if horizontal:
            free = column_free(level, doorways, doors, w, c, low, high, sd)
        else:
            free = row_free(level, doorways, doors, w, low, high, c, sd)
        if not free:
            entities[w, e].state = -1
            return
    if horizontal:
        mover.x = goal
    else:
        mover.y = goal
    re_cell(world, entities, w, e, mover.x, mover.y)


@device
def think_thwump(level, world, thing, mover, doorways, entities, doors, w, e):
    """Start an idle one when the ninja is in the lane in front with nothing solid between."""
    if not is_target(world):
        return
    horizontal = thing.orientation == 0 or thing.orientation == 4
    sign = 1 if thing.orientation == 0 or thing.orientation == 2 else -1
    at = mover.x if horizontal else mover.y
    across = mover.y if horizontal else mover.x
    beside = world.y if horizontal else world.x
    if not abs(across - beside) < 38.0:
        return
    nc = half_index(world.x if horizontal else world.y)
    tc = half_index(at - sign * 11.0)
    low = half_index(across - 11.0)
    high = half_index(across + 11.0)
    k = nc - tc
    if k * sign < 0:
        return
    stopped = 99
    for i in range(100):
        if horizontal:
            free = column_free(level, doorways, doors, w, tc, low, high, sign)
        else:
            free = row_free(level, doorways, doors, w, low, high, tc, sign)
        if not free:
            k = nc - tc
            stopped = i
            break
        tc += sign
    if stopped > 0 and k * sign <= 0:
        entities[w, e].state = 1


@device
def think_regular_door(world, doors, w, d):
    """Close a regular door five frames after its last contact."""
    if not doors[w, d].closed:
        doors[w, d].timer += 1
        if doors[w, d].timer > REGULAR_DOOR_FRAMES:
            set_door(world, doors, w, d, True)


@device
def steer_ball(world, ball):
    """Accelerate towards the ninja, or slow down when there is none."""
    if not is_target(world):
        ball.vx *= 0.95
        ball.vy *= 0.95
        return
    dx = world.x - ball.x
    dy = world.y - ball.y
    d = math.sqrt(dx * dx + dy * dy)
    if d > 0.0:
        dx /= d
        dy /= d
    ball.vx += dx * 0.04
    ball.vy += dy * 0.04
    speed = math.sqrt(ball.vx * ball.vx + ball.vy * ball.vy)
    if speed > BALL_MAX_SPEED:
        m = (speed - BALL_MAX_SPEED) * 0.9
        if m <= 0.01:
            m = 0.0
        m += BALL_MAX_SPEED
        ball.vx = ball.vx / speed * m
        ball.vy = ball.vy / speed * m


@device
def think_ball(level, world, segments, doorways, entities, movers, doors, w, e, slot):
    """Chase, slide along the tiles, and push away from the other balls."""
    ball = movers[w, slot]
    steer_ball(world, ball)
    x = ball.x
    y = ball.y
    t = sweep(level, segments, doorways, doors, w, x, y, ball.vx, ball.vy, 4.0)
    ball.x = x + t * ball.vx
    ball.y = y + t * ball.vy
    sum_x = 0.0
    sum_y = 0.0
    for _ in range(16):
        side, a, b = closest(level, segments, doorways, doors, w, ball.x, ball.y, 8.0)
        if side == 0:
            break
        dx = ball.x - a
        dy = ball.y - b
        d = math.sqrt(dx * dx + dy * dy)
        depth = 8.0 - d * side
        if depth < 1e-7:
            break
        if d == 0.0:
            return
        nx = dx / d
        ny = dy / d
        ball.x += nx * depth
        ball.y += ny * depth
        sum_x += nx
        sum_y += ny
    m = math.sqrt(sum_x * sum_x + sum_y * sum_y)
    if m > 0.0:
        dx = sum_x / m
        dy = sum_y / m
        p = ball.vx * dx + ball.vy * dy
        if p < 0.0:
            k = 1.0 if math.sqrt(ball.vx * ball.vx + ball.vy * ball.vy) <= 1.35 else 2.0
            ball.vx -= dx * p * k
            ball.vy -= dy * p * k
    push_other_balls(level, movers, w, e, slot)
    re_cell(world, entities, w, e, ball.x, ball.y)


@device
def push_other_balls(level, movers, w, e, slot):
    """Repel the balls of higher rank; balls at the same point, which is undefined, do nothing."""
    rank = e - level.first_ball
    if rank + 1 >= level.balls_declared:
        return
    ball = movers[w, slot]
    for ahead in range(1, level.balls - rank):
        other = movers[w, slot + ahead]
        dx = ball.x - other.x
        dy = ball.y - other.y
        d = math.sqrt(dx * dx + dy * dy)
        if 0.0 < d < 16.0:
            dx = dx / d * 4.0
            dy = dy / d * 4.0
            ball.vx += dx
            ball.vy += dy
            other.vx -= dx
            other.vy -= dy


@device
def think_shove_thwump(level, world, thing, mover, doorways, entities, doors, w, e):
    """Launch away from the ninja once it lets go, then creep back; not for idle ones."""
    entity = entities[w, e]
    if entity.state == 1:
        if entity.flag:
            entity.flag = 0
            return
        entity.state = 2
    if entity.state == 3:
        if abs(mover.x - thing.x) + abs(mover.y - thing.y) >= 1.0:
            step_shove_thwump(
                level, world, mover, doorways, entities, doors, w, e, mover.tx, mover.ty, 1.0
            )
        else:
            mover.x = thing.x
            mover.y = thing.y
            entity.state = 0
    elif entity.state == 2:
        step_shove_thwump(
            level, world, mover, doorways, entities, doors, w, e, -mover.tx, -mover.ty, 4.0
        )


@device
def step_shove_thwump(level, world, mover, doorways, entities, doors, w, e, gx, gy, speed):
    """Move by one step; an edge on the way turns it back."""
    if mover.ty == 0.0:
        goal = mover.x + gx * speed
        c = half_index(mover.x)
        if c != half_index(goal):
            low = half_index(mover.y - 8.0)
            high = half_index(mover.y + 8.0)
            if not column_free(level, doorways, doors, w, c, low, high, 1 if gx > 0.0 else -1):
                entities[w, e].state = 3
                return
        mover.x = goal
    else:
        goal = mover.y + gy * speed
        c = half_index(mover.y)
        if c != half_index(goal):
            low = half_index(mover.x - 8.0)
            high = half_index(mover.x + 8.0)
            if not row_free(level, doorways, doors, w, low, high, c, 1 if gy > 0.0 else -1):
                entities[w, e].state = 3
                return
        mover.y = goal
    re_cell(world, entities, w, e, mover.x, mover.y)
