"""Geometric kernels against twins that follow the specification word by word."""

import math

import numpy as np
import pytest

from nclone.sim import geometry as g

LINES = [(0, 24, 24, -24), (12, 0, -12, 0), (24, 12, 0, -12), (0, 12, 24, 12), (24, 24, -12, -24)]
ARCS = [(cx, cy, qh, qv) for cx in (0, 24) for cy in (0, 24) for qh in (-1, 1) for qv in (-1, 1)]


def places(count=200):
    """Points around a tile, some of them on whole and half units."""
    free = np.random.default_rng(5).uniform(-30, 54, (count, 2))
    return np.vstack([free, np.round(free), np.round(free * 2) / 2])


def twin_closest_on_line(x, y, x1, y1, px, py):
    dx, dy = x - x1, y - y1
    u = min(max((dx * px + dy * py) / (px**2 + py**2), 0.0), 1.0)
    return x1 + u * px, y1 + u * py, dy * px - dx * py < 0


def twin_closest_on_arc(x, y, cx, cy, qh, qv, convex):
    dx, dy = x - cx, y - cy
    if dx * qh > 0 and dy * qv > 0:
        d = math.sqrt(dx * dx + dy * dy)  # one power in a thousand is not the product
        return cx + 24.0 * dx / d, cy + 24.0 * dy / d, d < 24 if convex else d > 24
    if dx * qh > dy * qv:
        return cx + 24.0 * qh, cy, False
    return cx, cy + 24.0 * qv, False


def first_touch(x, y, vx, vy, r, distance):
    """First of 20 001 instants at which `distance` of the moving place is at most r; 1 if never."""
    t = np.linspace(0.0, 1.0, 20001)
    touching = distance(x + t * vx, y + t * vy) <= r
    return t[np.argmax(touching)] if touching.any() else 1.0


def test_closest_point_on_a_line():
    for x, y in places():
        for line in LINES:
            got = g.closest_on_line(x, y, *map(float, line))
            assert got == twin_closest_on_line(x, y, *line)


@pytest.mark.parametrize("convex", [True, False])
def test_closest_point_on_an_arc(convex):
    for x, y in places():
        for arc in ARCS:
            got = g.closest_on_arc(x, y, *map(float, arc), convex)
            assert got == twin_closest_on_arc(x, y, *arc, convex)


def moves(count=40):
    rng = np.random.default_rng(6)
    return zip(rng.uniform(-30, 54, (count, 2)), rng.uniform(-9, 9, (count, 2)), strict=True)


def test_time_to_a_point_is_the_first_touch():
    for (x, y), (vx, vy) in moves():
        got = g.time_to_point(x, y, vx, vy, 12.0, 5.0, 5.0)
        want = first_touch(x, y, vx, vy, 5.0, lambda a, b: np.hypot(a - 12, b - 5))
        assert min(got, 1.0) == pytest.approx(want, abs=1e-4)


def test_time_to_a_line_with_its_ends_is_the_first_touch():
    for (x, y), (vx, vy) in moves():
        for line in LINES:
            ends = [(line[0], line[1]), (line[0] + line[2], line[1] + line[3])]
            got = g.time_to_line(x, y, vx, vy, *map(float, line), 5.0)
            got = min([got] + [g.time_to_point(x, y, vx, vy, *map(float, e), 5.0) for e in ends])

            def distance(a, b, line=line):
                x1, y1, px, py = line
                u = np.clip(((a - x1) * px + (b - y1) * py) / (px**2 + py**2), 0, 1)
                return np.hypot(a - x1 - u * px, b - y1 - u * py)

            assert got == pytest.approx(first_touch(x, y, vx, vy, 5.0, distance), abs=1e-4)


def twin_time_to_arc(x, y, vx, vy, cx, cy, qh, qv, r):
    dx, dy = x - cx, y - cy
    d2, v2, p = dx * dx + dy * dy, vx * vx + vy * vy, dx * vx + dy * vy
    t = 1.0
    if d2 > (24 + r) ** 2:
        w = p * p - v2 * (d2 - (24 + r) ** 2)
        if v2 > 0.0001 and p < 0 and w >= 0:
            t = (-p - math.sqrt(w)) / v2
    elif d2 < (24 - r) ** 2:
        w = p * p - v2 * (d2 - (24 - r) ** 2)
        if v2 > 0.0001:
            t = min((-p + math.sqrt(w)) / v2, 1.0)
    else:
        t = 0.0
    return t if (dx + t * vx) * qh > 0 and (dy + t * vy) * qv > 0 else 1.0


def test_time_to_an_arc_follows_the_formula():
    hits = 0
    for (x, y), (vx, vy) in moves(200):
        for arc in ARCS:
            got = g.time_to_arc(x, y, vx, vy, *map(float, arc), 5.0)
            assert got == twin_time_to_arc(x, y, vx, vy, *arc, 5.0)
            hits += 0 < got < 1
    assert hits > 20


def test_circles_that_only_touch_do_not_overlap():
    assert g.touch(0.0, 0.0, 4.0, 0.0, 13.999, 10.0)
    assert not g.touch(0.0, 0.0, 4.0, 0.0, 14.0, 10.0)


def twin_square_penetration(sx, sy, x, y, s):
    ex, ey = s - abs(x - sx), s - abs(y - sy)
    if ex <= 0 or ey <= 0:
        return 0, 0, 0, 0
    if ey <= ex:
        return 0, -1 if y < sy else 1, ey, ex
    return -1 if x < sx else 1, 0, ex, ey


def test_penetration_of_a_square():
    for x, y in places():
        assert g.square_penetration(12.0, 12.0, x, y, 19.0) == twin_square_penetration(
            12, 12, x, y, 19
        )


def test_a_circle_meets_a_segment_when_its_closest_point_is_inside():
    for x, y in places():
        for line in LINES:
            a, b, _ = twin_closest_on_line(x, y, *line)
            near = (x - a) ** 2 + (y - b) ** 2 < 144
            assert g.circle_meets_segment(x, y, 12.0, *map(float, line)) == near


def test_the_cell_of_a_point_is_limited_to_the_level():
    for x, y in [(0, 0), (23.9, 24), (1055.9, 599.9), (-1e9, 1e9), (1e300, -5), (-3, math.inf)]:
        column = min(max(math.floor(min(max(x, -1e6), 1e6) / 24), 0), 43)
        row = min(max(math.floor(min(max(y, -1e6), 1e6) / 24), 0), 24)
        assert g.cell_of(float(x), float(y)) == 25 * column + row


def test_what_is_no_number_has_a_cell_and_an_edge():
    assert g.cell_of(math.nan, math.nan) == 0
    assert g.half_index(math.nan) == -1000
    assert g.half_index(-0.5) == -1
    assert g.half_index(1e300) == 1000


@pytest.mark.parametrize("size", [12.0, 24.0])
def test_an_index_is_the_floor_on_both_sides_of_every_whole_number(size):
    whole = np.arange(-1010, 1011) * size
    places = np.concatenate([np.nextafter(whole, -np.inf), whole, np.nextafter(whole, np.inf)])
    for v in [*places, -0.0, 5e-324, -5e-324, 1e300, -1e300, math.inf, -math.inf]:
        floor = np.floor(v / size)
        assert (
            g.grid_index.py_func(v, size, 43) == g.grid_index(v, size, 43) == np.clip(floor, 0, 43)
        )
        if size == 12.0:
            limited = np.clip(floor, -1000, 1000)
            assert g.half_index.py_func(v) == g.half_index(v) == limited
