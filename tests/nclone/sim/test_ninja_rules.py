"""How the ninja moves, rule by rule of the specification's sections 6 and 7, on drawn rooms."""

import pytest

from nclone.sim import state as st

NOTHING, LEFT, RIGHT, JUMP, JUMP_LEFT, JUMP_RIGHT = range(6)
FLOOR = 302.0
"""Where the centre of a ninja rests on the floor of the hall."""
DRAG, FALL, RISE = 0.9933221725495059, 0.06666666666666665, 0.01111111111111111
ON_FLOOR, IN_AIR = 0.06666666666666665, 0.04444444444444444
FASTEST = 3.333333333333333


@pytest.fixture
def standing(stage):
    """A ninja that has come to rest in the middle of the hall's floor."""
    return stage().put(x=500.0, y=FLOOR).play(frames=3)


@pytest.fixture
def falling(stage):
    """A ninja in the middle of the hall, in the air for several frames."""
    return stage().put(x=500.0, y=100.0, state=st.FALLING, airborn=1)


def test_a_fall_is_drag_then_gravity_then_the_move(falling):
    falling.put(x=500.0, y=100.0, vx=2.0, vy=1.0).play()
    assert falling.vx == 2.0 * DRAG
    assert falling.vy == 1.0 * DRAG + FALL
    assert falling.x == 500.0 + 2.0 * DRAG
    assert falling.y == 100.0 + (1.0 * DRAG + FALL)


@pytest.mark.parametrize(("action", "sign"), [(LEFT, -1), (RIGHT, 1)])
def test_the_stick_in_the_air_counts_from_the_next_frame(falling, action, sign):
    falling.play(action)
    assert falling.x == 500.0
    assert falling.vx == sign * IN_AIR
    falling.play(action)
    assert falling.x == 500.0 + sign * IN_AIR * DRAG


def test_the_floor_gives_half_as_much_speed_again_as_the_air(standing):
    standing.play(RIGHT)
    assert standing.vx == ON_FLOOR
    assert standing.state == st.RUNNING


@pytest.mark.parametrize("speed", [3.33, -3.33])
def test_the_stick_adds_nothing_beyond_the_speed_of_a_run(falling, speed):
    falling.put(x=500.0, y=100.0, vx=speed).play(RIGHT if speed > 0 else LEFT)
    assert falling.vx == speed * DRAG


def test_who_is_faster_than_a_run_keeps_the_speed_but_for_drag(falling):
    falling.put(x=500.0, y=100.0, vx=5.0).play(RIGHT)
    assert falling.vx == 5.0 * DRAG


def test_who_is_faster_than_a_run_cannot_brake_by_the_stick_either(falling):
    falling.put(x=500.0, y=100.0, vx=5.0).play(LEFT)
    assert falling.vx == 5.0 * DRAG


def test_a_run_never_gets_faster_than_its_limit(standing):
    standing.put(x=100.0, y=FLOOR, vx=3.0)
    fastest = 0.0
    for _ in range(80):
        fastest = max(fastest, standing.play(RIGHT).vx)
    assert 3.25 < fastest < FASTEST


def test_a_ninja_that_starts_in_the_air_falls_and_then_stands(stage):
    room = stage().put(x=500.0, y=295.0)
    room.play()
    assert room.state == st.FALLING
    room.play(frames=30)
    assert (room.state, room.y, room.airborn) == (st.STANDING, FLOOR, 0)


@pytest.mark.parametrize("speed", [1.5, -0.4])
def test_a_slide_loses_a_fixed_share_per_frame(standing, speed):
    standing.put(x=500.0, y=FLOOR, vx=speed, state=st.SLIDING).play()
    assert standing.vx == pytest.approx(speed * DRAG * st.FRICTION_GROUND, rel=1e-12)
    assert standing.state == st.SLIDING


def test_a_slide_slower_than_a_tenth_becomes_a_stand(standing):
    standing.put(x=500.0, y=FLOOR, vx=0.1, state=st.SLIDING).play()
    assert standing.state == st.STANDING
    assert standing.vx == 0.1 * DRAG


def test_a_stand_brakes_harder_than_a_slide(standing):
    standing.put(x=500.0, y=FLOOR, vx=0.05, state=st.STANDING).play()
    assert standing.vx == 0.05 * DRAG * st.FRICTION_SLOW
    assert st.FRICTION_SLOW < st.FRICTION_GROUND


