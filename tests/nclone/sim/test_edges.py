"""Half-grid edges against an edge-by-edge twin, doors included (specification, 4.2, 5.4, 8.4)."""

import numpy as np
import pytest

from nclone.levels.format import pack_level
from nclone.levels.level import load_level
from nclone.sim.edges import column_free, edge_blocks, row_free, set_door
from nclone.sim.terrain import EDGES
from nclone.sim.world import World

RECORDS = [(0, 90, 50, 0, 0), (5, 40, 42, 0, 0), (6, 46, 40, 2, 0), (7, 20, 20, 0, 0)]


def twin_edges(tiles):
    """Encoder counters [2, 89, 51] before doors, toggled tile by tile."""
    counters = np.zeros((2, 89, 51), int)
    counters[0, :88, [0, 50]] = 1
    counters[1, [0, 88], :50] = 1
    for cy in range(25):
        for cx in range(44):
            for place in range(3):
                for half in range(2):
                    counters[0, 2 * cx + half, 2 * cy + place] ^= EDGES[
                        tiles[cy, cx], 0, place, half
                    ]
                    counters[1, 2 * cx + place, 2 * cy + half] ^= EDGES[
                        tiles[cy, cx], 1, place, half
                    ]
    return counters


@pytest.fixture
def scene():
    tiles = np.random.default_rng(3).integers(0, 38, (23, 42))
    level = load_level(pack_level(tiles, RECORDS))
    world = World([level], threads=1)
    counters = twin_edges(level.tiles)
    counters[1, 20, [20, 21]] += 1  # the vertical door at x = 240 px, y = 252 px
    counters[0, [22, 23], 20] += 1  # the horizontal door at x = 276 px, y = 240 px
    tables = world.table.tables
    return world, counters, (tables.levels[0], tables.doorways, world.doors, 0)


def test_edges_block_as_their_counters_say(scene):
    _, counters, statics = scene
    for direction in range(2):
        for hx in range(-3, 92):
            for hy in range(-3, 54):
                at = counters[direction, min(max(hx, 0), 87), min(max(hy, 0), 49)]
                assert edge_blocks(*statics, direction, hx, hy) == (at != 0)


def test_counters_of_doors_may_leave_zero_and_one(scene):
    world, counters, statics = scene
    for closed in (False, False, False, True, True):
        set_door(world.worlds[0], world.doors, 0, 0, closed)
        counters[1, 20, [20, 21]] += 1 if closed else -1
        for hy in (20, 21):
            assert edge_blocks(*statics, 1, 20, hy) == (counters[1, 20, hy] != 0)


def test_a_row_or_column_is_free_when_all_its_edges_are(scene):
    _, counters, statics = scene
    random = np.random.default_rng(4)
    for _ in range(300):
        a, b = random.integers(0, 86), random.integers(0, 48)
        for direction in (-1, 1):
            ahead = direction > 0
            row = not counters[0, a : a + 3, b + ahead].any()
            column = not counters[1, a + ahead, b : b + 2].any()
            assert row_free(*statics, a, min(a + 2, 87), b, direction) == row
            assert column_free(*statics, a, b, b + 1, direction) == column
