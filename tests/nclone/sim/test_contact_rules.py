"""What is touched: mines, gold, exits, doors and launch pads."""

import math

import pytest

from nclone.sim import state as st

MINE, GOLD, REGULAR, LOCKED, TRAP, TOGGLE = 1, 2, 5, 6, 8, 21
AT = (492.0, 156.0)
"""Where the entity of a test is, in the air of the hall: entity coordinates 82, 26."""
FALL = st.GRAVITY_FALLING
DEADLY, HARMLESS, TOGGLING = 0, 1, 2


def near(stage, line, distance, angle=0.0, **values):
    """A ninja that will be so far from the entity after the next frame."""
    room = stage(line)
    x, y = AT[0] + distance * math.cos(angle), AT[1] + distance * math.sin(angle)
    return room.put(x=x, y=y - FALL, state=st.FALLING, airborn=1, **values)


def hold(room, distance, **values):
    """Put the ninja at a distance, where it is after the next frame, and play that."""
    x = AT[0] + distance
    return room.put(x=x, y=AT[1] - FALL, state=st.FALLING, airborn=1, **values).play()


@pytest.mark.parametrize("angle", [0.0, 1.0, 2.5, 4.0])
@pytest.mark.parametrize(
    ("line", "reach", "event"),
    [
        ("gold 82 26", 16.0, st.GOLD_TAKEN),
        ("exit 120 26 switch 82 26", 16.0, st.SWITCH_HIT),
        ("locked_door 120 26 switch 82 26", 15.0, st.DOOR_OPENED),
        ("trap_door 120 26 switch 82 26", 15.0, st.DOOR_CLOSED),
        ("mine 82 26", 14.0, st.DIED),
    ],
)
def test_a_thing_is_touched_within_its_radius_and_the_ninjas(stage, line, reach, event, angle):
    assert near(stage, line, reach - 0.01, angle).play().events & event
    assert not near(stage, line, reach + 0.01, angle).play().events & event


def test_gold_is_taken_once(stage):
    room = near(stage, "gold 82 26", 5.0).play()
    assert (room.gold, int(room.entity(GOLD)["active"])) == (1, 0)
    hold(room, 5.0)
    assert (room.gold, room.events) == (1, 0)


def test_each_piece_of_gold_counts(stage):
    room = stage("gold 82 26", "gold 83 26", "gold 120 26").put(x=AT[0], y=AT[1]).play()
    assert room.gold == 2
    assert [int(room.entity(GOLD, i)["active"]) for i in range(3)] == [0, 0, 1]


def test_whoever_has_won_takes_no_gold(stage):
    room = near(stage, "gold 82 26", 5.0)
    room.put(x=room.x, y=room.y, state=st.WON).play()
    assert room.gold == 0


def test_an_exit_is_closed_until_its_switch_was_hit(stage):
    room = stage("exit 82 26 switch 120 26")
    hold(room, 0.0)
    assert room.state != st.WON
    room.put(x=720.0, y=AT[1], state=st.FALLING).play()
    assert room.events & st.SWITCH_HIT
    hold(room, 0.0)
    assert room.state == st.WON
    assert room.events & st.COMPLETED


@pytest.mark.parametrize(("distance", "wins"), [(21.9, True), (22.1, False)])
def test_an_open_exit_is_wider_than_gold(stage, distance, wins):
    room = stage("exit 82 26 switch 120 26").put(x=720.0, y=AT[1]).play()
    hold(room, distance)
    assert (room.state == st.WON) == wins


def test_an_exit_on_its_own_switch_is_won_the_frame_after(stage):
    room = stage("exit 82 26 switch 82 26")
    hold(room, 0.0)
    assert (room.state == st.WON, bool(room.events & st.SWITCH_HIT)) == (False, True)
    assert hold(room, 0.0).state == st.WON


def test_a_switch_opens_its_own_exit_only(stage):
    room = stage("exit 82 26 switch 120 26", "exit 40 26 switch 140 26").put(x=720.0, y=AT[1])
    room.play().put(x=240.0, y=AT[1], state=st.FALLING).play()
    assert room.state != st.WON
    assert hold(room, 0.0).state == st.WON


def test_the_dead_do_not_win(stage):
    room = stage("exit 82 26 switch 120 26").put(x=720.0, y=AT[1]).play()
    room.put(x=AT[0], y=AT[1], state=st.DEAD).play()
    assert (room.state, room.events) == (st.DEAD, 0)


