"""Observation of N worlds in one kernel call: reads the simulator's records, writes rows.

Meanings and ranges of every value are declared in `nclone.spec`; the numbers follow the
specification of the 29 physics values. All arithmetic is float64, rounded once to float32.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit, prange

from nclone.geometry import HALF_PX, MAP_HEIGHT_PX, MAP_WIDTH_PX
from nclone.graph.goals import EXIT_SWITCH
from nclone.graph.paths import path_distance
from nclone.sim.compile import kernel
from nclone.sim.state import (
    DRAG,
    DRAG_SLOW,
    FALLING,
    GRAVITY_FALLING,
    GRAVITY_JUMPING,
    JUMPING,
    MAX_JUMP_FRAMES,
    SLIDING,
    STANDING,
    WALL_SLIDING,
)

ACTIONS = 6
HAZARDS, HAZARD_VALUES = 8, 8
HAZARD_REACH_PX = 240.0
SPEED = 3.333
"""Unit of speed in the observation, px per frame (the greatest horizontal speed, rounded)."""
IMPACT = 6.0
MINE, TOGGLE_MINE, LAUNCH_PAD, ZAP_DRONE, BOUNCE_BLOCK, THWUMP = 1, 21, 10, 14, 17, 20
BOOST_PAD, DEATH_BALL, MINI_DRONE, SHOVE_THWUMP = 24, 25, 26, 28
MINE_RADII = (4.0, 3.5, 4.5)


class Rows(NamedTuple):
    """The raw fields that the kernel writes, all [N, ...]; see `nclone.spec`."""

    game_state: np.ndarray
    exit_features: np.ndarray
    time_remaining: np.ndarray
    cell_offset: np.ndarray
    hazards: np.ndarray
    action_mask: np.ndarray
    cell: np.ndarray


class Worlds(NamedTuple):
    """The simulator's records that are read; see `nclone.sim.state`."""

    world: np.ndarray
    entity: np.ndarray
    mover: np.ndarray
    level: np.ndarray
    thing: np.ndarray


class Routes(NamedTuple):
    """Distance tables and each world's place in them; see `nclone.graph.distance`."""

    hops: np.ndarray
    goal_row: np.ndarray
    scale_px: np.ndarray
    entry: np.ndarray
    switch_hit: np.ndarray
    limit: np.ndarray


@kernel
def _sign(flag):
    return 1.0 if flag else -1.0


@kernel
def _clip(value, low, high):
    return min(max(value, low), high)


@kernel
def write_game_state(w, out):
    """29 values of one WORLD record into out [29] float32."""
    speed = np.sqrt(w.vx * w.vx + w.vy * w.vy)
    out[0] = min(speed / (2.0 * SPEED), 1.0) * 2.0 - 1.0
    out[1] = w.vx / speed if speed >= 1e-6 else 0.0
    out[2] = w.vy / speed if speed >= 1e-6 else 0.0
    out[3] = _sign(w.state <= SLIDING)
    out[4] = _sign(w.state == JUMPING or w.state == FALLING)
    out[5] = _sign(w.state == WALL_SLIDING)
    out[6] = _sign(w.state > WALL_SLIDING)
    out[7] = _sign(w.airborn != 0)
    out[8] = w.hor
    out[9] = _sign(w.jump != 0)
    out[10] = max(w.jump_buffer, 0) / 5.0 * 2.0 - 1.0
    out[11] = max(w.floor_buffer, 0) / 5.0 * 2.0 - 1.0
    out[12] = max(w.wall_buffer, 0) / 5.0 * 2.0 - 1.0
    out[13] = _sign(w.floor_contacts > 0)
    out[14] = _sign(w.walled != 0)
    out[15] = _sign(w.ceiling_contacts > 0)
    out[16] = np.sqrt(w.floor_x * w.floor_x + w.floor_y * w.floor_y) * 2.0 - 1.0
    out[17] = w.wall_normal if w.walled != 0 else 0.0
    out[18] = w.floor_y
    out[19] = _clip((w.vx - w.vx_before) / SPEED, -1.0, 1.0)
    out[20] = _clip((w.vy - w.vy_before) / SPEED, -1.0, 1.0)
    span = GRAVITY_FALLING - GRAVITY_JUMPING
    out[21] = (w.gravity - GRAVITY_JUMPING) / span * 2.0 - 1.0
    out[22] = min(w.jump_time, MAX_JUMP_FRAMES) / 45.0 * 2.0 - 1.0
    out[23] = _sign(w.walled != 0)
    out[24] = w.floor_x
    out[25] = w.ceiling_x
    out[26] = w.ceiling_y
    out[27] = (w.drag - DRAG_SLOW) / (DRAG - DRAG_SLOW) * 2.0 - 1.0
    out[28] = _sign(w.state != STANDING)
    for k in (0, 16, 21, 22, 27):  # the last bit of a ratio may leave the declared range
        out[k] = _clip(out[k], -1.0, 1.0)


@kernel
def write_action_mask(w, out):
    """Actions with an effect: out [6] int8 (specification: useless jumps, moves into a wall)."""
    for action in range(ACTIONS):
        out[action] = 1
    buffered = 0 <= w.jump_buffer < 5 or 0 <= w.floor_buffer < 5 or 0 <= w.wall_buffer < 5
    buffered = buffered or 0 <= w.launch_buffer < 4
    if w.airborn != 0 and w.state != JUMPING and w.jump != 0 and not buffered:
        for action in range(3, ACTIONS):
            out[action] = 0
    if w.walled != 0 and w.wall_normal != 0:
        starts_slide = w.airborn != 0 and w.state != WALL_SLIDING and w.vy >= 0.0
        if not starts_slide:
            out[1 if w.wall_normal > 0 else 2] = 0


