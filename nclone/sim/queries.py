"""Questions about the segments of a level: closest point, sweep, wall contact (5.2, 5.3, 7.3).

A query visits columns, then rows, then the segments of a cell in their stored order; a cell's
doors come after its tile segments. Ties and sums depend on that order.
"""

from __future__ import annotations

import math

import numpy as np

from nclone.sim.compile import device, inlined
from nclone.sim.geometry import (
    ARC_RADIUS,
    closest_on_arc,
    closest_on_line,
    grid_index,
    time_to_arc,
    time_to_line,
    time_to_point,
)
from nclone.sim.state import CONVEX, LINE

FAR = 9999999.0
FRONT_BONUS = 0.1
MARGIN = 0.01
"""Added to bounding boxes, px: more than any rounding, so that a rejected segment cannot matter."""
WALL_REACH = 10.0 + 0.1


@inlined
def rows_between(first, last):
    """Bit set of the rows first..last."""
    return (2 << last) - (1 << first)


@device
def any_bit(bits, c0, c1, mask):
    """Whether a bit set over cells has a bit of the rows `mask` in the columns c0..c1."""
    found = np.int64(0)
    for c in range(c0, c1 + 1):
        found |= np.int64(bits[c])
    return found & mask != 0


@device
def closest(level, segments, doorways, doors, w, x, y, r):
    """Best contact point: (side, a, b), side +1 seen from the front, -1 from behind, 0 none."""
    c0 = grid_index(x - r, 24.0, 43)
    c1 = grid_index(x + r, 24.0, 43)
    r0 = grid_index(y - r, 24.0, 24)
    r1 = grid_index(y + r, 24.0, 24)
    mask = rows_between(r0, r1)
    best = FAR
    side = 0
    best_a = 0.0
    best_b = 0.0
    step = r1 - r0
    if level.doors > 0 and any_bit(level.doorways, c0, c1, mask):
        step = 0
    for c in range(c0, c1 + 1):
        if np.int64(level.solid[c]) & mask == 0 and step > 0:
            continue
        row = r0
        while row <= r1:
            cell = c * 25 + row
            first = level.first_segment + np.int64(level.segments[cell])
            last = level.first_segment + np.int64(level.segments[cell + step + 1])
            for i in range(first, last):
                s = segments[i]
                if s.kind == LINE:
                    a, b, back = closest_on_line(
                        x, y, np.float64(s.x1), np.float64(s.y1), np.float64(s.px), np.float64(s.py)
                    )
                else:
                    a, b, back = closest_on_arc(
                        x,
                        y,
                        np.float64(s.x1),
                        np.float64(s.y1),
                        np.float64(s.px),
                        np.float64(s.py),
                        s.kind == CONVEX,
                    )
                k = (x - a) * (x - a) + (y - b) * (y - b)
                if not back:
                    k -= FRONT_BONUS
                if k < best:
                    best = k
                    best_a = a
                    best_b = b
                    side = -1 if back else 1
            if step == 0 and level.doorways[c] >> np.uint32(row) & np.uint32(1):
                for d in range(level.doors):
                    door = doorways[level.first_door + d]
                    if door.cell == cell and doors[w, d].closed:
                        a, b, _ = closest_on_line(
                            x, y, door.x1, door.y1, door.x2 - door.x1, door.y2 - door.y1
                        )
                        k = (x - a) * (x - a) + (y - b) * (y - b) - FRONT_BONUS
                        if k < best:
                            best = k
                            best_a = a
                            best_b = b
                            side = 1
            row += step + 1
    return side, best_a, best_b


@device
def time_to_segment(x, y, vx, vy, kind, x1, y1, px, py, r):
    """First time in [0, 1] at which a disc touches a segment or its ends; 1 if never."""
    if kind == LINE:
        t = time_to_point(x, y, vx, vy, x1, y1, r)
        t = min(t, time_to_point(x, y, vx, vy, x1 + px, y1 + py, r))
        return min(t, time_to_line(x, y, vx, vy, x1, y1, px, py, r))
    t = time_to_point(x, y, vx, vy, x1 + ARC_RADIUS * px, y1, r)
    t = min(t, time_to_point(x, y, vx, vy, x1, y1 + ARC_RADIUS * py, r))
    return min(t, time_to_arc(x, y, vx, vy, x1, y1, px, py, r))


