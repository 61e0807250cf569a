"""Distance tables: look-ups against a slow twin, doors, sharing and the bound on memory."""

import numpy as np
import pytest

from nclone.graph.distance import DistanceTables, MineBlock, Truncation
from nclone.graph.goals import EXIT_DOOR, EXIT_SWITCH
from nclone.graph.landmarks import Landmarks
from nclone.graph.lattice import NODES, node_position
from nclone.graph.paths import path_distance, path_distances


def room(key="room", door=False, mines=(), columns=range(1, 21)) -> Landmarks:
    """One corridor, two tiles high, spawn left, switch in the middle, exit right."""
    tiles = np.ones((25, 44), np.uint8)
    tiles[1:3, list(columns)] = 0
    goals = {EXIT_SWITCH: (252.0, 60.0), EXIT_DOOR: (444.0, 60.0)}
    cells = np.zeros((0, 2), np.int64)
    if door:
        cells = np.array([[12, 1], [12, 2]], np.int64)
        goals |= {2: (60.0, 60.0), 3: (312.0, 36.0), 4: (84.0, 60.0), 5: (312.0, 60.0)}
    xy = np.array(mines, float).reshape(-1, 2)
    return Landmarks(
        key, tiles, (36.0, 60.0), goals, cells, xy, np.ones(len(xy), bool), np.arange(len(xy))
    )


def entry_of(tables, marks, bits=0):
    return tables.acquire(tables.add_level(marks), bits)


def slow_distance(hops, x, y):
    """Twin: looks at every node of the level."""
    best = (np.inf, np.inf)
    for node in range(NODES):
        away = np.hypot(node_position(node)[0] - x, node_position(node)[1] - y)
        if hops[node] != 65535 and away <= 10 and away < best[0]:
            best = (away, 12.0 * hops[node] + away)
    return best[1]


def test_in_a_straight_corridor_the_distance_is_the_length_of_the_way():
    tables = DistanceTables()
    entry = entry_of(tables, room())

    row = tables.goal_row[entry, EXIT_DOOR]

    assert path_distance(tables.hops, row, 42.0, 54.0) == 12 * 33  # nodes x = 42 to 438
    assert path_distance(tables.hops, row, 42.0, 58.0) == 12 * 33 + 4
    assert path_distance(tables.hops, row, 42.0, 300.0) == np.inf
    assert tables.area[entry] == 2 * 4 * 20
    assert tables.scale_px[entry] == 12 * np.sqrt(160)


def test_look_ups_of_many_worlds_equal_the_slow_twin():
    tables, rng = DistanceTables(), np.random.default_rng(3)
    entries = np.array([entry_of(tables, room(str(k), columns=range(1, 20 + k))) for k in range(4)])
    entry, goal = entries[rng.integers(0, 4, 100)], rng.integers(0, 2, 100)
    x, y = rng.uniform(20, 560, 100), rng.uniform(20, 90, 100)
    out = np.empty(100)

    path_distances(tables.hops, tables.goal_row, entry, goal, x, y, out)

    rows = tables.goal_row[entry, goal]
    expected = [slow_distance(tables.hops[r], a, b) for r, a, b in zip(rows, x, y, strict=True)]
    np.testing.assert_allclose(out, expected, rtol=1e-14)
    assert np.isfinite(out).any()
    assert np.isinf(out).any()


def test_a_closed_door_cuts_the_level_and_its_switch_joins_it_again():
    tables = DistanceTables()
    level = tables.add_level(room(door=True))

    closed, half, opened = (tables.acquire(level, bits) for bits in (0, 1, 3))

    def to_exit(entry):
        return path_distance(tables.hops, tables.goal_row[entry, EXIT_DOOR], 42.0, 54.0)

    assert (to_exit(closed), tables.exit_reachable[closed]) == (np.inf, False)
    assert (to_exit(opened), tables.exit_reachable[opened]) == (12 * 33, True)
    assert to_exit(half) == 12 * 35  # round the upper door's tile, two steps up and down again
    assert tables.area[closed] < tables.area[half] < tables.area[opened]


