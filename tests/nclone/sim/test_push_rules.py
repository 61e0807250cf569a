"""What pushes and what chases: one-way platforms, bounce blocks, boost pads and death balls."""

import pytest

from nclone.sim import state as st

BLOCK, BALL = 17, 25
AT = (492.0, 156.0)
"""Where the entity of a test is, in the air of the hall: entity coordinates 82, 26."""
FALL = st.GRAVITY_FALLING


def platform(stage, orientation, x, y, **values):
    """A one-way platform in the middle of the hall, and a ninja at a place beside it."""
    room = stage(f"one_way 82 26 facing {orientation}")
    start = {"x": AT[0] + x, "y": AT[1] + y, "state": st.FALLING, "airborn": 1}
    return room.put(**{**start, **values})


def test_a_platform_that_faces_up_carries_whoever_falls_on_it(stage):
    room = platform(stage, 6, 0.0, -20.0).play(frames=60)
    assert (room.state, room.y) == (st.STANDING, pytest.approx(AT[1] - 10.0))


def test_a_platform_lets_pass_whoever_comes_from_behind(stage):
    room = platform(stage, 6, 0.0, 20.0, vy=-4.0).play(frames=12)
    assert room.y < AT[1] - 10.0


@pytest.mark.parametrize(("x", "carried"), [(16.9, True), (17.2, False)])
def test_a_platform_reaches_half_a_ninja_beyond_its_end(stage, x, carried):
    room = platform(stage, 6, x, -12.0).play(frames=30)
    assert (room.airborn == 0) == carried


@pytest.mark.parametrize(("x", "vx", "carried"), [(19.0, -0.5, True), (19.0, 0.5, False)])
def test_a_platform_reaches_further_for_whoever_comes_towards_it(stage, x, vx, carried):
    room = platform(stage, 6, x, -10.05, vx=vx, vy=0.5).play()
    assert (room.airborn == 0) == carried


def test_a_platform_takes_the_speed_against_it_and_leaves_the_rest(stage):
    room = platform(stage, 6, 0.0, -10.05, vx=1.0, vy=1.0).play()
    assert room.vy == 0.0
    assert room.vx == pytest.approx(1.0 * st.DRAG * st.FRICTION_GROUND)  # it lands in a slide


@pytest.mark.parametrize(("orientation", "side"), [(0, 1), (4, -1)])
def test_a_platform_on_its_side_is_a_wall_to_slide_on(stage, orientation, side):
    towards = 1 if side > 0 else 2
    room = platform(stage, orientation, side * 10.05, 0.0, vx=-side * 0.5, vy=0.5).play(towards)
    assert (room.walled, room.wall_normal) == (1, side)
    assert room.state == st.WALL_SLIDING


def block(stage, x, y, **values):
    """A bounce block in the middle of the hall, and a ninja at a place beside it."""
    room = stage("bounce_block 82 26")
    start = {"x": AT[0] + x, "y": AT[1] + y, "state": st.FALLING, "airborn": 1}
    return room.put(**{**start, **values})


def test_a_block_takes_four_fifths_of_a_push(stage):
    room = block(stage, 0.0, -18.0 - FALL).play()
    x, y = room.place(BLOCK)
    # Four substeps: each leaves no more overlap, so the first one decides.
    assert x == AT[0]
    assert y == pytest.approx(AT[1] + 0.8 * 1.0, abs=1e-6)
    assert room.y == pytest.approx(AT[1] - 18.0 - 0.2, abs=1e-6)
    assert room.airborn == 0


def test_a_block_that_was_pushed_comes_back_like_a_damped_spring(stage):
    room = block(stage, 0.0, -18.0 - FALL).play()
    mover = room.mover(BLOCK)
    y, speed = float(mover["y"]), float(mover["vy"])
    for _ in range(50):
        room.put(x=100.0, y=100.0, state=st.FALLING).play()
        speed *= 0.98
        y += speed
        pull = 0.02222222222222222 * (AT[1] - y)
        y += pull
        speed += pull
        assert room.place(BLOCK)[1] == pytest.approx(y, abs=1e-9)


def test_a_block_at_rest_stays_there(stage):
    room = stage("bounce_block 82 26").play(frames=20)
    assert room.place(BLOCK) == AT


