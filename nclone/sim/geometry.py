"""Geometric primitives (specification, section 5): closest points and times of impact.

Every expression keeps the order of the specification, because trajectories must match bit for
bit. `x * x` is a square, never a library power.
"""

from __future__ import annotations

import math

from nclone.sim.compile import device

ARC_RADIUS = 24.0


@device
def closest_on_line(x, y, x1, y1, px, py):
    """Closest point (a, b) of the line x1, y1 .. +px, +py, and whether it is seen from behind."""
    dx = x - x1
    dy = y - y1
    u = (dx * px + dy * py) / (px * px + py * py)
    if u < 0.0:
        u = 0.0
    elif u > 1.0:
        u = 1.0
    return x1 + u * px, y1 + u * py, dy * px - dx * py < 0.0


@device
def closest_on_arc(x, y, cx, cy, qh, qv, convex):
    """Closest point (a, b) of a quarter circle of radius 24, and whether it is seen from behind."""
    dx = x - cx
    dy = y - cy
    if dx * qh > 0.0 and dy * qv > 0.0:
        d = math.sqrt(dx * dx + dy * dy)
        back = d < ARC_RADIUS if convex else d > ARC_RADIUS
        return cx + ARC_RADIUS * dx / d, cy + ARC_RADIUS * dy / d, back
    if dx * qh > dy * qv:
        return cx + ARC_RADIUS * qh, cy, False
    return cx, cy + ARC_RADIUS * qv, False


@device
def time_to_point(x, y, vx, vy, a, b, r):
    """First time in [0, 1] at which a disc of radius r at x, y touches a point; 1 if never."""
    dx = x - a
    dy = y - b
    apart = dx * dx + dy * dy - r * r
    if apart > 0.0:
        v2 = vx * vx + vy * vy
        p = dx * vx + dy * vy
        w = p * p - v2 * apart
        if v2 > 0.0001 and p < 0.0 and w >= 0.0:
            return (-p - math.sqrt(w)) / v2
        return 1.0
    return 0.0


@device
def time_to_line(x, y, vx, vy, a1, b1, wx, wy, r):
    """First time at which a disc touches the inside of the line a1, b1 .. +wx, +wy; 1 if never."""
    length = math.sqrt(wx * wx + wy * wy)
    nx = wx / length
    ny = wy / length
    n = (x - a1) * ny - (y - b1) * nx
    g = (x - a1) * nx + (y - b1) * ny
    if abs(n) >= r:
        c = vx * ny - vy * nx
        if c * n < 0.0:
            t = min((abs(n) - r) / abs(c), 1.0)
            g2 = g + t * (vx * nx + vy * ny)
            if 0.0 <= g2 <= length:
                return t
    elif 0.0 <= g <= length:
        return 0.0
    return 1.0


@device
def time_to_arc(x, y, vx, vy, cx, cy, qh, qv, r):
    """First time at which a disc touches the inside of a quarter circle; 1 if never."""
    dx = x - cx
    dy = y - cy
    d2 = dx * dx + dy * dy
    v2 = vx * vx + vy * vy
    p = dx * vx + dy * vy
    outer = ARC_RADIUS + r
    inner = ARC_RADIUS - r
    t = 1.0
    if d2 > outer * outer:
        w = p * p - v2 * (d2 - outer * outer)
        if v2 > 0.0001 and p < 0.0 and w >= 0.0:
            t = (-p - math.sqrt(w)) / v2
    elif d2 < inner * inner:
        w = p * p - v2 * (d2 - inner * inner)
        if v2 > 0.0001:
            t = min((-p + math.sqrt(w)) / v2, 1.0)
    else:
        t = 0.0
    if (dx + t * vx) * qh > 0.0 and (dy + t * vy) * qv > 0.0:
        return t
    return 1.0


@device
def touch(x1, y1, r1, x2, y2, r2):
    """Whether two circles overlap; touching from outside does not count."""
    dx = x1 - x2
    dy = y1 - y2
    return math.sqrt(dx * dx + dy * dy) < r1 + r2


@device
def square_penetration(sx, sy, x, y, s):
    """Normal (nx, ny), depth along it and depth across it of a point in a square of half side s.

    The normal is (0, 0) if the point is outside.
    """
    dx = x - sx
    dy = y - sy
    ex = s - abs(dx)
    ey = s - abs(dy)
    if not (ex > 0.0 and ey > 0.0):
        return 0.0, 0.0, 0.0, 0.0
    if ey <= ex:
        return 0.0, -1.0 if dy < 0.0 else 1.0, ey, ex
    return -1.0 if dx < 0.0 else 1.0, 0.0, ex, ey


@device
def circle_meets_segment(x, y, r, x1, y1, px, py):
    """Whether a circle overlaps the line x1, y1 .. +px, +py."""
    a, b, _ = closest_on_line(x, y, x1, y1, px, py)
    return (x - a) * (x - a) + (y - b) * (y - b) < r * r


@device
def grid_index(v, size, last):
    """floor(v / size) limited to 0..last; anything that is no number becomes 0."""
    q = v / size
    if not q > 0.0:
        return 0
    if q >= last:
        return last
    return int(q)


@device
def half_index(v):
    """floor(v / 12) as an integer, limited to -1000..1000 so that no value can overflow."""
    q = v / 12.0
    if not q > -1000.0:
        return -1000
    if q >= 1000.0:
        return 1000
    whole = int(q)
    return whole - 1 if q < whole else whole


@device
def cell_of(x, y):
    """Cell of a point: column * 25 + row, limited to the level."""
    return grid_index(x, 24.0, 43) * 25 + grid_index(y, 24.0, 24)