def test_a_missing_goal_is_infinitely_far():
    tables = DistanceTables()
    entry = entry_of(tables, room())
    assert path_distance(tables.hops, tables.goal_row[entry, 2], 42.0, 54.0) == np.inf


@pytest.mark.parametrize(("block", "lost"), [("none", 0), ("tile", 4), ("radius", 4)])
def test_deadly_mines_take_nodes_away_only_if_asked_to(block, lost):
    tables = DistanceTables(mine_block=MineBlock(block))
    level = tables.add_level(room(mines=[(132.0, 60.0)]))

    plain, mined = tables.acquire(level, 0), tables.acquire(level, 0, np.array([True]))

    assert tables.area[plain] - tables.area[mined] == lost
    assert tables.mines[plain] == 1


def test_the_frame_limit_grows_with_the_area_and_the_mines():
    tables = DistanceTables()
    limits = [
        int(tables.limit_frames[entry_of(tables, room(str(m), mines=[(132.0, 60.0)] * m))])
        for m in (0, 1, 9)
    ]
    assert limits == [int(50 * np.sqrt(160)), int(50 * np.sqrt(160)) + 500, 4000]
    assert Truncation(scale=1.0).frames(160, 0) == 300


def test_equal_keys_share_one_entry_and_releases_are_counted():
    tables = DistanceTables()
    level = tables.add_level(room())
    assert tables.add_level(room()) == level
    first, second = tables.acquire(level, 0), tables.acquire(level, 0)
    assert (first, tables.entries) == (second, 1)
    tables.release(first)
    tables.release(first)
    with pytest.raises(ValueError, match="more often"):
        tables.release(first)


def test_places_that_are_only_counted_are_as_many_and_nobody_is_shown_them():
    searched, counted = DistanceTables(), DistanceTables()
    marks = [room("a", door=True, mines=[(132.0, 60.0)]), room("b")]
    for level in searched.add_levels(marks):
        searched.acquire(level, 0)
    for level in counted.add_levels(marks):
        counted.reserve(level)
    assert counted.nbytes == searched.nbytes > DistanceTables().nbytes

    entry = counted.acquire(0, 0)
    np.testing.assert_array_equal(
        counted.hops[counted.goal_row[entry, EXIT_DOOR]],
        searched.hops[searched.goal_row[0, EXIT_DOOR]],
    )


def test_entries_in_use_stay_and_the_longest_unused_go_first():
    tables = DistanceTables(capacity_mib=0.3)  # 35 rows, 17 levels
    levels = tables.add_levels([room(str(k), columns=range(1, 20 + k)) for k in range(20)])
    held = tables.acquire(levels[0], 0)
    before = tables.hops[tables.goal_row[held, EXIT_DOOR]].copy()
    for level in levels[1:]:
        tables.release(tables.acquire(level, 0))

    assert tables.entries == 17
    assert tables.hops.shape[0] == 35
    np.testing.assert_array_equal(tables.hops[tables.goal_row[held, EXIT_DOOR]], before)


def test_when_everything_is_in_use_the_arena_grows_instead_of_failing():
    tables = DistanceTables(capacity_mib=0.3)
    levels = tables.add_levels([room(str(k), columns=range(1, 20 + k)) for k in range(20)])
    entry = np.full(20, -1)
    tables.reacquire(entry, levels, np.zeros(20, int), range(20))

    assert tables.hops.shape[0] == 70
    rows = tables.goal_row[entry, EXIT_SWITCH]
    assert all(path_distance(tables.hops, row, 42.0, 54.0) == 12 * 17 for row in rows)


def test_a_capacity_too_small_for_one_level_is_refused_in_words():
    with pytest.raises(ValueError, match="use at least"):
        DistanceTables(capacity_mib=0.1)
