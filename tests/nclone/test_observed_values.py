"""Every value of the state observation against its sentence in the specification."""

import math

import numpy as np
import pytest

from nclone.config import NppConfig
from nclone.game import NppGame
from nclone.levels.ascii import parse_drawing
from nclone.levels.level import load_level
from nclone.sim import state as st

HALL = ["." * 40] * 12
ONE = np.arange(1)
GROUND = {st.STANDING, st.RUNNING, st.SLIDING}


def game_of(*things, rows=HALL, ninja=(500, 200)):
    """A game of one world in a drawn hall, at the beginning of its episode."""
    lines = [*rows, f"ninja {ninja[0] // 6} {ninja[1] // 6}", *things]
    level = load_level(parse_drawing("\n".join(lines)))
    game = NppGame(NppConfig(start_frames=0), [level], 1, threads=1)
    game.seed([np.random.default_rng(0)])
    game.begin(ONE)
    return game


@pytest.fixture(scope="module")
def hall():
    """A game that tests may put into any state."""
    return game_of("exit 140 40 switch 20 40")


def seen(game, name, **ninja):
    """A raw field after the ninja was changed."""
    for key, value in ninja.items():
        game.world.worlds[key][0] = value
    return game.observe()[name][0].astype(np.float64)


@pytest.fixture
def state(hall):
    """The 29 values of a ninja at rest in the air, with some of its fields changed."""
    hall.begin(ONE)

    def look(**ninja):
        return seen(hall, "game_state", **ninja)

    return look


def flag(value):
    return 1.0 if value else -1.0


@pytest.mark.parametrize(("vx", "vy"), [(0, 0), (3, -4), (-1, 0), (0, 2), (6.666, 0), (50, 50)])
def test_speed_and_direction(state, vx, vy):
    out, speed = state(vx=vx, vy=vy), math.hypot(vx, vy)
    assert out[0] == pytest.approx(min(speed / (2 * 3.333), 1) * 2 - 1)
    assert out[1:3] == pytest.approx((vx / speed, vy / speed) if speed else (0, 0))


def test_a_speed_that_is_next_to_nothing_has_no_direction(state):
    assert state(vx=9e-7, vy=0)[1:3].tolist() == [0, 0]
    assert state(vx=1.1e-6, vy=0)[1] == pytest.approx(1)


@pytest.mark.parametrize("code", range(9))
def test_a_state_is_one_of_four_kinds(state, code):
    kinds = [
        code in GROUND,
        code in (st.JUMPING, st.FALLING),
        code == st.WALL_SLIDING,
        code in (st.DEAD, st.KILLED, st.WON),
    ]
    assert sum(kinds) == 1
    out = state(state=code)
    assert out[3:7].tolist() == [flag(kind) for kind in kinds]
    assert out[28] == flag(code != st.STANDING)


@pytest.mark.parametrize(
    ("index", "name"),
    [(7, "airborn"), (9, "jump"), (13, "floor_contacts"), (15, "ceiling_contacts")],
)
def test_what_is_or_is_not_is_one_or_minus_one(state, index, name):
    assert state(**{name: 0})[index] == -1
    assert state(**{name: 1})[index] == 1


@pytest.mark.parametrize("hor", [-1, 0, 1])
def test_the_stick_is_seen_as_it_is(state, hor):
    assert state(hor=hor)[8] == hor


@pytest.mark.parametrize(
    ("index", "name"), [(10, "jump_buffer"), (11, "floor_buffer"), (12, "wall_buffer")]
)
@pytest.mark.parametrize("buffer", range(-1, 6))
def test_a_buffer_is_its_frames_of_five(state, index, name, buffer):
    assert state(**{name: buffer})[index] == pytest.approx(max(buffer, 0) / 5 * 2 - 1)


@pytest.mark.parametrize("normal", [-1, 1])
def test_a_wall_is_seen_while_it_is_touched(state, normal):
    touched = state(walled=1, wall_normal=normal)
    assert (touched[14], touched[17], touched[23]) == (1, normal, 1)
    left = state(walled=0, wall_normal=normal)
    assert (left[14], left[17], left[23]) == (-1, 0, -1)


@pytest.mark.parametrize(("x", "y"), [(0, -1), (0.6, -0.8), (-0.6, -0.8), (0, 0)])
def test_the_floor_s_normal_and_its_length(state, x, y):
    out = state(floor_x=x, floor_y=y)
    assert out[[24, 18]] == pytest.approx((x, y))
    assert out[16] == pytest.approx(math.hypot(x, y) * 2 - 1)


def test_the_ceiling_s_normal(state):
    assert state(ceiling_x=0.6, ceiling_y=0.8)[25:27] == pytest.approx((0.6, 0.8))


@pytest.mark.parametrize(
    ("before", "now", "change"), [(0, 1, 1 / 3.333), (1, 0, -1 / 3.333), (-3, 3, 1), (3, -3, -1)]
)
def test_the_change_of_speed_is_seen_up_to_a_full_run(state, before, now, change):
    assert state(vx_before=before, vx=now)[19] == pytest.approx(change)
    assert state(vy_before=before, vy=now)[20] == pytest.approx(change)


