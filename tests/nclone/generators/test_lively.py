"""Rooms, machines, marathon: doors that are needed and whose keys are in reach, many kinds."""

from collections import deque

import numpy as np
import pytest

from nclone.levels.entity_types import EntityType
from nclone.levels.generators import LIVELY, Recipe, draw_recipes, generate
from nclone.levels.generators.areas import Area, distances, floors
from nclone.levels.generators.bevel import bevel
from nclone.levels.generators.canvas import Canvas
from nclone.levels.generators.dice import Dice
from nclone.levels.generators.layout import Layout, Passage, chosen, cut, neighbours, shrunk
from nclone.levels.generators.machines import MACHINES

KEYS = [Recipe("building", p, s) for p in ("keys", "marathon", "marathon_keys") for s in range(25)]


def locked_doors(level):
    """Cell, direction to the cell behind the shut side, and the cell of the switch, per door."""
    found = []
    for row, x, y, across, _ in level.doors:
        kind, sx, sy = level.entities[int(row), :3]
        if kind == EntityType.LOCKED_DOOR:
            cell = (int(x // 24), int(y // 24))
            found.append((cell, (0, -1) if across else (-1, 0), (int(sx // 24), int(sy // 24))))
    return found


def cells_within_reach(level, shut):
    """Cells that are not full, from the spawn on, without passing the sides that are shut."""
    walls = {(cell, (cell[0] + d[0], cell[1] + d[1])) for cell, d, _ in shut}
    start = (int(level.spawn[0] // 24), int(level.spawn[1] // 24))
    found, queue = {start}, deque([start])
    while queue:
        c, r = queue.popleft()
        for near in ((c + 1, r), (c - 1, r), (c, r + 1), (c, r - 1)):
            blocked = ((c, r), near) in walls or (near, (c, r)) in walls
            if near not in found and level.tiles[near[1], near[0]] != 1 and not blocked:
                found.add(near)
                queue.append(near)
    return found


def objectives(level):
    return {(int(x // 24), int(y // 24)) for k, x, y, *_ in level.entities if k in (3, 4)}


def keys_come_before_doors(level):
    shut = locked_doors(level)
    while shut:
        reached = cells_within_reach(level, shut)
        opened = [door for door in shut if door[2] in reached]
        if not opened:
            return False
        shut = [door for door in shut if door not in opened]
    return objectives(level) <= cells_within_reach(level, [])


def test_locks_are_needed_and_keys_lie_in_front_of_their_doors():
    levels = [generate(recipe) for recipe in KEYS]
    for level in levels:
        shut = locked_doors(level)
        assert not shut or objectives(level) - cells_within_reach(level, shut)
    # A passage that was narrowed can cut off a pocket of its room: proofs sort such levels out.
    assert np.mean([keys_come_before_doors(level) for level in levels]) > 0.9


def test_most_levels_with_keys_have_them():
    counts = [len(locked_doors(generate(recipe))) for recipe in KEYS]
    assert max(counts) == 3
    assert np.mean(np.array(counts) > 0) > 0.6


def test_every_kind_of_machine_is_met_in_a_few_hundred_levels():
    met = set()
    for category in LIVELY:
        for recipe in draw_recipes(category, 60):
            met |= {int(kind) for kind in generate(recipe).entities[:, 0]}
    machines = set(EntityType) - {
        EntityType.NINJA,
        EntityType.LOCKED_DOOR_SWITCH,
        EntityType.TRAP_DOOR_SWITCH,
    }
    assert met == machines


@pytest.mark.parametrize("name", MACHINES)
def test_machines_keep_away_from_spawn_switch_and_exit(name):
    canvas = Canvas(Dice("machines", 1))
    canvas.carve(5, 5, 30, 14)
    canvas.spawn(6, 18)
    canvas.exit((14, 18), (23, 18))
    for _ in range(30):
        MACHINES[name](canvas, Area(5, 5, 30, 14))
    placed = [r for r in canvas.records() if r[0] not in (0, 3, 4)]
    assert placed
    for _, x, y, *_ in placed:
        assert all(max(abs(x // 4 - c), abs((y - 1) // 4 - r)) > 1 for c, r in canvas.objectives)


def test_a_cut_building_covers_its_box_and_its_rooms_can_all_be_reached():
    for seed in range(40):
        canvas = Canvas(Dice("cut", seed))
        box = Area(1, 1, 42, 23)
        parts = cut(canvas, box, 9, 0.5)
        assert sum(p.width * p.height for p in parts) == box.width * box.height
        rooms = [shrunk(canvas, part, 0.4) for part in parts]
        layout = Layout(rooms, chosen(canvas, len(rooms), neighbours(canvas, rooms), 0.3))
        assert layout.reached(0) == set(range(len(rooms)))
        assert all(p.area.width > 0 and p.area.height > 0 for p in layout.passages)


def test_a_bridge_is_a_passage_that_one_cannot_get_around():
    area = Area(1, 1, 1, 1)
    ring = [Passage(0, 1, area, False), Passage(1, 2, area, False), Passage(0, 2, area, True)]
    tail = Passage(2, 3, area, False)
    layout = Layout([area] * 4, [*ring, tail])
    assert [layout.is_bridge(p) for p in layout.passages] == [False, False, False, True]


def test_beveled_corners_shut_no_way():
    for seed in range(30):
        canvas = Canvas(Dice("bevel", seed))
        for _ in range(6):
            canvas.carve(canvas.dice.between(2, 30), canvas.dice.between(2, 16), 8, 5)
        start = floors(canvas, Area(1, 1, 42, 23))[0]
        before = distances(canvas, start)
        bevel(canvas, 1.0)
        if canvas.is_empty(*start):
            after = distances(canvas, start)
            lost = [c for c in before if c not in after and canvas.is_empty(*c)]
            assert not lost
