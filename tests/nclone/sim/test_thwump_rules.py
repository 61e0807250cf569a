"""Thwumps, the kind that charges and the kind that is shoved, in all four directions."""

import itertools

import pytest

from nclone.sim import state as st

THWUMP, SHOVE = 20, 28
FORWARD, BACK = 20.0 / 7.0, 8.0 / 7.0
WAYS = [(0, (1, 0)), (2, (0, 1)), (4, (-1, 0)), (6, (0, -1))]
"""Orientation and the direction of the charge."""
HOME = (492.0, 276.0)
ROOM = ["." * 40] * 22


def facing(stage, orientation, **values):
    """A thwump in the middle of a large room, and a ninja far from it, in the air."""
    room = stage(f"thwump 82 46 facing {orientation}", rows=ROOM)
    return room.put(**{"x": 100.0, "y": 100.0, "state": st.FALLING, "airborn": 1, **values})


def beside(way, ahead, across):
    """A place so far ahead of home in the direction of the charge, and so far beside it."""
    ex, ey = way
    return {"x": HOME[0] + ahead * ex + across * ey, "y": HOME[1] + ahead * ey + across * ex}


def went(room, way, kind=THWUMP):
    """How far it is ahead of its home, and how far beside."""
    x, y = room.place(kind)
    dx, dy = x - HOME[0], y - HOME[1]
    return dx * way[0] + dy * way[1], dx * way[1] + dy * way[0]


@pytest.mark.parametrize(("orientation", "way"), WAYS)
def test_a_ninja_in_the_lane_ahead_starts_it(stage, orientation, way):
    room = facing(stage, orientation, **beside(way, 120.0, 20.0)).play()
    assert int(room.entity(THWUMP)["state"]) == 1
    assert went(room, way) == (0.0, 0.0)
    room.play()
    assert went(room, way) == (pytest.approx(FORWARD), 0.0)


@pytest.mark.parametrize(("orientation", "way"), WAYS)
@pytest.mark.parametrize("across", [-38.5, -37.5, 37.5, 38.5])
def test_the_lane_reaches_38_px_to_both_sides(stage, orientation, way, across):
    room = facing(stage, orientation, **beside(way, 120.0, across)).play()
    assert int(room.entity(THWUMP)["state"]) == (abs(across) < 38)


@pytest.mark.parametrize(("orientation", "way"), WAYS)
def test_a_ninja_behind_does_not_start_it(stage, orientation, way):
    room = facing(stage, orientation, **beside(way, -60.0, 0.0)).play()
    assert int(room.entity(THWUMP)["state"]) == 0


@pytest.mark.parametrize("ended", [st.DEAD, st.WON])
def test_it_looks_for_nobody_who_is_out_of_the_game(stage, ended):
    room = facing(stage, 0, **beside((1, 0), 120.0, 0.0)).put(
        **beside((1, 0), 120.0, 0.0), state=ended
    )
    room.play()
    assert int(room.entity(THWUMP)["state"]) == 0


@pytest.mark.parametrize(("beyond", "starts"), [(False, True), (True, False)])
def test_it_does_not_see_through_a_wall(stage, beyond, starts):
    rows = ["." * 40] * 4
    rows = [row[:25] + "#" + row[26:] for row in rows]
    room = stage("thwump 46 10", rows=rows, ninja=(60, 108))
    room.put(x=700.0 if beyond else 580.0, y=60.0, state=st.FALLING, airborn=1).play()
    assert bool(room.entity(THWUMP)["state"] == 1) == starts


@pytest.mark.parametrize(("orientation", "way"), WAYS)
def test_it_charges_to_the_wall_and_creeps_home(stage, orientation, way):
    room = facing(stage, orientation, **beside(way, 120.0, 30.0)).play()
    room.put(x=100.0, y=100.0, state=st.DEAD)
    path = [went(room.play(), way) for _ in range(600)]
    ahead = [a for a, _ in path]
    turn = ahead.index(max(ahead))
    steps = [b - a for a, b in itertools.pairwise(ahead)]
    assert all(step == pytest.approx(FORWARD) for step in steps[:turn])
    home = ahead.index(0.0, turn)
    back = [step for step in steps[turn : home - 1] if step]
    assert all(step == pytest.approx(-BACK) for step in back)
    assert -BACK <= steps[home - 1] < 0
    assert int(room.entity(THWUMP)["state"]) == 0
    assert all(side == 0.0 for _, side in path)


@pytest.mark.parametrize(("orientation", "way"), WAYS)
def test_it_stops_where_its_face_meets_the_wall(stage, orientation, way):
    wall = {(1, 0): 984.0, (-1, 0): 24.0, (0, 1): 552.0, (0, -1): 24.0}[way]
    room = facing(stage, orientation, **beside(way, 120.0, 30.0)).play()
    room.put(x=100.0, y=100.0, state=st.DEAD)
    furthest = max(went(room.play(), way)[0] for _ in range(300))
    to_wall = abs(wall - (HOME[0] if way[0] else HOME[1]))
    assert 0 <= to_wall - (furthest + 11.0) < FORWARD