def test_a_toggle_mine_is_deadly_once_the_ninja_has_left_it(stage):
    room = stage("toggle_mine 82 26")
    states = []
    for distance in (13.6, 13.4, 14.4, 14.6, 14.1, 13.9):
        hold(room, distance)
        states.append(int(room.entity(TOGGLE)["state"]))
    assert states == [HARMLESS, TOGGLING, TOGGLING, DEADLY, DEADLY, HARMLESS]
    assert room.cause == st.BY_MINE


def mine_after(stage, line, state, distance):
    """State of a mine that starts in a state and sees a ninja at a distance."""
    room = stage(line)
    row = room.row(MINE) if line.startswith("mine") else room.row(TOGGLE)
    room.world.entities["state"][0, row] = state
    room.world.worlds["mines_toggling"][0] = state == TOGGLING
    room.put(x=AT[0] + distance, y=AT[1], vx=60.0, state=st.FALLING, airborn=1).play()
    return int(room.world.entities["state"][0, row])


@pytest.mark.parametrize("line", ["mine 82 26", "toggle_mine 82 26"])
@pytest.mark.parametrize(
    ("state", "distance", "after"),
    [
        (HARMLESS, 13.4, TOGGLING),
        (HARMLESS, 13.6, HARMLESS),
        (TOGGLING, 14.4, TOGGLING),
        (TOGGLING, 14.6, DEADLY),
        (DEADLY, 60.0, DEADLY),
    ],
)
def test_both_kinds_of_mine_follow_one_table(stage, line, state, distance, after):
    assert mine_after(stage, line, state, distance) == after


def test_a_toggling_mine_goes_back_when_the_ninja_dies(stage):
    room = stage("toggle_mine 82 26")
    hold(room, 5.0)
    hold(room, 5.0)
    assert int(room.entity(TOGGLE)["state"]) == TOGGLING
    room.put(x=AT[0], y=AT[1], state=st.DEAD).play()
    assert int(room.entity(TOGGLE)["state"]) == HARMLESS


def test_a_mine_that_has_killed_is_harmless(stage):
    room = hold(stage("mine 82 26"), 5.0)
    assert (room.state, room.cause) == (st.DEAD, st.BY_MINE)
    assert int(room.entity(MINE)["state"]) == HARMLESS


CLOSED = {REGULAR: True, LOCKED: True, TRAP: False}
LINE = {
    REGULAR: "regular_door 82 26 facing {}",
    LOCKED: "locked_door 82 26 facing {} switch 120 40",
    TRAP: "trap_door 82 26 facing {} switch 120 40",
}


@pytest.mark.parametrize("kind", [REGULAR, LOCKED, TRAP])
def test_doors_begin_as_their_kind_does(stage, kind):
    room = stage(LINE[kind].format(0))
    assert bool(room.world.door_closed[0, 0]) == CLOSED[kind]


@pytest.mark.parametrize("kind", [LOCKED, TRAP])
@pytest.mark.parametrize("side", [-1, 1])
def test_a_closed_door_stops_the_ninja_from_both_sides(stage, kind, side):
    room = stage(LINE[kind].format(0))
    for hit in (False, True):
        if hit:
            room.put(x=720.0, y=240.0).play()
        start = {"x": AT[0] + side * 14.0, "y": AT[1], "state": st.FALLING, "airborn": 1}
        room.put(**start, vx=-5.0 * side).play(frames=4)
        passed = (room.x - AT[0]) * side < 0
        assert passed != (CLOSED[kind] != hit), hit


@pytest.mark.parametrize("side", [-1, 1])
def test_a_closed_door_of_the_other_orientation_is_a_floor_or_ceiling(stage, side):
    room = stage(LINE[LOCKED].format(2))
    room.put(x=AT[0], y=AT[1] + side * 14.0, vy=-4.0 * side, state=st.FALLING, airborn=1)
    room.play(frames=4)
    assert (room.y - AT[1]) * side >= 10.0 - 1e-6


def test_a_regular_door_opens_for_whom_it_touches_and_closes_after_five_frames(stage):
    room = hold(stage(LINE[REGULAR].format(0)), 19.9)
    assert room.events & st.DOOR_OPENED
    closed = []
    for _ in range(8):
        room.put(x=100.0, y=100.0, state=st.FALLING).play()
        closed.append(int(room.world.door_closed[0, 0]))
    assert closed == [0, 0, 0, 0, 0, 1, 1, 1]