@pytest.mark.parametrize(
    ("gravity", "value"),
    [
        (st.GRAVITY_FALLING, 1),
        (st.GRAVITY_JUMPING, -1),
        ((st.GRAVITY_FALLING + st.GRAVITY_JUMPING) / 2, 0),
    ],
)
def test_gravity_lies_between_that_of_a_jump_and_that_of_a_fall(state, gravity, value):
    assert state(gravity=gravity)[21] == pytest.approx(value, abs=1e-6)


@pytest.mark.parametrize(("frames", "value"), [(0, -1), (9, -0.6), (45, 1), (46, 1)])
def test_a_jump_is_its_frames_of_45(state, frames, value):
    assert state(jump_time=frames)[22] == pytest.approx(value)


@pytest.mark.parametrize(("drag", "value"), [(st.DRAG, 1), (st.DRAG_SLOW, -1)])
def test_drag_lies_between_slow_and_regular(state, drag, value):
    assert state(drag=drag)[27] == pytest.approx(value, abs=1e-6)


def test_no_value_leaves_its_range_over_a_random_episode(hall):
    hall.begin(ONE)
    random = np.random.default_rng(1)
    for _ in range(200):
        rows = hall.observe()
        for name in ("game_state", "exit_features", "cell_offset"):
            assert (np.abs(rows[name]) <= 1).all(), name
        assert 0 <= rows["time_remaining"][0, 0] <= 1
        assert rows["action_mask"].any()
        hall.world.step([random.integers(6)], frames=4, on_end=st.RESTART)


def slow_mask(w):
    """The mask by its two rules."""
    mask = [True] * 6
    buffers = (w["jump_buffer"], w["floor_buffer"], w["wall_buffer"])
    active = any(0 <= b <= 4 for b in buffers) or 0 <= w["launch_buffer"] <= 3
    if w["airborn"] and w["state"] != st.JUMPING and w["jump"] and not active:
        mask[3:] = [False] * 3
    if w["walled"]:
        towards = 1 if w["wall_normal"] > 0 else 2
        if not w["airborn"] or w["state"] == st.WALL_SLIDING or w["vy"] < 0:
            mask[towards] = False
    return mask


def test_the_mask_follows_its_rules_in_any_state(hall):
    hall.begin(ONE)
    random, seen_masks = np.random.default_rng(2), set()
    for _ in range(1500):
        ninja = {
            "jump_buffer": random.integers(-1, 6),
            "floor_buffer": random.choice([-1, -1, -1, 0, 4, 5]),
            "wall_buffer": random.choice([-1, -1, -1, 0, 4, 5]),
            "launch_buffer": random.choice([-1, -1, -1, 0, 3, 4]),
            "airborn": random.integers(2),
            "state": random.integers(6),
            "jump": random.integers(2),
            "walled": random.integers(2),
            "wall_normal": random.choice([-1, 1]),
            "vy": random.choice([-1.0, 0.0, 1.0]),
        }
        mask = seen(hall, "action_mask", **ninja).astype(bool).tolist()
        assert mask == slow_mask(ninja), ninja
        seen_masks.add(tuple(mask))
    assert len(seen_masks) == 6  # nothing, a jump, each of two walls, and a jump with each of them


def test_a_wall_that_was_never_touched_forbids_nothing(hall):
    hall.begin(ONE)
    assert seen(hall, "action_mask", walled=1, wall_normal=0, airborn=0).all()