def test_its_turn_at_a_wall_costs_a_frame(stage):
    room = facing(stage, 0, **beside((1, 0), 120.0, 30.0)).play()
    room.put(x=100.0, y=100.0, state=st.DEAD)
    places = [room.play().place(THWUMP)[0] for _ in range(300)]
    top = max(places)
    assert places.count(top) == 2


def test_its_face_kills_and_its_sides_do_not(stage):
    front = facing(stage, 0, x=HOME[0] + 19.05, y=HOME[1]).play()
    assert (front.state, front.cause) == (st.DEAD, st.BY_HAZARD)
    back = facing(stage, 0, x=HOME[0] - 19.05, y=HOME[1]).play()
    assert back.state != st.DEAD
    above = facing(stage, 0, x=HOME[0], y=HOME[1] - 19.05).play()
    assert above.state != st.DEAD


def test_a_ninja_stands_on_a_thwump(stage):
    room = facing(stage, 2, x=HOME[0], y=HOME[1] - 25.0).play(frames=30)
    assert room.airborn == 0
    assert room.y == pytest.approx(HOME[1] - 19.0)


def test_the_back_of_a_thwump_is_a_wall(stage):
    room = facing(stage, 0, x=HOME[0] - 19.05, y=HOME[1]).play()
    assert (room.walled, room.wall_normal) == (1, -1)


def test_a_thwump_crushes_a_ninja_against_a_wall(stage):
    rows = ["." * 6] * 2
    room = stage("thwump 10 10 facing 4", rows=rows, ninja=(156, 60))
    deadly = False
    for gap in (28.0, 27.0, 26.0, 24.0):
        room.world.reset()
        room.put(x=60.0 - gap, y=60.0, state=st.FALLING, airborn=1).play(frames=3)
        deadly |= room.state == st.DEAD
    assert deadly


def shoved(stage, x, y, **values):
    """A shove thwump in the middle of a large room, and a ninja at a place beside it."""
    room = stage("shove_thwump 82 46", rows=ROOM)
    return room.put(x=x, y=y, state=st.FALLING, airborn=1, **values)


SIDES = [(-1, 0), (1, 0), (0, -1)]


@pytest.mark.parametrize("side", SIDES)
def test_leaning_on_a_shove_thwump_arms_it(stage, side):
    room = shoved(stage, HOME[0] + 21.5 * side[0], HOME[1] + 21.5 * side[1]).play()
    mover = room.mover(SHOVE)
    assert int(room.entity(SHOVE)["state"]) == 1
    assert (float(mover["tx"]), float(mover["ty"])) == side
    assert room.place(SHOVE) == HOME


@pytest.mark.parametrize("side", SIDES)
def test_letting_go_launches_it_away_from_the_ninja(stage, side):
    room = shoved(stage, HOME[0] + 21.5 * side[0], HOME[1] + 21.5 * side[1]).play()
    room.put(x=100.0, y=100.0).play()
    room.put(x=100.0, y=100.0).play()
    x, y = room.place(SHOVE)
    assert (x - HOME[0], y - HOME[1]) == (-4.0 * side[0], -4.0 * side[1])
    assert int(room.entity(SHOVE)["state"]) == 2


def test_a_launched_one_runs_to_the_wall_and_creeps_home(stage):
    room = shoved(stage, HOME[0] - 21.5, HOME[1]).play()
    places = []
    for _ in range(900):
        places.append(room.put(x=100.0, y=100.0).play().place(SHOVE)[0] - HOME[0])
    top = max(places)
    assert 470 < top <= 984 - HOME[0]
    steps = [round(b - a, 9) for a, b in itertools.pairwise(places)]
    assert set(steps[: places.index(top)]) <= {0.0, 4.0}
    assert set(steps[places.index(top) :]) <= {0.0, -1.0}
    assert places[-1] == 0.0
    assert int(room.entity(SHOVE)["state"]) == 0


def test_an_armed_one_waits_as_long_as_the_ninja_leans_on_it(stage):
    room = shoved(stage, HOME[0], HOME[1] - 22.0).play(frames=60)
    assert int(room.entity(SHOVE)["state"]) == 1
    assert room.place(SHOVE) == HOME
    assert room.airborn == 0


@pytest.mark.parametrize(("offset", "dies"), [(17.99, True), (18.01, False)])
def test_the_core_of_one_under_way_kills(stage, offset, dies):
    room = shoved(stage, HOME[0] - 21.5, HOME[1]).play()
    for _ in range(10):
        room.put(x=100.0, y=100.0).play()
    x, y = room.place(SHOVE)
    room.put(x=x + 4.0, y=y - offset - st.GRAVITY_FALLING, state=st.FALLING, airborn=1).play()
    assert (room.state == st.DEAD) == dies
