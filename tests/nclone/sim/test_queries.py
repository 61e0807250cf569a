"""Queries over segments against slow twins without any shortcut (4.2 to 5.3, 7.2)."""

import math
from typing import NamedTuple

import numpy as np
import pytest

from nclone.levels.format import pack_level
from nclone.levels.level import load_level
from nclone.sim import geometry as g
from nclone.sim import queries
from nclone.sim.advance import collide
from nclone.sim.terrain import SIGNS, SLOPES
from nclone.sim.world import World


class Segment(NamedTuple):
    kind: int  # 0 line, 1 convex arc, 2 concave arc
    x1: float
    y1: float
    px: float
    py: float
    oriented: bool = True


def twin_cells(level):
    """Segments of each cell in query order, built edge by edge (4.2, 4.3)."""
    across, upright = {}, {}
    for cy in range(25):
        for cx in range(44):
            tile = level.tiles[cy, cx]
            for place in range(3):
                for half in range(2):
                    at = (2 * cx + half, 2 * cy + place)
                    across[at] = across.get(at, 0) + SIGNS[tile, 0, place, half]
                    at = (2 * cx + place, 2 * cy + half)
                    upright[at] = upright.get(at, 0) + SIGNS[tile, 1, place, half]
    for hx in range(88):
        across[hx, 0] += 1
        across[hx, 50] -= 1
    for hy in range(50):
        upright[0, hy] += 1
        upright[88, hy] -= 1
    cells = {(cx, cy): [] for cx in range(44) for cy in range(25)}
    for (cx, cy), found in cells.items():
        slope = SLOPES[level.tiles[cy, cx]]
        if slope["kind"] >= 0:
            x, y = 24.0 * cx + slope["x1"], 24.0 * cy + slope["y1"]
            found.append(Segment(slope["kind"], x, y, float(slope["px"]), float(slope["py"])))
    for (hx, hy), sign in sorted(across.items()):
        if sign:
            owner = (hx // 2, math.floor((hy - 0.1 * sign) / 2))
            start = 12.0 * hx if sign > 0 else 12.0 * hx + 12
            cells[owner].append(Segment(0, start, 12.0 * hy, 12.0 * sign, 0.0))
    for (hx, hy), sign in sorted(upright.items()):
        if sign:
            owner = (math.floor((hx - 0.1 * sign) / 2), hy // 2)
            start = 12.0 * hy + 12 if sign > 0 else 12.0 * hy
            cells[owner].append(Segment(0, 12.0 * hx, start, 0.0, -12.0 * sign))
    for entity, x, y, horizontal, closed in level.doors:
        if closed:
            angle = level.entities[int(entity), 3] * math.pi / 4
            cell = (int((x - 12 * math.cos(angle)) // 24), int((y - 12 * math.sin(angle)) // 24))
            line = (x - 12, y, 24.0, 0.0) if horizontal else (x, y - 12, 0.0, 24.0)
            cells[cell].append(Segment(0, *line, oriented=False))
    return cells


def cell_range(low, high, last):
    first, final = (min(max(math.floor(v / 24), 0), last) for v in (low, high))
    return range(first, final + 1)


def around(cells, x1, y1, x2, y2):
    for cx in cell_range(x1, x2, 43):
        for cy in cell_range(y1, y2, 24):
            yield from cells[cx, cy]


def closest_on(segment, x, y):
    if segment.kind == 0:
        a, b, back = g.closest_on_line(x, y, *segment[1:5])
        return a, b, back and segment.oriented
    return g.closest_on_arc(x, y, *segment[1:5], segment.kind == 1)


def twin_closest(cells, x, y, r):
    best, found = 9999999.0, (0, 0.0, 0.0)
    for segment in around(cells, x - r, y - r, x + r, y + r):
        a, b, back = closest_on(segment, x, y)
        k = (x - a) ** 2 + (y - b) ** 2 - (0.0 if back else 0.1)
        if k < best:
            best, found = k, (-1 if back else 1, a, b)
    return found


def twin_sweep(cells, x, y, vx, vy, r):
    t, e = 1.0, r + 1.0
    box = (min(x, x + vx) - e, min(y, y + vy) - e, max(x, x + vx) + e, max(y, y + vy) + e)
    for kind, x1, y1, px, py, _ in around(cells, *box):
        if kind == 0:
            ends = [(x1, y1), (x1 + px, y1 + py)]
            t = min(t, g.time_to_line(x, y, vx, vy, x1, y1, px, py, r))
        else:
            ends = [(x1 + 24 * px, y1), (x1, y1 + 24 * py)]
            t = min(t, g.time_to_arc(x, y, vx, vy, x1, y1, px, py, r))
        t = min([t] + [g.time_to_point(x, y, vx, vy, a, b, r) for a, b in ends])
    return t


def twin_wall_normals(cells, x, y):
    total, r = 0.0, 10.0 + 0.1
    for segment in around(cells, x - r, y - r, x + r, y + r):
        a, b, _ = closest_on(segment, x, y)
        d = math.sqrt((x - a) ** 2 + (y - b) ** 2)
        if abs(y - b) < 0.00001 and 0 < d <= r:
            total += (x - a) / d
    return total


def twin_collide(cells, x_old, y_old, x, y, vx, vy):
    """All four substeps with every sweep and every query."""
    floors = ceilings = 0
    for _ in range(4):
        dx, dy = x - x_old, y - y_old
        t = twin_sweep(cells, x_old, y_old, dx, dy, 5.0)
        x, y = x_old + t * dx, y_old + t * dy
        for _ in range(32):
            side, a, b = twin_closest(cells, x, y, 10.0)
            dx, dy = (0.0 if abs(x - a) <= 1e-7 else x - a), y - b
            dist = math.sqrt(dx * dx + dy * dy)
            if side == 0 or dist == 0 or 10.0 - dist * side < 1e-7:
                break
            e = 10.0 - dist * side
            x, y = x + dx / dist * e, y + dy / dist * e
            if vx * dx + vy * dy < 0:
                c, q = vx * dy - vy * dx, dist * dist
                vx, vy = c / q * dy, c / q * (-dx)
            floors += dy < -0.0001
            ceilings += dy >= -0.0001
    return x, y, vx, vy, floors, ceilings


def random_level(seed):
    random = np.random.default_rng(seed)
    share = random.uniform(0.05, 0.5)
    tiles = np.where(random.random((23, 42)) < share, random.integers(0, 38, (23, 42)), 0)
    records = [(0, 90, 50, 0, 0)]
    for door in range(10):
        x, y = 4 * random.integers(4, 40), 4 * random.integers(4, 20)
        across = door % 2
        records.append((5, x + 2 * across, y + 2 * (1 - across), 2 * across, 0))
    return load_level(pack_level(tiles, records))


@pytest.fixture(scope="module", params=range(6))
def terrain(request):
    level = random_level(request.param)
    world = World([level], threads=1)
    tables = world.table.tables
    statics = (tables.levels[0], tables.segments, tables.doorways, world.doors, 0)
    return twin_cells(level), statics, np.random.default_rng(request.param), world


def places(random, count):
    """Points in the level, half of them near whole units, where ties and borders are."""
    free = random.uniform((0, 0), (1056, 600), (count, 2))
    return np.where(random.random((count, 1)) < 0.5, np.round(free / 2) * 2, free).tolist()


def test_the_closest_point_is_that_of_a_full_search(terrain):
    cells, statics, random, _ = terrain
    for x, y in places(random, 400):
        for r in (8.0, 10.0):
            assert queries.closest(*statics, x, y, r) == twin_closest(cells, x, y, r)


def test_a_sweep_stops_where_a_sweep_over_all_segments_stops(terrain):
    cells, statics, random, _ = terrain
    stopped = 0
    for x, y in places(random, 400):
        vx, vy = random.normal(0, 4, 2).tolist()
        got = queries.sweep(*statics, x, y, vx, vy, 5.0)
        stopped += got < 1
        assert got == twin_sweep(cells, x, y, vx, vy, 5.0)
    assert stopped > 10


def test_wall_normals_sum_over_all_segments_in_reach(terrain):
    cells, statics, random, _ = terrain
    walls = 0
    for x, y in places(random, 800):
        got = queries.wall_normals(*statics, x, y, 0.0)
        walls += got != 0
        assert got == twin_wall_normals(cells, x, y)
    assert walls > 10


def test_skipped_substeps_and_sweeps_change_no_bit(terrain):
    cells, (level, segments, doorways, doors, _), random, world = terrain
    tables, pushed = world.table.tables, 0
    for x, y in places(random, 150):
        for _ in range(3):
            ninja = world.worlds[0]
            vx, vy = random.normal(0, 2, 2).tolist()
            x_old, y_old = x, y
            ninja["x_old"], ninja["y_old"], ninja["x"], ninja["y"] = x, y, x + vx, y + vy
            ninja["vx"], ninja["vy"] = vx, vy
            ninja["floor_contacts"] = ninja["ceiling_contacts"] = 0
            collide(
                level, ninja, segments, tables.things, doorways,
                world.entities, world.movers, doors, None, 0,
            )  # fmt: skip
            want = twin_collide(cells, x_old, y_old, x + vx, y + vy, vx, vy)
            names = ("x", "y", "vx", "vy", "floor_contacts", "ceiling_contacts")
            assert tuple(ninja[name] for name in names) == want
            pushed += sum(want[4:])
            x, y = want[:2]
        ninja["clearance"] = 0.0
    assert pushed > 50


def test_an_isolated_tile_has_a_closed_outline():
    for tile in range(1, 34):
        tiles = np.zeros((23, 42), np.uint8)
        tiles[10, 10] = tile
        level = load_level(pack_level(tiles, [(0, 90, 50, 0, 0)]))
        degree = {}
        for kind, x1, y1, px, py, _ in twin_cells(level)[11, 11]:
            ends = [(x1, y1), (x1 + px, y1 + py)]
            if kind:
                ends = [(x1 + 24 * px, y1), (x1, y1 + 24 * py)]
            for end in ends:
                degree[end] = degree.get(end, 0) + 1
        assert degree
        assert all(count == 2 for count in degree.values()), tile