@kernel
def write_exit_features(w, entry, routes, switch_hit, places, out):
    """Routes to exit switch and door: out [7] float32; places = switch x, y, door x, y in px."""
    scale = routes.scale_px[entry]
    for goal in range(2):
        at = 0 if goal == EXIT_SWITCH else 4
        path = path_distance(routes.hops, routes.goal_row[entry, goal], w.x, w.y)
        near = min(path / scale, 1.0) if scale > 0.0 and np.isfinite(path) else 1.0
        out[at] = _clip((places[2 * goal] - w.x) / (MAP_WIDTH_PX / 2.0), -1.0, 1.0)
        out[at + 1] = _clip((places[2 * goal + 1] - w.y) / (MAP_HEIGHT_PX / 2.0), -1.0, 1.0)
        out[3 if goal == EXIT_SWITCH else 6] = near
    out[2] = 1.0 if switch_hit else 0.0


@kernel
def _danger(kind, state):
    """How deadly an entity is, whether it is a mine, whether it moves, its radius in px."""
    if kind in (MINE, TOGGLE_MINE):
        danger = 1.0 if state == 0 else (0.5 if state == 2 else 0.0)
        return danger, 1.0, 0.0, MINE_RADII[min(max(state, 0), 2)]
    if kind in (ZAP_DRONE, MINI_DRONE):
        return 1.0, 0.0, 1.0, 7.5 if kind == ZAP_DRONE else 4.0
    if kind == DEATH_BALL:
        return 1.0, 0.0, 1.0, 5.0
    if kind in (THWUMP, SHOVE_THWUMP):
        return 1.0, 0.0, 1.0, 9.0 if kind == THWUMP else 12.0
    if kind == BOUNCE_BLOCK:
        return 0.0, 0.0, 1.0, 9.0
    if kind in (LAUNCH_PAD, BOOST_PAD):
        return 0.0, 0.0, 0.0, 6.0
    return -1.0, 0.0, 0.0, 0.0


@kernel
def write_hazards(w, worlds, n, nearest, out):
    """The nearest dangers and moving things: out [8, 8] float32.

    nearest [8] float64 is scratch: squared distances of the rows, ascending.
    """
    out[:] = 0.0
    nearest[:] = HAZARD_REACH_PX * HAZARD_REACH_PX
    level = worlds.level[w.level]
    for e in range(level.entities):
        thing = worlds.thing[level.first_entity + e]
        danger, mine, moves, radius = _danger(thing.kind, worlds.entity[n, e].state)
        if danger < 0.0 or worlds.entity[n, e].active == 0:
            continue
        x, y, vx, vy = thing.x, thing.y, 0.0, 0.0
        if thing.mover >= 0:
            m = worlds.mover[n, thing.mover]
            x, y, vx, vy = m.x, m.y, m.vx, m.vy
        squared = (x - w.x) * (x - w.x) + (y - w.y) * (y - w.y)
        if squared >= nearest[HAZARDS - 1]:
            continue
        k = HAZARDS - 1
        while k > 0 and nearest[k - 1] > squared:
            nearest[k] = nearest[k - 1]
            for f in range(out.shape[1]):
                out[k, f] = out[k - 1, f]
            k -= 1
        nearest[k] = squared
        out[k, 0] = (x - w.x) / HAZARD_REACH_PX
        out[k, 1] = (y - w.y) / HAZARD_REACH_PX
        out[k, 2] = _clip(vx / IMPACT, -1.0, 1.0)
        out[k, 3] = _clip(vy / IMPACT, -1.0, 1.0)
        out[k, 4] = danger
        out[k, 5] = mine
        out[k, 6] = moves
        out[k, 7] = radius / 24.0


@kernel
def write_place(w, cell, offset):
    """The 12 px sub-cell of the ninja, cell [2] uint8, and its place there, offset [2] float32."""
    column = int(_clip(np.floor(w.x / HALF_PX), 0.0, 2.0 * 44 - 1.0))
    row = int(_clip(np.floor(w.y / HALF_PX), 0.0, 2.0 * 25 - 1.0))
    cell[0], cell[1] = column, row
    offset[0] = _clip((w.x - HALF_PX * column) / (HALF_PX / 2.0) - 1.0, -1.0, 1.0)
    offset[1] = _clip((w.y - HALF_PX * row) / (HALF_PX / 2.0) - 1.0, -1.0, 1.0)


@kernel
def write_time(w, limit, out):
    """The share of the frame limit that is left: out [1] float32."""
    out[0] = max(0.0, 1.0 - w.frame / limit)


@kernel
def observe(worlds, routes, places, chosen, nearest, rows, first, end):
    """Write the rows [first, end) of the worlds listed in `chosen`; threads take a range each.

    places   [levels, 4] float64  switch x, y and door x, y in px
    chosen   [M] int64        worlds to observe; row m of `rows` belongs to world chosen[m]
    nearest  [N, 8] float64   scratch
    rows     written, [>= M, ...]
    """
    for m in range(first, end):
        n = chosen[m]
        w = worlds.world[n]
        write_game_state(w, rows.game_state[m])
        write_exit_features(
            w, routes.entry[n], routes, routes.switch_hit[n], places[w.level], rows.exit_features[m]
        )
        write_time(w, routes.limit[n], rows.time_remaining[m])
        write_place(w, rows.cell[m], rows.cell_offset[m])
        write_hazards(w, worlds, n, nearest[m], rows.hazards[m])
        write_action_mask(w, rows.action_mask[m])


@njit(cache=True, parallel=True)
def write_action_masks(worlds, chosen, out):
    """Action masks [M, 6] int8 of the worlds listed in `chosen` [M] int64, and nothing else."""
    for m in prange(chosen.size):
        write_action_mask(worlds[chosen[m]], out[m])