def test_a_regular_door_that_is_touched_again_waits_again(stage):
    room = hold(stage(LINE[REGULAR].format(0)), 19.9)
    for _ in range(4):
        room.put(x=100.0, y=100.0, state=st.FALLING).play()
    hold(room, 19.9)
    assert not room.events & st.DOOR_OPENED
    closed = [int(room.put(x=100.0, y=100.0).play().world.door_closed[0, 0]) for _ in range(6)]
    assert closed == [0, 0, 0, 0, 0, 1]


def test_a_regular_door_does_not_open_from_further_away(stage):
    room = hold(stage(LINE[REGULAR].format(0)), 20.1)
    assert (room.events, int(room.world.door_closed[0, 0])) == (0, 1)


BOOST_SPEED = 36.0 / 7.0 * 2.0 / 3.0


@pytest.mark.parametrize(
    ("orientation", "normal", "factor"),
    [
        (0, (1.0, 0.0), 1.0),
        (2, (0.0, 1.0), 1.0),
        (4, (-1.0, 0.0), 1.0),
        (6, (0.0, -1.0), 2.0),
        (7, (math.sqrt(0.5), -math.sqrt(0.5)), 1.0 + math.sqrt(0.5)),
        (5, (-math.sqrt(0.5), -math.sqrt(0.5)), 1.0 + math.sqrt(0.5)),
        (1, (math.sqrt(0.5), math.sqrt(0.5)), 1.0),
    ],
)
def test_a_launch_pad_throws_along_its_orientation(stage, orientation, normal, factor):
    room = stage(f"launch_pad 82 26 facing {orientation}")
    start = {"x": AT[0] + 5 * normal[0], "y": AT[1] + 5 * normal[1]}
    room.put(**start, state=st.FALLING, airborn=1).play()
    assert room.vx == pytest.approx(normal[0] * BOOST_SPEED)
    assert room.vy == pytest.approx(normal[1] * BOOST_SPEED * factor)
    assert room.x == pytest.approx(start["x"] + room.vx)
    assert room.y == pytest.approx(start["y"] + room.vy, abs=0.1)
    assert (room.state, room.floor_buffer) == (st.FALLING, -1)


@pytest.mark.parametrize(("ahead", "thrown"), [(11.0, False), (9.9, True), (0.0, True)])
def test_a_launch_pad_throws_only_whoever_is_in_front_far_enough(stage, ahead, thrown):
    room = stage("launch_pad 82 26 facing 0").put(
        x=AT[0] + ahead, y=AT[1], state=st.FALLING, airborn=1
    )
    assert (room.play().vx > 0) == thrown


def test_a_press_right_after_a_pad_adds_to_its_throw(stage):
    room = stage("launch_pad 82 26 facing 6").put(
        x=AT[0], y=AT[1] - 5.0, state=st.FALLING, airborn=1
    )
    room.play()
    before = room.vy
    room.put(x=AT[0], y=100.0, vy=before).play(3)
    fall = before * st.DRAG + FALL
    assert room.vy == pytest.approx(fall - 1.7 * 2.0 / 3.0)
    assert room.events & st.JUMPED


@pytest.mark.parametrize("late", range(1, 7))
def test_that_press_counts_for_two_frames(stage, late):
    room = stage("launch_pad 82 26 facing 6").put(
        x=AT[0], y=AT[1] - 5.0, state=st.FALLING, airborn=1
    )
    room.play().put(x=AT[0], y=120.0, vy=room.vy)
    jumped = [bool(room.play(3 if f >= late else 0).events & st.JUMPED) for f in range(1, 8)]
    assert any(jumped) == (late <= 2)


def test_a_pad_to_the_side_adds_more_than_one_upwards(stage):
    room = stage("launch_pad 82 26 facing 0").put(
        x=AT[0] + 5.0, y=AT[1], state=st.FALLING, airborn=1
    )
    room.play()
    before = room.vx
    room.put(x=600.0, y=AT[1], vx=before).play(3)
    assert room.vx == pytest.approx(before * st.DRAG + 4.0 * 2.0 / 3.0)


def test_a_pad_revives_whoever_was_killed_in_the_same_frame(stage):
    room = stage("mine 82 26", "launch_pad 82 26 facing 0")
    room.put(x=AT[0] + 5.0, y=AT[1], state=st.FALLING, airborn=1).play()
    assert (room.state, room.cause) == (st.FALLING, st.NOT_DEAD)
    assert not room.events & st.DIED
