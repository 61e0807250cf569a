"""A search for winning inputs inside one kernel: Go-Explore guided by path distances.

The archive holds one world per cell (progress, place, direction of motion). Again and again the
search takes a promising cell, copies its world back, plays a few random but guided actions, and
archives every new or faster cell on the way. Everything random comes from the seed.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numba import njit

from nclone.graph import lattice, paths
from nclone.graph.goals import EXIT_DOOR, EXIT_SWITCH
from nclone.graph.lattice import HEIGHT, STEP_PX, UNREACHABLE, WIDTH
from nclone.graph.paths import path_distance
from nclone.sim import state as st
from nclone.sim.advance import advance_world, source_stamp

PHASES = 8
MOTIONS = 6
CELLS = PHASES * WIDTH * HEIGHT * MOTIONS
CANDIDATES = 6
ACTIONS_PER_TRY = 10
FAR = 1e9
STOP, FIRST, NO_NODE = np.int64(st.STOP), np.int64(0), np.int64(-1)
"""Numbers in the text of a kernel are types of their own: the simulator would be compiled anew."""
MAX_GUIDED_DOORS = 3
"""Distances are known for every subset of this many locked doors; with more, for none or all."""


class Guide(NamedTuple):
    """Which way to go: distances by open doors and goal.

    hops           [rows, 4400] uint16
    rows           [8, 34] int32: row of (open doors, goal), -1 for none
    switch_entity  int, -1 without an exit; door_entities [D] int64
    """

    hops: np.ndarray
    rows: np.ndarray
    switch_entity: int
    door_entities: np.ndarray


class Archive(NamedTuple):
    """What the search remembers; row k of each array belongs to world k + 1.

    cell      [CELLS] int32: entry of each cell, -1 for none
    far       [K] float64: distance to the objective; visits, frames, node, phase: [K] int32
    members   [8, K] int32: entries of each phase, members_of [8] int32 their number
    parent    [nodes] int32, action [nodes] uint8, held [nodes] uint8: the tree of inputs
    used      [2] int64: entries, nodes
    """

    cell: np.ndarray
    far: np.ndarray
    visits: np.ndarray
    frames: np.ndarray
    node: np.ndarray
    members: np.ndarray
    members_of: np.ndarray
    parent: np.ndarray
    action: np.ndarray
    held: np.ndarray
    used: np.ndarray


def new_archive(entries: int, nodes: int) -> Archive:
    """An empty archive with room for `entries` worlds and `nodes` actions."""
    return Archive(
        np.empty(CELLS, np.int32),
        np.empty(entries),
        np.empty(entries, np.int32),
        np.empty(entries, np.int32),
        np.empty(entries, np.int32),
        np.empty((PHASES, entries), np.int32),
        np.empty(PHASES, np.int32),
        np.empty(nodes, np.int32),
        np.empty(nodes, np.uint8),
        np.empty(nodes, np.uint8),
        np.zeros(2, np.int64),
    )


@njit
def _random(dice, below):
    """A whole number in [0, below); `dice` [1] uint64 is SplitMix64's state."""
    dice[0] += np.uint64(0x9E3779B97F4A7C15)
    z = dice[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return np.int64((z >> np.uint64(33)) % np.uint64(below))


class Rows(NamedTuple):
    """The bytes of the four world arrays as words, [N, words] uint64 each, to copy whole worlds.

    (Copying records would be compiled field by field.)
    """

    worlds: np.ndarray
    entities: np.ndarray
    movers: np.ndarray
    doors: np.ndarray


def word_rows(*arrays: np.ndarray) -> Rows:
    """Views of record arrays [N, ...] as words."""
    return Rows(*(array.reshape(len(array), -1).view(np.uint64) for array in arrays))


@njit
def _copy_world(rows, source, goal):
    for k in range(rows.worlds.shape[1]):
        rows.worlds[goal, k] = rows.worlds[source, k]
    for k in range(rows.entities.shape[1]):
        rows.entities[goal, k] = rows.entities[source, k]
    for k in range(rows.movers.shape[1]):
        rows.movers[goal, k] = rows.movers[source, k]
    for k in range(rows.doors.shape[1]):
        rows.doors[goal, k] = rows.doors[source, k]


@njit
def _progress(guide, entities):
    """Open doors as bits, how many there are, and whether the exit's switch was hit, of world 0."""
    bits, count = 0, 0
    for d in range(guide.door_entities.size):
        if entities[0, guide.door_entities[d]].active == 0:
            count += 1
            if guide.door_entities.size <= MAX_GUIDED_DOORS:
                bits |= 1 << d
    if guide.door_entities.size > MAX_GUIDED_DOORS and count == guide.door_entities.size:
        bits = (1 << MAX_GUIDED_DOORS) - 1
    hit = guide.switch_entity >= 0 and entities[0, guide.switch_entity].active == 0
    return bits, count, hit


@njit
def _objective(guide, bits, hit, entities, x, y):
    """Row and distance of what to head for: exit, or else the nearest switch of a closed door."""
    row = guide.rows[bits, EXIT_DOOR if hit else EXIT_SWITCH]
    distance = path_distance(guide.hops, row, x, y)
    if np.isfinite(distance):
        return row, distance
    best_row, best = -1, FAR
    for d in range(guide.door_entities.size):
        if entities[0, guide.door_entities[d]].active != 0 and 2 + 2 * d < guide.rows.shape[1]:
            row = guide.rows[bits, 2 + 2 * d]
            distance = path_distance(guide.hops, row, x, y)
            if distance < best:
                best_row, best = row, distance
    return best_row, best


@njit
def _ahead(hops, row, x, y, steps):
    """The point `steps` nodes further on the shortest way from (x, y); (x, y) if there is none."""
    column, line = round((x - 6.0) / STEP_PX), round((y - 6.0) / STEP_PX)
    if row < 0 or not (0 < column < WIDTH - 1 and 0 < line < HEIGHT - 1):
        return x, y
    node = line * WIDTH + column
    best = node
    for near in (node, node - 1, node + 1, node - WIDTH, node + WIDTH):
        if hops[row, near] < hops[row, best]:
            best = near
    if hops[row, best] == UNREACHABLE:
        return x, y
    for _ in range(steps):
        node = best
        for near in (node - WIDTH, node + 1, node + WIDTH, node - 1):
            if 0 <= near < hops.shape[1] and hops[row, near] < hops[row, best]:
                best = near
        if best == node:
            break
    return STEP_PX * (best % WIDTH) + 6.0, STEP_PX * (best // WIDTH) + 6.0


@njit
def _choose(guide, row, world, dice):
    """A random action that tends towards the way, and for how many steps to hold it."""
    to_x, to_y = _ahead(guide.hops, row, world.x, world.y, 1 + _random(dice, 8))
    dx, dy = to_x - world.x, to_y - world.y
    side = _random(dice, 3)
    if _random(dice, 10) < 7 and abs(dx) > 4.0:
        side = 1 if dx < 0.0 else 2
    jumps = _random(dice, 100) < (70 if dy < -6.0 else 25)
    if jumps and world.jump != 0 and _random(dice, 2) == 0 and world.state != st.JUMPING:
        jumps = False  # a jump needs a fresh press
    held = 1 + _random(dice, 9) if jumps else 1 + _random(dice, 5)
    if world.walled != 0 or _random(dice, 4) == 0:
        held = 1 + _random(dice, 3)
    return side + (3 if jumps else 0), held


@njit
def _cell(world, phase):
    column = min(max(int(world.x // STEP_PX), 0), WIDTH - 1)
    line = min(max(int(world.y // STEP_PX), 0), HEIGHT - 1)
    sideways = 0 if world.vx < -1.0 else (2 if world.vx > 1.0 else 1)
    upwards = 1 if world.vy < -0.5 else 0
    return ((phase * HEIGHT + line) * WIDTH + column) * MOTIONS + 2 * sideways + upwards


@njit
def _remember(guide, archive, worlds, entities, rows, node):
    """Archive world 0 if its cell is new or was reached later; returns its objective's row."""
    world = worlds[0]
    bits, opened, hit = _progress(guide, entities)
    row, far = _objective(guide, bits, hit, entities, world.x, world.y)
    phase = 2 * min(opened, PHASES // 2 - 1) + (1 if hit else 0)
    cell = _cell(world, phase)
    entry = archive.cell[cell]
    if entry < 0:
        if archive.used[0] >= archive.far.size:
            return row
        entry = archive.used[0]
        archive.used[0] += 1
        archive.cell[cell] = entry
        archive.visits[entry] = 0
        archive.members[phase, archive.members_of[phase]] = entry
        archive.members_of[phase] += 1
    elif archive.frames[entry] <= world.frame:
        return row
    archive.far[entry], archive.frames[entry] = far, world.frame
    archive.node[entry] = node
    _copy_world(rows, FIRST, entry + 1)
    return row


@njit
def _select(archive, dice):
    """An entry that is near its objective and seldom tried, mostly of the furthest phase."""
    phase = PHASES - 1
    while archive.members_of[phase] == 0:
        phase -= 1
    if _random(dice, 10) == 0:
        other = _random(dice, phase + 1)
        if archive.members_of[other] > 0:
            phase = other
    best, best_score = -1, np.inf
    for _ in range(CANDIDATES):
        entry = archive.members[phase, _random(dice, archive.members_of[phase])]
        score = archive.far[entry] + 24.0 * archive.visits[entry]
        if score < best_score:
            best, best_score = entry, score
    archive.visits[best] += 1
    return best


@njit
def _add_node(archive, parent, action, held):
    node = archive.used[1]
    archive.parent[node], archive.action[node], archive.held[node] = parent, action, held
    archive.used[1] += 1
    return node


@njit(error_model="numpy", inline="always")  # else LLVM optimises all of it twice
def _explore(tables, arrays, rows, guide, archive, seed, hold, frame_limit, budget_frames):
    """Search from world 0, which has just been reset; returns (winning node or -1, frames spent).

    `tables` and `arrays` are those of a `World`; its rows from 1 on hold the archive, and `rows`
    are their words. `archive` is emptied first. Inputs change every `hold` frames, so that
    they fit an environment that skips frames. A win must come before frame `frame_limit`; after
    `budget_frames` simulated frames the search gives up.
    """
    worlds, entities = arrays.worlds, arrays.entities
    archive.cell[:] = -1
    archive.members_of[:] = 0
    archive.used[:] = 0
    dice = np.empty(1, np.uint64)
    dice[0] = np.uint64(seed)
    actions = np.empty((1, 1), np.uint8)
    spent = 0
    _remember(guide, archive, worlds, entities, rows, NO_NODE)
    while spent < budget_frames and archive.used[1] + ACTIONS_PER_TRY < archive.parent.size:
        entry = _select(archive, dice)
        _copy_world(rows, entry + 1, FIRST)
        node = archive.node[entry]
        bits, _, hit = _progress(guide, entities)
        row, _ = _objective(guide, bits, hit, entities, worlds[0].x, worlds[0].y)
        for _ in range(ACTIONS_PER_TRY):
            action, held = _choose(guide, row, worlds[0], dice)
            held = min(held, (frame_limit - worlds[0].frame) // hold)
            if held <= 0:
                break
            actions[0, 0] = action
            spent += advance_world(tables, arrays, actions, held * hold, STOP, st.LIVELY, FIRST)
            if worlds[0].state == st.DEAD:
                break
            node = _add_node(archive, node, action, held)
            if worlds[0].state == st.WON:
                return node, spent
            row = _remember(guide, archive, worlds, entities, rows, node)
    return -1, spent


def _build_kernel(stamp: int) -> Callable[..., tuple[int, int]]:
    """The kernel that Python calls; `stamp` becomes a part of its cache key."""

    @njit(cache=True, error_model="numpy")
    def explore(tables, arrays, rows, guide, archive, seed, hold, frame_limit, budget_frames):
        """As `_explore`."""
        if stamp < 0:
            return -1, 0
        return _explore(
            tables, arrays, rows, guide, archive, seed, hold, frame_limit, budget_frames
        )

    return explore


explore = _build_kernel(source_stamp(Path(lattice.__file__), Path(paths.__file__)))
"""`_explore`, compiled once per version of the simulator and of the path distances."""