def test_a_stand_that_is_pushed_begins_to_slide(standing):
    standing.put(x=500.0, y=FLOOR, vx=1.0, state=st.STANDING).play()
    assert standing.state == st.SLIDING
    assert standing.vx == 1.0 * DRAG


def test_letting_go_turns_a_run_into_a_slide_without_friction_in_that_frame(standing):
    standing.put(x=500.0, y=FLOOR, vx=2.0, state=st.RUNNING).play()
    assert standing.state == st.SLIDING
    assert standing.vx == 2.0 * DRAG


def test_turning_round_runs_again_once_the_speed_points_the_other_way(standing):
    standing.put(x=500.0, y=FLOOR, vx=0.5, state=st.RUNNING)
    states = [standing.play(LEFT).state for _ in range(12)]
    turned = states.index(st.RUNNING)
    assert st.RUNNING not in states[:turned]
    assert states[0] == st.SLIDING
    assert set(states[turned:]) == {st.RUNNING}
    assert standing.vx < 0


def test_a_jump_from_a_flat_floor_is_two_up_at_once(standing):
    standing.play(JUMP)
    assert (standing.x, standing.y) == (500.0, FLOOR - 2.0)
    assert (standing.vx, standing.vy) == (0.0, -2.0)
    assert standing.state == st.JUMPING
    assert standing.events & st.JUMPED
    assert not standing.events & st.BUFFERED_JUMP


def test_a_jump_takes_the_run_with_it(standing):
    standing.put(x=500.0, y=FLOOR, vx=2.0, state=st.RUNNING).play(JUMP)
    assert standing.vx == 2.0 * DRAG
    assert standing.vy == -2.0


def test_a_held_jump_falls_six_times_slower(standing):
    standing.play(JUMP).play(JUMP)
    assert standing.vy == -2.0 * DRAG + RISE


def test_a_jump_that_is_let_go_falls_as_usual_from_the_frame_after(standing):
    standing.play(JUMP).play(NOTHING)
    assert standing.vy == -2.0 * DRAG + RISE
    assert standing.state == st.FALLING
    before = standing.vy
    standing.play(NOTHING)
    assert standing.vy == before * DRAG + FALL


def test_a_jump_is_held_up_for_45_frames_at_most(stage):
    room = stage().put(x=500.0, y=FLOOR).play(frames=3).play(JUMP)
    held = 0
    while room.play(JUMP).state == st.JUMPING:
        held += 1
    assert held == st.MAX_JUMP_FRAMES == 45
    assert room.state == st.FALLING


def test_one_press_is_one_jump(standing):
    standing.play(JUMP)
    frames = 0
    while standing.play(JUMP).airborn:
        frames += 1
    assert frames > 60
    standing.play(JUMP, frames=10)
    assert standing.y == FLOOR
    assert not standing.events & st.JUMPED


def landing_frame(stage):
    """Frames until a ninja that is let go at y = 280 touches the floor."""
    room, frames = stage().put(x=500.0, y=280.0, state=st.FALLING, airborn=1), 0
    while room.play().airborn:
        frames += 1
    return frames + 1


@pytest.mark.parametrize("early", range(8))
def test_a_press_up_to_four_frames_before_the_landing_still_jumps(stage, early):
    lands = landing_frame(stage)
    room = stage().put(x=500.0, y=280.0, state=st.FALLING, airborn=1)
    jumped = []
    for frame in range(1, lands + 3):
        pressed = JUMP if frame >= lands - early else NOTHING
        jumped.append(bool(room.play(pressed).events & st.JUMPED))
    assert jumped.count(True) == (1 if early <= 4 else 0)
    if early <= 4:
        assert jumped.index(True) + 1 == lands


def left_the_floor(stage):
    """A ninja that ran over an edge: on its last frame with floor."""
    rows = ["." * 40] * 6 + ["#" * 20 + "." * 20] * 6
    room = stage(rows=rows).put(x=470.0, y=158.0, vx=3.0, airborn=0, state=st.RUNNING)
    while True:
        kept = room.world.snapshot()
        if room.play(RIGHT).airborn:
            room.world.restore(kept)
            return room