@pytest.mark.parametrize(("x", "y"), [(30, 30), (500, 200), (983.9, 311.9), (36, 42), (41.9, 47.9)])
def test_a_place_is_its_cell_of_12_px_and_where_in_it(hall, x, y):
    hall.begin(ONE)
    cell = seen(hall, "cell", x=x, y=y)
    assert cell.tolist() == [x // 12, y // 12]
    offset = seen(hall, "cell_offset", x=x, y=y)
    assert offset == pytest.approx(((x % 12) / 6 - 1, (y % 12) / 6 - 1), abs=1e-6)


@pytest.mark.parametrize(("x", "y", "cell"), [(-50, -1, (0, 0)), (5000, 700, (87, 49))])
def test_a_place_outside_the_level_is_in_its_last_cell(hall, x, y, cell):
    hall.begin(ONE)
    assert tuple(seen(hall, "cell", x=x, y=y)) == cell
    assert (np.abs(seen(hall, "cell_offset", x=x, y=y)) == 1).all()


@pytest.mark.parametrize("share", [0.0, 0.25, 1.0, 1.5])
def test_the_time_that_is_left_is_a_share_of_the_limit(hall, share):
    hall.begin(ONE)
    frame = round(share * int(hall.limit[0]))
    left = seen(hall, "time_remaining", frame=frame)[0]
    assert left == pytest.approx(max(0.0, 1 - frame / int(hall.limit[0])), abs=1e-6)


def test_switch_and_door_are_seen_as_offsets_of_half_a_map(hall):
    hall.begin(ONE)
    out = seen(hall, "exit_features", x=500.0, y=200.0)
    assert out[:2] == pytest.approx(((120 - 500) / 528, (240 - 200) / 300))
    assert out[4:6] == pytest.approx(((840 - 500) / 528, (240 - 200) / 300))
    assert out[2] == 0


def test_an_offset_is_no_more_than_half_a_map(hall):
    hall.begin(ONE)
    out = seen(hall, "exit_features", x=30.0, y=240.0)
    assert out[4] == 1.0
    assert out[5] == pytest.approx(0.0)


def test_ways_are_shares_of_the_level_s_scale(hall):
    hall.begin(ONE)
    scale = float(hall.distances.scale_px[hall.entry[0]])
    near = seen(hall, "exit_features", x=160.0, y=240.0)[3]
    far = seen(hall, "exit_features", x=260.0, y=240.0)[3]
    assert 0 <= near < far < 1
    assert (far - near) * scale == pytest.approx(100, abs=13)
    assert seen(hall, "exit_features", x=120.0, y=240.0)[3] == pytest.approx(0, abs=12 / scale)


def test_what_cannot_be_reached_is_as_far_as_can_be():
    rows = [row[:25] + "#" + row[26:] for row in HALL]
    out = seen(game_of("exit 140 40 switch 20 40", rows=rows), "exit_features")
    assert (out[3] < 1, out[6]) == (True, 1)


def test_a_switch_that_was_hit_is_told():
    game = game_of("exit 140 40 switch 83 33")
    game.advance(np.zeros(1, np.int64))
    assert seen(game, "exit_features")[2] == 1


KINDS = {
    "mine": (1, 1, 0, 4.0),
    "toggle_mine": (0, 1, 0, 3.5),
    "zap_drone": (1, 0, 1, 7.5),
    "mini_drone": (1, 0, 1, 4.0),
    "death_ball": (1, 0, 1, 5.0),
    "thwump": (1, 0, 1, 9.0),
    "shove_thwump": (1, 0, 1, 12.0),
    "bounce_block": (0, 0, 1, 9.0),
    "launch_pad": (0, 0, 0, 6.0),
    "boost_pad": (0, 0, 0, 6.0),
}
"""Danger, is a mine, moves, radius in px."""


@pytest.mark.parametrize("name", KINDS)
def test_a_danger_is_told_by_where_it_is_and_what(name):
    game = game_of(f"{name} 90 30")
    out = seen(game, "hazards", x=500.0, y=200.0)
    assert out[0, :2] == pytest.approx((40 / 240, -20 / 240))
    danger, mine, moves, radius = KINDS[name]
    assert out[0, 4:] == pytest.approx((danger, mine, moves, radius / 24))
    assert not out[1:].any()


@pytest.mark.parametrize(("state", "danger", "radius"), [(0, 1, 4.0), (1, 0, 3.5), (2, 0.5, 4.5)])
def test_a_mine_is_as_dangerous_as_its_state(state, danger, radius):
    game = game_of("toggle_mine 90 30")
    game.world.entities["state"][0] = state
    out = seen(game, "hazards")
    assert (out[0, 4], out[0, 7]) == (danger, pytest.approx(radius / 24))


@pytest.mark.parametrize("name", ["gold", "regular_door", "one_way"])
def test_what_is_no_danger_and_does_not_move_is_not_told(name):
    assert not seen(game_of(f"{name} 90 30"), "hazards").any()


def test_a_danger_is_told_up_to_240_px_away():
    game = game_of("mine 90 30")
    assert seen(game, "hazards", x=540.0 - 239.9, y=180.0).any()
    assert not seen(game, "hazards", x=540.0 - 240.1, y=180.0).any()


def test_the_speed_of_what_moves_is_a_share_of_a_deadly_impact():
    game = game_of("bounce_block 90 30")
    game.world.movers["vx"][0, 0], game.world.movers["vy"][0, 0] = 3.0, -9.0
    assert seen(game, "hazards")[0, 2:4] == pytest.approx((0.5, -1.0))


def test_what_was_used_up_is_no_longer_told():
    game = game_of("mine 90 30")
    game.world.entities["active"][0, 0] = 0
    assert not seen(game, "hazards").any()


@pytest.mark.parametrize("seed", range(5))
def test_the_eight_nearest_are_told_the_nearest_first(seed):
    random = np.random.default_rng(seed)
    places = random.choice(40 * 12, 30, replace=False)
    at = np.stack([places % 40, places // 40], axis=1)
    lines = [f"mine {4 * (c + 1) + 2} {4 * (r + 1) + 2}" for c, r in at.tolist()]
    game = game_of(*lines)
    out = seen(game, "hazards", x=500.3, y=160.7)
    away = at * 24.0 + 36.0 - (500.3, 160.7)
    order = np.argsort(np.hypot(*away.T))
    near = [away[i] for i in order if np.hypot(*away[i]) < 240][:8]
    assert out[: len(near), :2] == pytest.approx(np.array(near) / 240, abs=1e-6)
    assert not out[len(near) :].any()
