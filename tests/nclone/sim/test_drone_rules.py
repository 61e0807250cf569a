"""Drones against a walk on paper: which way they turn, how fast they go, whom they kill."""

import itertools

import numpy as np
import pytest

from nclone.sim import state as st

ZAP, MINI = 14, 26
TURNS = {0: (1, 0, 3, 2), 1: (3, 0, 1, 2), 2: (0, 1, 3, 2), 3: (0, 3, 1, 2)}
"""By mode, what is tried at a corner: 1 turns clockwise, 3 the other way, 2 back."""
UNIT = {0: (1, 0), 1: (0, 1), 2: (-1, 0), 3: (0, -1)}
SPEED = {ZAP: 8.0 / 7.0, MINI: 1.3}
RADIUS = {ZAP: 7.5, MINI: 4.0}
STRIDE = {ZAP: 24, MINI: 12}
NAME = {ZAP: "zap_drone", MINI: "mini_drone"}
MAZE = [
    "............",
    ".##.#.##.##.",
    "....#.......",
    ".##...#.###.",
    ".#..#.#.....",
    "...#......#.",
]


def solid(rows, x, y):
    """Whether a point lies in a full tile; the drawing begins one tile inside the level."""
    column, row = int(x // 24) - 1, int(y // 24) - 1
    inside = 0 <= row < len(rows) and 0 <= column < len(rows[row])
    return not inside or rows[row][column] == "#"


def way_is_free(rows, x, y, direction, kind):
    """Whether the box of a drone meets no full tile on its way to the next target."""
    ex, ey = UNIT[direction]
    radius, stride = RADIUS[kind], STRIDE[kind]
    ahead = (*np.arange(0.0, stride + radius), stride + radius)
    points = itertools.product(ahead, (-radius, 0.0, radius))
    return not any(solid(rows, x + a * ex + s * ey, y + a * ey + s * ex) for a, s in points)


def walk(rows, x, y, direction, mode, kind, steps):
    """Targets one after the other, by the list of the mode."""
    path = []
    for _ in range(steps):
        for turn in TURNS[mode]:
            new = (direction + turn) % 4
            if way_is_free(rows, x, y, new, kind):
                direction = new
                x += STRIDE[kind] * UNIT[new][0]
                y += STRIDE[kind] * UNIT[new][1]
                break
        path.append((x, y))
    return path


def targets(room, kind, steps):
    """Where the drone goes next, each time that changes."""
    path, last = [], None
    for _ in range(40 * steps):
        room.play()
        goal = float(room.mover(kind)["tx"]), float(room.mover(kind)["ty"])
        if goal != last:
            path.append(goal)
            last = goal
        if len(path) == steps:
            return path
    return path


@pytest.mark.parametrize("mode", range(4))
@pytest.mark.parametrize("facing", [0, 2, 4, 6])
@pytest.mark.parametrize("kind", [ZAP, MINI])
def test_a_drone_walks_through_a_maze_as_on_paper(stage, kind, facing, mode):
    x, y = 24 * 4 + 12, 24 * 3 + 12
    line = f"{NAME[kind]} {x // 6} {y // 6} facing {facing} mode {mode}"
    room = stage(line, rows=MAZE, ninja=(36, 156)).put(state=st.DEAD)

    found = targets(room, kind, 30)

    assert found == walk(MAZE, x, y, facing // 2, mode, kind, 30)


@pytest.mark.parametrize("kind", [ZAP, MINI])
def test_a_drone_goes_at_its_own_speed(stage, kind):
    room = stage(f"{NAME[kind]} 22 22 mode 2").put(state=st.DEAD).play()
    x, y = room.place(kind)
    assert x == pytest.approx(132 + SPEED[kind])
    room.play(frames=5)
    assert room.place(kind) == (pytest.approx(x + 5 * SPEED[kind]), y)


@pytest.mark.parametrize("kind", [ZAP, MINI])
def test_a_drone_at_a_corner_carries_the_rest_of_its_step_round_it(stage, kind):
    rows = ["..", ".."]
    room = stage(f"{NAME[kind]} 6 6", rows=rows, ninja=(60, 60)).put(state=st.DEAD)
    places = [room.play() and room.place(kind) for _ in range(300)]
    steps = [abs(a - c) + abs(b - d) for (a, b), (c, d) in itertools.pairwise(places)]
    assert max(steps) == pytest.approx(SPEED[kind])
    assert min(steps) > 0


@pytest.mark.parametrize("kind", [ZAP, MINI])
def test_a_drone_without_a_way_stays_where_it_is(stage, kind):
    rows = ["######", "#.####", "######", "#....#"]
    room = stage(f"{NAME[kind]} 10 10 facing 4", rows=rows, ninja=(60, 108)).play(frames=50)
    assert room.place(kind) == (60.0, 60.0)
    assert int(room.entity(kind)["state"]) == 2


def test_a_drone_cannot_pass_a_closed_door_and_passes_an_open_one(stage):
    rows = ["........"]
    for door, passes in (
        ("locked_door 18 6 switch 38 6", False),
        ("trap_door 18 6 switch 38 6", True),
    ):
        room = stage("zap_drone 6 6 mode 2", door, rows=rows, ninja=(204, 36)).put(state=st.DEAD)
        furthest = max(room.play().place(ZAP)[0] for _ in range(150))
        assert (furthest > 108) == passes, door


@pytest.mark.parametrize(("kind", "reach"), [(ZAP, 17.5), (MINI, 14.0)])
@pytest.mark.parametrize("gap", [-0.01, 0.01])
def test_a_drone_kills_whom_it_touches(stage, kind, reach, gap):
    room = stage(f"{NAME[kind]} 22 22 mode 2")
    below = 132.0 + reach + gap - st.GRAVITY_FALLING
    room.put(x=132.0 + SPEED[kind], y=below, state=st.FALLING, airborn=1).play()
    assert (room.state == st.DEAD) == (gap < 0)
    assert room.cause == (st.BY_HAZARD if gap < 0 else st.NOT_DEAD)


def test_a_drone_does_nothing_to_whoever_has_won(stage):
    room = stage("zap_drone 22 22").put(x=132.0, y=132.0, state=st.WON, airborn=1).play(frames=3)
    assert (room.state, room.cause) == (st.WON, st.NOT_DEAD)