@pytest.mark.parametrize("late", range(1, 8))
def test_a_press_up_to_four_frames_after_the_edge_still_jumps(stage, late):
    room = left_the_floor(stage)
    jumped = []
    for frame in range(1, 10):
        jumped.append(bool(room.play(JUMP_RIGHT if frame >= late else RIGHT).events & st.JUMPED))
    assert any(jumped) == (late <= 4)
    if late <= 4:
        assert jumped.index(True) + 1 == max(2, late)


def test_a_jump_after_the_edge_stops_the_fall_first(stage):
    room = left_the_floor(stage).play(RIGHT, frames=3)
    assert room.vy > 0
    room.play(JUMP_RIGHT)
    assert -2.0 <= room.vy < -1.9  # the last floor was the edge's corner
    assert room.events & st.BUFFERED_JUMP


def test_a_jump_uses_the_buffer_of_the_floor_up(stage):
    room = left_the_floor(stage).play(RIGHT, frames=2).play(JUMP_RIGHT)
    assert room.events & st.JUMPED
    room.play(RIGHT).play(JUMP_RIGHT)
    assert not room.events & st.JUMPED


WALLS = [(LEFT, RIGHT, 34.0, 1), (RIGHT, LEFT, 974.0, -1)]
"""Towards the wall, away from it, where the ninja touches it, and the wall's normal."""


@pytest.mark.parametrize(("towards", "away", "x", "normal"), WALLS)
def test_pressing_against_a_wall_while_falling_is_a_slide(stage, towards, away, x, normal):
    room = stage().put(x=x, y=100.0, vy=1.0, state=st.FALLING, airborn=1).play(towards)
    assert (room.state, room.walled, room.wall_normal) == (st.WALL_SLIDING, 1, normal)
    assert room.vy == 1.0 * DRAG + FALL
    room.play(towards)
    assert room.vy == ((1.0 * DRAG + FALL) * DRAG + FALL) * st.FRICTION_WALL


@pytest.mark.parametrize(("towards", "away", "x", "normal"), WALLS)
def test_no_slide_begins_on_the_way_up(stage, towards, away, x, normal):
    room = stage().put(x=x, y=200.0, vy=-1.0, state=st.FALLING, airborn=1).play(towards)
    assert (room.walled, room.state) == (1, st.FALLING)


@pytest.mark.parametrize(("towards", "away", "x", "normal"), WALLS)
def test_a_slide_goes_on_without_the_stick_and_ends_with_it_away(stage, towards, away, x, normal):
    room = stage().put(x=x, y=100.0, vy=1.0, state=st.WALL_SLIDING, airborn=1).play(NOTHING)
    assert room.state == st.WALL_SLIDING
    assert room.play(away).state == st.FALLING


@pytest.mark.parametrize(("towards", "away", "x", "normal"), WALLS)
def test_without_a_slide_a_wall_gives_the_strong_jump(stage, towards, away, x, normal):
    room = stage().put(x=x, y=100.0, vy=1.0, state=st.FALLING, airborn=1).play(JUMP)
    assert (room.vx, room.vy) == (normal * 1.0, -1.4)
    assert room.x == x + normal * 1.0
    assert room.state == st.JUMPING


@pytest.mark.parametrize(("towards", "away", "x", "normal"), WALLS)
def test_out_of_a_slide_towards_the_wall_the_jump_is_weak(stage, towards, away, x, normal):
    jump = {LEFT: JUMP_LEFT, RIGHT: JUMP_RIGHT}[towards]
    room = stage().put(x=x, y=100.0, vy=1.0, state=st.FALLING, airborn=1)
    room.play(towards).play(jump)
    assert (room.vx, room.vy) == (normal * (2.0 / 3.0), -1.0)


@pytest.mark.parametrize(("towards", "away", "x", "normal"), WALLS)
def test_out_of_a_slide_with_the_stick_away_the_jump_is_strong(stage, towards, away, x, normal):
    jump = {LEFT: JUMP_RIGHT, RIGHT: JUMP_LEFT}[towards]
    room = stage().put(x=x, y=100.0, vy=1.0, state=st.FALLING, airborn=1)
    room.play(towards).play(jump)
    assert room.vx == pytest.approx(normal * (1.0 + IN_AIR))
    assert room.vy == -1.4