@pytest.mark.parametrize("side", [-1, 1])
def test_a_block_is_a_wall(stage, side):
    room = block(stage, side * 19.05, 0.0).play()
    assert (room.walled, room.wall_normal) == (1, side)


def test_a_boost_pad_adds_two_in_the_direction_of_flight_once(stage):
    room = stage("boost_pad 82 26")
    room.put(x=AT[0], y=AT[1], vx=3.0, vy=-4.0, state=st.FALLING, airborn=1).play()
    assert room.vx == pytest.approx((3.0 + 2.0 * 0.6) * st.DRAG)
    assert room.vy == pytest.approx((-4.0 - 2.0 * 0.8) * st.DRAG + FALL)
    room.put(x=AT[0], y=AT[1], vx=3.0, vy=-4.0).play()
    assert room.vx == pytest.approx(3.0 * st.DRAG)


def test_a_boost_pad_works_again_after_the_ninja_has_left_it(stage):
    room = stage("boost_pad 82 26").put(x=AT[0], y=AT[1], vx=3.0, state=st.FALLING).play()
    room.put(x=100.0, y=100.0).play()
    room.put(x=AT[0], y=AT[1], vx=3.0).play()
    assert room.vx == pytest.approx(5.0 * st.DRAG)


def test_a_boost_pad_gives_nothing_to_whoever_stands_still(stage):
    room = stage("boost_pad 82 26").put(x=AT[0], y=AT[1], state=st.FALLING, airborn=1).play()
    assert (room.vx, room.vy) == (0.0, FALL)


def test_a_ball_accelerates_towards_the_ninja(stage):
    room = stage("death_ball 82 26").put(x=AT[0] + 300.0, y=AT[1], state=st.FALLING, airborn=1)
    room.play()
    assert float(room.mover(BALL)["vx"]) == pytest.approx(0.04)
    room.put(x=AT[0], y=AT[1] + 140.0, state=st.FALLING).play()
    assert float(room.mover(BALL)["vy"]) == pytest.approx(0.04, abs=1e-3)


def test_a_ball_keeps_nine_tenths_of_what_it_is_too_fast(stage):
    room, speed = stage("death_ball 82 26"), 0.0
    for _ in range(100):
        room.put(x=950.0, y=AT[1], state=st.FALLING, airborn=1).play()
        speed += 0.04
        if speed > 0.85:
            speed = 0.85 + 0.9 * (speed - 0.85)
        assert float(room.mover(BALL)["vx"]) == pytest.approx(speed, abs=1e-6)
    assert speed > 1.2


def test_a_ball_slows_down_when_nobody_is_there(stage):
    room = stage("death_ball 82 26").put(x=950.0, y=AT[1], state=st.FALLING, airborn=1)
    room.play(frames=3)
    before = float(room.mover(BALL)["vx"])
    room.put(x=950.0, y=AT[1], state=st.DEAD).play()
    assert float(room.mover(BALL)["vx"]) == pytest.approx(0.95 * before)


@pytest.mark.parametrize(("distance", "dies"), [(14.9, True), (15.1, False)])
def test_a_ball_kills_whom_it_touches_and_bounces_off(stage, distance, dies):
    room = stage("death_ball 82 26")
    room.put(x=AT[0] + distance + 0.04, y=AT[1] - FALL, state=st.FALLING, airborn=1).play()
    assert (room.state == st.DEAD) == dies
    assert (float(room.mover(BALL)["vx"]) < -9.0) == dies


def test_balls_push_each_other_away(stage):
    room = stage("death_ball 82 26", "death_ball 84 26").put(x=100.0, y=100.0, state=st.DEAD)
    room.play()
    assert float(room.mover(BALL, 0)["vx"]) == -4.0
    assert float(room.mover(BALL, 1)["vx"]) == pytest.approx(4.0 * 0.95)


def test_a_ball_stays_out_of_the_tiles(stage):
    room = stage("death_ball 82 26", rows=["." * 40] * 12)
    for _ in range(300):
        room.put(x=970.0, y=300.0, state=st.FALLING, airborn=1)
        room.world.worlds["state"][0] = st.FALLING
        room.play()
        x, y = room.place(BALL)
        assert 32.0 - 1e-6 <= x <= 976.0 + 1e-6
        assert 32.0 - 1e-6 <= y <= 304.0 + 1e-6
