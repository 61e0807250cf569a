"""Observed routes against a slow twin, over worlds that collect switches on their way."""

import numpy as np
import pytest

from nclone.graph.distance import DistanceTables
from nclone.graph.landmarks import find_landmarks
from nclone.graph.paths import path_distance
from nclone.graph.routes import ROUTE_FIELDS, door_places, reach_of, write_routes
from nclone.levels.format import pack_level
from nclone.levels.generators import Recipe, generate
from nclone.levels.level import load_level
from nclone.sim.world import World


def doored_level():
    """A corridor of one cell height with two locked doors, four mines, and the exit behind."""
    tiles = np.ones((25, 44), int)
    tiles[10:12, 3:30] = 0
    tiles[10, 16:25] = 1
    records = [[0, 14, 46, 0, 0], [3, 110, 46, 0, 0], [4, 30, 46, 0, 0]]
    records += [[6, 72, 46, 0, 0], [7, 22, 46, 0, 0], [6, 84, 46, 0, 0], [7, 40, 46, 0, 0]]
    records += [[kind, 44 + 4 * k, 41, 0, 0] for k, kind in enumerate((1, 1, 21, 21))]
    return load_level(pack_level(tiles, records))


@pytest.fixture(scope="module")
def walk():
    """One world walks right; its rows are read after each step."""
    level = doored_level()
    world, tables = World([level], threads=1), DistanceTables()
    marks = find_landmarks(level)
    number = tables.add_level(marks)
    seen = []
    hit = False
    for _ in range(40):
        world.step([2], frames=4)
        hit |= bool(world.events[0] & 1)
        active = world.entity_active
        bits = sum(1 << d for d, e in enumerate(marks.door_entities) if active[0, e] == 0)
        entry = np.array([tables.acquire(number, bits)])
        out = (np.ones((1, 6), np.float32), np.ones((1, 16, 8), np.float32))
        count = np.zeros((1, 1), np.int32)
        x, y = world.position[:, 0].copy(), world.position[:, 1].copy()
        write_routes(
            reach_of(tables), door_places(tables.levels), np.array([number]), entry, x, y,
            np.array([hit]), active, world.entity_state, np.zeros(1, np.int64), *out, count,
        )  # fmt: skip
        seen.append((entry[0], bits, hit, x[0], y[0], out[0][0], out[1][0], count[0, 0]))
    return tables, marks, seen


def slow_route(tables, entry, goal, x, y):
    row = tables.goal_row[entry, goal]
    return path_distance(tables.hops, row, x, y) / tables.scale_px[entry]


def test_every_door_row_follows_its_formula(walk):
    tables, marks, seen = walk
    assert {bits for _, bits, *_ in seen} == {0, 1, 3}
    for entry, bits, _, x, y, _, rows, count in seen:
        assert count == 2
        assert not rows[2:].any()
        for d in range(2):
            opened = bits >> d & 1
            expected = []
            for k in (2 + 2 * d, 3 + 2 * d):
                gx, gy = marks.goals[k]
                share = min(slow_route(tables, entry, k, x, y), 1.0)
                expected += [(gx - x) / 528, (gy - y) / 300, opened, share]
            np.testing.assert_allclose(rows[d], np.clip(expected, -1, 1), rtol=1e-6)


def test_reachability_follows_its_formula(walk):
    tables, _, seen = walk
    for entry, bits, hit, x, y, values, _, _ in seen:
        routes = [slow_route(tables, entry, goal, x, y) for goal in (0, 1, 2, 4)]
        unused = [routes[2 + d] for d in range(2) if not bits >> d & 1]
        following = routes[0] if not hit else (min(unused) if unused else routes[1])
        expected = [
            tables.area[entry] / 3864,
            1 - min(following, 1),
            1 - min(routes[1], 1),
            bits == 3,
            4 / 256,
            0.5,
        ]
        np.testing.assert_allclose(values, expected, rtol=1e-5, atol=1e-6)
    assert seen[0][5][3] == 0
    assert seen[-1][5][3] == 1
    assert seen[-1][5][0] > seen[0][5][0]


def test_the_declared_fields_have_the_shapes_of_the_specification():
    assert {f.name: f.shape for f in ROUTE_FIELDS} == {
        "reachability_features": (6,),
        "locked_door_features": (16, 8),
        "num_locked_doors": (1,),
    }


def test_levels_without_doors_have_no_rows():
    doors = door_places([find_landmarks(generate(Recipe("maze", "tiny", 0)))])
    assert doors.count.tolist() == [0]