@pytest.mark.parametrize("late", range(1, 7))
def test_a_press_up_to_four_frames_after_the_wall_still_jumps_off_it(stage, late):
    room = stage().put(x=34.0, y=100.0, vy=0.5, state=st.FALLING, airborn=1).play(NOTHING)
    assert room.walled
    room.put(x=36.0, y=room.y, vx=0.0, vy=room.vy)
    jumped = [
        bool(room.play(JUMP if f >= late else NOTHING).events & st.JUMPED) for f in range(1, 8)
    ]
    assert any(jumped) == (late <= 4)
    assert room.walled == 0


@pytest.mark.parametrize(("vy", "dies"), [(4.6, False), (4.7, True)])
def test_a_floor_kills_above_four_and_two_thirds(stage, vy, dies):
    start = (vy - FALL) / DRAG
    room = stage().put(x=500.0, y=FLOOR - 1.0, vy=start, state=st.FALLING, airborn=1).play()
    assert (room.state == st.DEAD) == dies
    assert room.cause == (st.BY_IMPACT if dies else st.NOT_DEAD)
    assert bool(room.events & st.DIED) == dies
    assert room.vy == (pytest.approx(vy) if dies else 0.0)


@pytest.mark.parametrize(("vy", "dies"), [(-4.6, False), (-4.7, True)])
def test_a_ceiling_kills_as_a_floor_does(stage, vy, dies):
    start = (vy - FALL) / DRAG
    room = stage().put(x=500.0, y=35.0, vy=start, state=st.FALLING, airborn=1).play()
    assert (room.state == st.DEAD) == dies


@pytest.mark.parametrize(("vx", "dies"), [(5.9, False), (6.1, True)])
@pytest.mark.parametrize("side", [1, -1])
def test_a_wall_kills_above_six(stage, vx, dies, side):
    x = 974.0 - 1.0 if side > 0 else 34.0 + 1.0
    room = stage().put(x=x, y=150.0, vx=side * vx / DRAG, state=st.FALLING, airborn=1).play()
    assert (room.state == st.DEAD) == dies


def test_a_floor_that_was_there_before_kills_nobody(standing):
    standing.put(x=500.0, y=FLOOR, vy=5.5, airborn=0).play()
    assert standing.state != st.DEAD


def test_a_ceiling_kills_who_stood_on_the_floor_as_well(stage):
    room = stage().put(x=500.0, y=35.0, vy=-5.5, airborn=0, state=st.RUNNING).play()
    assert room.state == st.DEAD


def test_the_dead_stay_where_they_died(stage):
    room = stage().put(x=500.0, y=FLOOR - 1.0, vy=6.0, state=st.FALLING, airborn=1).play()
    place = (room.x, room.y, room.vx, room.vy)
    room.play(JUMP_RIGHT, frames=20)
    assert (room.x, room.y, room.vx, room.vy) == place
    assert (room.state, room.events) == (st.DEAD, 0)


def test_whoever_has_won_brakes_on_the_floor_and_not_in_the_air(stage):
    on_floor = stage().put(x=500.0, y=FLOOR, vx=2.0, state=st.WON, airborn=0).play().play()
    assert on_floor.vx == 2.0 * DRAG * st.DRAG_SLOW
    in_air = stage().put(x=500.0, y=100.0, vx=2.0, state=st.WON, airborn=1).play().play()
    assert in_air.vx == 2.0 * DRAG * DRAG


def test_whoever_has_won_neither_steers_nor_jumps_nor_dies(stage):
    room = stage().put(x=500.0, y=FLOOR - 1.0, vy=6.0, state=st.WON, airborn=1).play(JUMP_RIGHT)
    assert (room.state, room.vx, room.cause) == (st.WON, 0.0, st.NOT_DEAD)


def test_all_inputs_together_never_leave_a_closed_room(stage):
    room = stage(rows=["." * 6] * 4).put(x=100.0, y=60.0)
    for t in range(400):
        room.play((7 * t * t + t // 9) % 6)
        assert 34.0 - 1e-6 <= room.x <= 158.0 + 1e-6
        assert 34.0 - 1e-6 <= room.y <= 110.0 + 1e-6