@device
def sweep(level, segments, doorways, doors, w, x, y, vx, vy, r):
    """Part of the way vx, vy that a disc of radius r can go from x, y before it touches anything.

    A segment whose box is further than r from the box of the way cannot give a time below 1.
    """
    x_low = min(x, x + vx)
    x_high = max(x, x + vx)
    y_low = min(y, y + vy)
    y_high = max(y, y + vy)
    reach = r + 1.0
    c0 = grid_index(x_low - reach, 24.0, 43)
    c1 = grid_index(x_high + reach, 24.0, 43)
    r0 = grid_index(y_low - reach, 24.0, 24)
    r1 = grid_index(y_high + reach, 24.0, 24)
    near = r + MARGIN
    x_low -= near
    y_low -= near
    x_high += near
    y_high += near
    mask = rows_between(r0, r1)
    t = 1.0
    for c in range(c0, c1 + 1):
        if np.int64(level.solid[c]) & mask == 0:
            continue
        first = level.first_segment + np.int64(level.segments[c * 25 + r0])
        last = level.first_segment + np.int64(level.segments[c * 25 + r1 + 1])
        for i in range(first, last):
            s = segments[i]
            if s.x_min > x_high or s.x_max < x_low or s.y_min > y_high or s.y_max < y_low:
                continue
            t = min(
                t,
                time_to_segment(
                    x,
                    y,
                    vx,
                    vy,
                    s.kind,
                    np.float64(s.x1),
                    np.float64(s.y1),
                    np.float64(s.px),
                    np.float64(s.py),
                    r,
                ),
            )
    if level.doors > 0 and any_bit(level.doorways, c0, c1, mask):
        for d in range(level.doors):
            door = doorways[level.first_door + d]
            column = door.cell // 25
            row = door.cell - 25 * column
            if doors[w, d].closed and c0 <= column <= c1 and r0 <= row <= r1:
                px = door.x2 - door.x1
                py = door.y2 - door.y1
                t = min(t, time_to_segment(x, y, vx, vy, LINE, door.x1, door.y1, px, py, r))
    return t


@device
def wall_push(x, y, a, b):
    """What one closest point adds to the sum of wall normals: about -1, 0 or 1."""
    dy = y - b
    if abs(dy) < 0.00001:
        dx = x - a
        d = math.sqrt(dx * dx + dy * dy)
        if 0.0 < d <= WALL_REACH:
            return dx / d
    return 0.0


@inlined
def wall_normals(level, segments, doorways, doors, w, x, y, total):
    """`total` plus the normals of all walls in reach, in query order."""
    c0 = grid_index(x - WALL_REACH, 24.0, 43)
    c1 = grid_index(x + WALL_REACH, 24.0, 43)
    r0 = grid_index(y - WALL_REACH, 24.0, 24)
    r1 = grid_index(y + WALL_REACH, 24.0, 24)
    mask = rows_between(r0, r1)
    step = r1 - r0
    if level.doors > 0 and any_bit(level.doorways, c0, c1, mask):
        step = 0
    x_low = x - WALL_REACH - MARGIN
    x_high = x + WALL_REACH + MARGIN
    for c in range(c0, c1 + 1):
        if np.int64(level.solid[c]) & mask == 0 and step > 0:
            continue
        row = r0
        while row <= r1:
            cell = c * 25 + row
            first = level.first_segment + np.int64(level.segments[cell])
            last = level.first_segment + np.int64(level.segments[cell + step + 1])
            for i in range(first, last):
                s = segments[i]
                if (
                    y < s.y_min - MARGIN
                    or y > s.y_max + MARGIN
                    or s.x_min > x_high
                    or s.x_max < x_low
                ):
                    continue
                if s.kind == LINE:
                    a, b, _ = closest_on_line(
                        x, y, np.float64(s.x1), np.float64(s.y1), np.float64(s.px), np.float64(s.py)
                    )
                else:
                    a, b, _ = closest_on_arc(
                        x,
                        y,
                        np.float64(s.x1),
                        np.float64(s.y1),
                        np.float64(s.px),
                        np.float64(s.py),
                        s.kind == CONVEX,
                    )
                total += wall_push(x, y, a, b)
            if step == 0 and level.doorways[c] >> np.uint32(row) & np.uint32(1):
                for d in range(level.doors):
                    door = doorways[level.first_door + d]
                    if door.cell == cell and doors[w, d].closed:
                        a, b, _ = closest_on_line(
                            x, y, door.x1, door.y1, door.x2 - door.x1, door.y2 - door.y1
                        )
                        total += wall_push(x, y, a, b)
            row += step + 1
    return total
