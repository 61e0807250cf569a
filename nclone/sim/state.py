"""What a world and a level are in memory: record layouts, constants, codes.

A world is one `WORLD` record and one row each of entity, mover and door records; a level is one
`LEVEL` record and a range in each of the static tables. Kernels receive records, which are plain
pointers, so that a call passes few words and allocates nothing.
"""

from __future__ import annotations

import numpy as np

from nclone.geometry import COLUMNS, ROWS

CELLS = COLUMNS * ROWS
"""Cells are numbered column * 25 + row, the order in which queries visit them."""

# States of the ninja.
STANDING, RUNNING, SLIDING, JUMPING, FALLING, WALL_SLIDING, DEAD, KILLED, WON = range(9)
# Causes of death.
NOT_DEAD, BY_MINE, BY_IMPACT, BY_HAZARD, BY_OTHER = range(5)
# Events of the frames since the last call, one bit each.
SWITCH_HIT, DOOR_OPENED, DOOR_CLOSED, GOLD_TAKEN = 1, 2, 4, 8
BUFFERED_JUMP, JUMPED, DIED, COMPLETED = 16, 32, 64, 128
# What a step does when the episode has ended.
RUN_ON, STOP, RESTART = range(3)

GRAVITY_FALLING = 0.06666666666666665
GRAVITY_JUMPING = 0.01111111111111111
DRAG = 0.9933221725495059
DRAG_SLOW = 0.8617738760127536
FRICTION_GROUND = 0.9459290248857720
FRICTION_SLOW = 0.8617738760127536
FRICTION_WALL = 0.9113380468927672
MAX_INPUT_SPEED = 3.333333333333333
MAX_JUMP_FRAMES = 45
NINJA_RADIUS = 10.0

# fmt: off
_FLOATS = (
    "x", "y", "vx", "vy", "x_old", "y_old", "vx_old", "vy_old", "vx_before", "vy_before",
    "gravity", "drag", "friction", "floor_x", "floor_y", "ceiling_x", "ceiling_y",
    "launch_x", "launch_y", "floor_sum_x", "floor_sum_y", "ceiling_sum_x", "ceiling_sum_y",
    "crush_x", "crush_y", "crush_length", "clearance",
)
_INTEGERS = ("level", "frame", "events", "restarts")
_SHORTS = ("floor_contacts", "ceiling_contacts", "gold", "mines_toggling", "pads_touching")
_BYTES = (
    "state", "airborn", "airborn_before", "walled", "wall_normal", "hor", "jump", "jump_before",
    "jump_buffer", "floor_buffer", "wall_buffer", "launch_buffer", "jump_time", "crushable",
    "cause",
)
# fmt: on

WORLD = np.dtype(
    [(name, np.float64) for name in _FLOATS]
    + [(name, np.int32) for name in _INTEGERS]
    + [("crowd", np.uint32, (COLUMNS,)), ("head", np.int16, (CELLS,))]
    + [(name, np.int16) for name in _SHORTS]
    + [(name, np.int8) for name in _BYTES],
    align=True,
)
"""The ninja and the entity grid of one world.

Positions in px, velocities in px per frame. `*_old` is the value after integration, before
collisions; `*_before` the value at the start of the frame; `clearance` a lower bound in px of the
distance to the nearest segment (0 = unknown). `crowd[column]` has bit `row` set where the cell's
list of entities is not empty; `head[cell]` is the first entity of that list, -1 if none.
"""

ENTITY = np.dtype(
    [("state", np.int8), ("active", np.int8), ("flag", np.int16), ("cell", np.int16)]
    + [("next", np.int16)],
    align=True,
)
"""What changes about any entity. `flag` is a shove thwump's `act`; `next` follows in the cell."""

MOVER = np.dtype([(name, np.float64) for name in ("x", "y", "vx", "vy", "tx", "ty")], align=True)
"""What changes about types 14, 17, 20, 25, 26, 28. `t` is a drone's target or a shove direction."""

DOOR = np.dtype([("edges", np.int32), ("closed", np.int8), ("timer", np.int8)], align=True)
"""A door: what it adds to the counters of its two edges, whether its segment collides."""

LEVEL = np.dtype(
    [
        ("spawn_x", np.float64),
        ("spawn_y", np.float64),
        ("first_segment", np.int32),
        ("first_entity", np.int32),
        ("entities", np.int32),
        ("first_mover", np.int32),
        ("movers", np.int32),
        ("first_door", np.int32),
        ("doors", np.int32),
        ("first_ball", np.int32),
        ("balls", np.int32),
        ("balls_declared", np.int32),
        ("physical", np.int32),
        ("lists", np.int32, (5,)),
        ("solid", np.uint32, (COLUMNS,)),
        ("doorways", np.uint32, (COLUMNS,)),
        ("near_doors", np.uint32, (COLUMNS,)),
        ("watched", np.uint32, (COLUMNS,)),
        ("crowd", np.uint32, (COLUMNS,)),
        ("head", np.int16, (CELLS,)),
        ("segments", np.uint16, (CELLS + 1,)),
        ("edges", np.int8, (2, 2 * COLUMNS, 2 * ROWS)),
    ],
    align=True,
)
"""What is fixed about a level. `segments[cell]` counts from `first_segment`; `edges` holds 0 free,
1 blocked, 2 or 3 where doors add to a counter of 0 or 1; bit sets as in `WORLD`; `lists` are the
ends of the level's index lists (`MOVING`, `THINKING`, `WATCHED`, `EXITS`)."""

MOVING, THINKING, WATCHED, EXITS = range(4)
LIVELY = np.int64(1)
"""What kernels get where a level has something that moves, thinks or pushes; else None."""

SEGMENT = np.dtype(
    [(name, np.float32) for name in ("x1", "y1", "px", "py", "x_min", "y_min", "x_max", "y_max")]
    + [("kind", np.int32)],
    align=True,
)
"""A line from (x1, y1) to (x1 + px, y1 + py), or an arc: centre and quadrant signs. All values are
whole numbers, which float32 holds exactly; kernels compute in float64."""

LINE, CONVEX, CONCAVE = range(3)

THING = np.dtype(
    [("x", np.float64), ("y", np.float64), ("nx", np.float64), ("ny", np.float64)]
    + [("kind", np.int32), ("orientation", np.int32), ("mode", np.int32)]
    + [("mover", np.int32), ("door", np.int32)],
    align=True,
)
"""What is fixed about an entity: place, orientation vector, its row among movers and doors."""

DOORWAY = np.dtype(
    [(name, np.float64) for name in ("x1", "y1", "x2", "y2")]
    + [(name, np.int32) for name in ("cell", "vertical", "hx", "hy", "hx2", "hy2")],
    align=True,
)
"""What is fixed about a door: its segment, the cell that owns it, its two half-grid edges."""
