"""Potential and reward of N worlds in one call: every component of every world, no allocation."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nclone.geometry import PLAYER_RADIUS_PX
from nclone.graph.goals import EXIT_DOOR, EXIT_SWITCH, MINE_RADIUS_PX
from nclone.graph.paths import path_distance
from nclone.sim.compile import kernel

COMPONENTS = (
    "completed",
    "completion_bonus",
    "death",
    "truncation",
    "switch",
    "time",
    "standing",
    "buffered_jump",
    "exploration",
    "shaping",
)
(
    COMPLETED,
    BONUS,
    DEATH,
    TRUNCATION,
    SWITCH,
    TIME,
    STANDING,
    BUFFERED_JUMP,
    EXPLORATION,
    SHAPING,
) = range(len(COMPONENTS))
POTENTIALS = ("objective", "hazard", "impact")
MINE_DEADLY = 0
IMPACT_LIMIT = 6.0
CELL_PX = (24, 96, 192, 384)
CELL_COLUMNS = (44, 11, 6, 3)
CELL_OFFSETS = (0, 1100, 1177, 1201)
VISITED_CELLS = 1207
VISITED_BYTES = (VISITED_CELLS + 7) // 8
TERMINAL_ZERO, TERMINAL_KEEP, TERMINAL_NONE = 0, 1, 2


class Motion(NamedTuple):
    """Where N ninjas are and how they move, views of the simulator's arrays, all [N] float64.

    Velocity in px per frame; the normals are those of the last floor and ceiling contact.
    """

    x: np.ndarray
    y: np.ndarray
    vx: np.ndarray
    vy: np.ndarray
    floor_nx: np.ndarray
    floor_ny: np.ndarray
    ceiling_nx: np.ndarray
    ceiling_ny: np.ndarray


class Paths(NamedTuple):
    """The arrays of `DistanceTables` that the reward reads, and the world's place in them.

    entry [N] int64 and level [N] int64 index the tables; switch_hit [N] bool chooses the goal.
    entity_state [N, E] holds 0 for a deadly mine at the columns of `mine_entity`.
    """

    hops: np.ndarray
    goal_row: np.ndarray
    scale_px: np.ndarray
    reach_px: np.ndarray
    mine_reachable: np.ndarray
    mine_offset: np.ndarray
    mine_xy: np.ndarray
    mine_entity: np.ndarray
    entry: np.ndarray
    level: np.ndarray
    switch_hit: np.ndarray
    entity_state: np.ndarray


class Events(NamedTuple):
    """What happened to N worlds in this step, all [N].

    action int64 as chosen, frames int64 executed in this step, frame int64 since the episode
    began, limit int64 frames; won, died, died_by_mine, truncated, switch_now (hit in this
    step), buffered_jump: bool.
    """

    action: np.ndarray
    frames: np.ndarray
    frame: np.ndarray
    limit: np.ndarray
    won: np.ndarray
    died: np.ndarray
    died_by_mine: np.ndarray
    truncated: np.ndarray
    switch_now: np.ndarray
    buffered_jump: np.ndarray


@kernel
def objective_potential(distance_px, scale_px):
    """1 - min(1, d / S); 0 where there is no path."""
    if not np.isfinite(distance_px) or scale_px <= 0.0:
        return 0.0
    return 1.0 - min(1.0, distance_px / scale_px)


@kernel
def hazard_potential(n, motion, paths):
    """1 - exp(-d / 100) of the nearest reachable deadly mine within 2 S; 0 in contact, 1 without.

    Only the nearest counts, so the specification's bound of sixteen mines never binds.
    """
    level, entry = paths.level[n], paths.entry[n]
    first = paths.mine_offset[level]
    nearest = np.inf
    for k in range(paths.mine_offset[level + 1] - first):
        deadly = paths.entity_state[n, paths.mine_entity[first + k]] == MINE_DEADLY
        if deadly and paths.mine_reachable[entry, k]:
            dx = paths.mine_xy[first + k, 0] - motion.x[n]
            dy = paths.mine_xy[first + k, 1] - motion.y[n]
            nearest = min(nearest, dx * dx + dy * dy)
    nearest = np.sqrt(nearest)
    if nearest > 2.0 * paths.scale_px[entry]:
        return 1.0
    if nearest < PLAYER_RADIUS_PX + MINE_RADIUS_PX:
        return 0.0
    return 1.0 - np.exp(-nearest / 100.0)


@kernel
def _risk(speed, normal_y):
    threshold = IMPACT_LIMIT - 4.0 / 3.0 * abs(normal_y)
    return min(1.0, max(0.0, speed - threshold) / threshold)


@kernel
def impact_potential(n, motion):
    """1 - risk; risk grows with the normal speed beyond what floor or ceiling forgives."""
    vx, vy = motion.vx[n], motion.vy[n]
    floor = -(motion.floor_nx[n] * vx + motion.floor_ny[n] * vy)
    ceiling = -(motion.ceiling_nx[n] * vx + motion.ceiling_ny[n] * vy)
    return 1.0 - max(_risk(floor, motion.floor_ny[n]), _risk(ceiling, motion.ceiling_ny[n]))


@kernel
def potential(n, motion, paths, weights, parts):
    """Phi of world n in [0, 1]; its three parts are written to parts[n] [3]."""
    entry = paths.entry[n]
    goal = EXIT_DOOR if paths.switch_hit[n] else EXIT_SWITCH
    distance = path_distance(paths.hops, paths.goal_row[entry, goal], motion.x[n], motion.y[n])
    reach = paths.reach_px[entry, goal] if weights.reach_path else paths.scale_px[entry]
    parts[n, 0] = objective_potential(distance, reach)
    parts[n, 1] = hazard_potential(n, motion, paths) if weights.hazard != 0.0 else 1.0
    parts[n, 2] = impact_potential(n, motion)
    phi = (
        weights.objective * parts[n, 0]
        + weights.hazard * parts[n, 1]
        + weights.impact * parts[n, 2]
    )
    return min(1.0, max(0.0, phi))


@kernel
def explore(n, x, y, visited, explored):
    """Mark the cells of four sizes around (x, y) as visited; returns bits of the new ones.

    visited [N, 151] uint8 bits, explored [N, 4] int32 counts: updated in place
    """
    new = 0
    for k in range(4):
        column = min(max(int(x) // CELL_PX[k], 0), CELL_COLUMNS[k] - 1)
        row = min(max(int(y), 0), 599) // CELL_PX[k]
        cell = CELL_OFFSETS[k] + row * CELL_COLUMNS[k] + column
        if not visited[n, cell >> 3] >> (cell & 7) & 1:
            visited[n, cell >> 3] |= 1 << (cell & 7)
            explored[n, k] += 1
            new |= 1 << k
    return new


@kernel
def shaping_term(n, phi, before, events, gamma, weights):
    """F of one step; zero where the objective has just changed."""
    ended = events.won[n] or events.died[n]
    if ended and weights.terminal == TERMINAL_ZERO:
        return -weights.scale * before
    if (ended and weights.terminal == TERMINAL_NONE) or events.switch_now[n]:
        return 0.0
    discount = gamma ** events.frames[n] if weights.discount_per_frame else gamma
    return weights.scale * (discount * phi - before)


@kernel
def _living(n, motion, events, weights, new_cells, row):
    """Write the components of a step that did not end in death."""
    frames, frame, limit = events.frames[n], events.frame[n], events.limit[n]
    phase = 0 if frame < 0.3 * limit else (1 if frame <= 0.7 * limit else 2)
    row[TIME] = weights.time[phase] * frames
    if events.action[n] == 0 and abs(motion.vx[n]) < 0.1 and abs(motion.vy[n]) < 0.1:
        row[STANDING] = weights.standing * frames
    if events.won[n]:
        row[COMPLETED] = weights.completed
        spent = 1.0 - frame / weights.completion_bonus_frames
        row[BONUS] = weights.completion_bonus * max(0.0, spent)
    if events.switch_now[n]:
        row[SWITCH] = weights.switch
    if events.buffered_jump[n]:
        row[BUFFERED_JUMP] = weights.buffered_jump
    if events.truncated[n]:
        row[TRUNCATION] = weights.truncation
    for k in range(4):
        if new_cells >> k & 1:
            row[EXPLORATION] += weights.exploration[k]


@kernel
def start_worlds(begun, motion, paths, weights, phi, parts, visited, explored):
    """Take Phi(s0) as the start value of the worlds marked in begun [N] bool."""
    for n in range(begun.size):
        if begun[n]:
            visited[n] = 0
            explored[n] = 0
            phi[n] = potential(n, motion, paths, weights[0], parts)
            explore(n, motion.x[n], motion.y[n], visited, explored)


@kernel
def reward_worlds(
    motion, paths, events, weights, gamma, phi, parts, visited, explored, components, reward
):
    """One step of N worlds: components, their sum, and the potential carried to the next step.

    weights     [1] record of `WEIGHTS_DTYPE`
    gamma       float, the learner's
    phi         [N] float64 in: Phi(s), out: Phi(s')
    parts       [N, 3] float64, overwritten; visited, explored as in `explore`
    components  [N, 10] float64, overwritten
    reward      [N] float32, overwritten
    """
    w = weights[0]
    for n in range(reward.size):
        row = components[n]
        row[:] = 0.0
        before = phi[n]
        phi[n] = potential(n, motion, paths, w, parts)
        new_cells = explore(n, motion.x[n], motion.y[n], visited, explored)
        if events.died[n]:
            row[DEATH] = w.death_by_mine if events.died_by_mine[n] else w.death
        else:
            _living(n, motion, events, w, new_cells, row)
        row[SHAPING] = shaping_term(n, phi[n], before, events, gamma, w)
        total = 0.0
        for c in range(row.size):
            total += row[c]
        reward[n] = total
