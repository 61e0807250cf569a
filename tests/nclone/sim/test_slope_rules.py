"""Slopes: their normals, jumps along them, and what they cost who goes up."""

import math

import pytest

from nclone.sim import state as st

NOTHING, LEFT, RIGHT, JUMP, JUMP_LEFT, JUMP_RIGHT = range(6)
ON_FLOOR = 0.06666666666666665

SLOPE = ["." * 40] * 11 + ["." * 19 + "8" + "#" * 20]
"""A floor that rises to the right by 45 degrees, over one tile at x = 480 to 504."""


def on_slope(stage, **values):
    """A ninja that touches the middle of the slope, which goes through (492, 300)."""
    reach = 10.0 * math.sqrt(0.5)
    place = {"x": 492.0 - reach, "y": 300.0 - reach, "airborn": 0, "state": st.RUNNING}
    return stage(rows=SLOPE).put(**{**place, **values})


def test_the_normal_of_a_slope_is_the_floors(stage):
    room = on_slope(stage).play()
    assert room.airborn == 0
    assert (room.floor_x, room.floor_y) == pytest.approx((-math.sqrt(0.5), -math.sqrt(0.5)))


@pytest.mark.parametrize("action", [JUMP, JUMP_LEFT])
def test_a_jump_down_a_slope_goes_along_its_normal(stage, action):
    room = on_slope(stage, vx=-1.0, vy=1.0)
    plain = on_slope(stage, vx=-1.0, vy=1.0).play(NOTHING if action == JUMP else LEFT)
    room.play(action)
    d = math.sqrt(0.5)
    assert room.vy == pytest.approx(-2.0 * d)
    assert room.vx == pytest.approx(plain.vx - 2.0 / 3.0 * d, abs=0.1)


def test_a_jump_down_a_slope_against_the_stick_goes_straight_up(stage):
    room = on_slope(stage, vx=-1.0, vy=1.0).play(JUMP_RIGHT)
    assert room.vy == -1.4
    assert room.vx == pytest.approx(-1.0, abs=0.1)


def test_a_jump_up_a_slope_with_the_stick_keeps_the_run(stage):
    room = on_slope(stage, vx=1.0, vy=-1.0).play(JUMP_RIGHT)
    assert room.vx == pytest.approx(1.0, abs=0.1)
    assert room.vy == pytest.approx(-1.0 - 1.4, abs=0.1)


def test_a_jump_up_a_slope_without_the_stick_is_thrown_back(stage):
    room = on_slope(stage, vx=1.0, vy=-1.0).play(JUMP)
    d = math.sqrt(0.5)
    assert room.vx == pytest.approx(-2.0 / 3.0 * d)
    assert room.vy == pytest.approx(-1.0 - 2.0 * d, abs=0.1)


def test_a_run_up_a_slope_gets_an_extra_push_along_it(stage):
    held = on_slope(stage, vx=1.0, vy=-1.0, state=st.RUNNING)
    held.play(RIGHT)
    level = on_slope(stage, vx=1.0, vy=-1.0, state=st.STANDING).play(RIGHT)
    extra = ON_FLOOR / 2.0 * 0.5
    assert held.vx - level.vx == pytest.approx(extra)
    assert held.vy - level.vy == pytest.approx(-extra)


def test_a_slide_up_a_slope_loses_speed_along_it(stage):
    slides = on_slope(stage, vx=1.0, vy=-1.0, state=st.SLIDING).play()
    stands = on_slope(stage, vx=1.0, vy=-1.0, state=st.STANDING).play()
    speed = math.hypot(stands.vx, stands.vy)
    friction = abs(stands.vx * (1.0 - st.FRICTION_GROUND) * stands.floor_y)
    slower = speed - friction * stands.floor_y**2
    assert math.hypot(slides.vx, slides.vy) == pytest.approx(slower)
    assert slides.vy / slides.vx == pytest.approx(stands.vy / stands.vx)
