"""What a fighter sees, byte by byte against the cartridge's memory map, from both seats."""

import numpy as np
import pytest

from fighting import signals as see
from fighting.machine import duel
from fighting.signals import FEATURES, FIRST, NAMES, RAM_BYTES, SECOND, SIGNALS, STATES, TABLE

PLAYERS = (FIRST, SECOND)
WAVE, WAVE_X = duel.PROJECTILE, duel.PROJECTILE + 1


def memory(**changes):
    """One cartridge's copied bytes; `p1_X=30` is player 1's X, other names are of the state."""
    ram = np.zeros(RAM_BYTES, np.uint8)
    for name, value in {"p1_X": 40, "p2_X": 104, "p1_HP": 112, "p2_HP": 112, **changes}.items():
        player, _, field = name.partition("_")
        if player in ("p1", "p2"):
            at = {"WAVE": WAVE, "WAVE_X": WAVE_X}.get(field)
            ram[PLAYERS[player == "p2"] + (getattr(duel, field) if at is None else at)] = value
        else:
            ram[getattr(duel, name)] = value
    return ram


def seen(seat=0, **changes):
    """The 24 bytes that a seat sees."""
    out = np.zeros((1, SIGNALS), np.uint8)
    see.look_all(memory(**changes)[None], np.zeros(1, np.int64), np.array([seat]), out)
    return out[0]


def both(changes, name):
    """A byte as the two seats see it."""
    return [int(seen(seat, **changes)[getattr(see, name)]) for seat in (0, 1)]


def test_each_seat_comes_first_in_its_own_view():
    changes = {"p1_HP": 100, "p2_HP": 7, "p1_Y": 3, "p2_Y": 9, "p1_STUN": 5, "p2_STUN": 6}
    assert both(changes, "OWN_HP") == [100, 7]
    assert both(changes, "HIS_HP") == [7, 100]
    assert both(changes, "OWN_Y") == [3, 9]
    assert both(changes, "HIS_Y") == [9, 3]
    assert both(changes, "OWN_STUN") == [5, 6]
    assert both(changes, "HIS_STUN") == [6, 5]


@pytest.mark.parametrize(("first", "second"), [(112, 0), (0, 112), (50, 50)])
def test_a_lead_is_counted_from_a_draw_at_112(first, second):
    lead = 112 + first - second
    assert both({"p1_HP": first, "p2_HP": second}, "HP_LEAD") == [lead, 224 - lead]


@pytest.mark.parametrize(("first", "second"), [(12, 148), (148, 12), (80, 80), (79, 81)])
def test_places_are_counted_from_the_wall_behind(first, second):
    changes = {"p1_X": first, "p2_X": second}
    ahead = first <= second
    assert both(changes, "OWN_X") == ([first, 160 - second] if ahead else [160 - first, second])
    assert both(changes, "HIS_X") == ([second, 160 - first] if ahead else [160 - second, first])
    assert both(changes, "DISTANCE") == [abs(first - second)] * 2


def test_both_sides_of_the_screen_look_the_same():
    left = seen(0, p1_X=30, p2_X=90, p1_FACE=0, p2_FACE=1)
    right = seen(0, p1_X=130, p2_X=70, p1_FACE=1, p2_FACE=0)
    assert left.tolist() == right.tolist()


@pytest.mark.parametrize(
    ("first", "second", "sides"), [(30, 90, [1, 0]), (90, 30, [0, 1]), (5, 5, [1, 0])]
)
def test_player_1_stands_left_at_the_same_place(first, second, sides):
    out = np.zeros(2, np.uint8)
    ram = memory(p1_X=first, p2_X=second)[None]
    see.left_sides(ram, np.zeros(2, np.int64), np.array([0, 1]), out)
    assert out.tolist() == sides


@pytest.mark.parametrize(("own", "his", "value"), [(0, 1, 3), (0, 0, 1), (1, 1, 2), (1, 0, 0)])
def test_facing_tells_who_looks_at_whom(own, his, value):
    # 1: I look at him, 2: he looks at me; player 1 stands left, and 0 looks right.
    assert seen(0, p1_FACE=own, p2_FACE=his)[see.FACING] == value
    mirrored = {"p1_X": 104, "p2_X": 40, "p1_FACE": 1 - own, "p2_FACE": 1 - his}
    assert seen(0, **mirrored)[see.FACING] == value


@pytest.mark.parametrize("move", range(1, len(see.TIMING)))
def test_a_move_counts_down_to_its_hit_to_its_end_and_to_the_next(move):
    startup, end, total = see.TIMING[move].tolist()
    for time in range(total + 3):
        ready, active, over = seen(0, p1_MOVE=move, p1_STATE_T=time)[see.OWN_STARTUP :][:3]
        assert ready == max(startup - time, 0)
        assert active == (end - time if startup <= time < end else 0)
        assert over == (max(total - time, 1) if time >= end else 0)


def test_no_move_counts_nothing():
    out = seen(0, p1_STATE_T=9, p2_STATE_T=9)
    assert not out[see.OWN_STARTUP : see.HIS_RECOVERY + 1].any()


def test_the_opponents_move_is_seen_in_his_bytes():
    assert seen(0, p2_MOVE=1)[see.HIS_STARTUP] == 4
    assert seen(1, p2_MOVE=1)[see.OWN_STARTUP] == 4


@pytest.mark.parametrize(("wave", "away"), [(90, 14), (104, 0), (120, 16)])
def test_a_wave_is_as_near_as_it_is_to_whom_it_flies_at(wave, away):
    changes = {"p1_WAVE": 1, "p1_WAVE_X": wave, "p2_X": 104}
    assert both(changes, "OWN_WAVE") == [1 + away, 0]
    assert both(changes, "HIS_WAVE") == [0, 1 + away]


def test_a_wave_that_is_not_there_is_nought():
    assert both({"p1_WAVE": 0, "p1_WAVE_X": 90}, "OWN_WAVE") == [0, 0]


def test_clock_and_wins_are_those_of_the_match():
    changes = {"TIMER": 47, "WINS1": 2, "WINS2": 1}
    assert both(changes, "TIMER") == [47, 47]
    assert both(changes, "OWN_WINS") == [2, 1]
    assert both(changes, "HIS_WINS") == [1, 2]


def test_rows_see_their_own_cartridge():
    ram = np.stack([memory(p1_HP=n) for n in range(5)])
    machine, seats = np.array([4, 0, 2]), np.array([0, 0, 1])
    out = np.zeros((3, SIGNALS), np.uint8)
    see.look_all(ram, machine, seats, out)
    assert out[:, see.OWN_HP].tolist() == [4, 0, 112]
    assert out[2, see.HIS_HP] == 2


def shown(**signals):
    """The features of a view, by name."""
    view = np.zeros(SIGNALS, np.uint8)
    for name, value in signals.items():
        view[getattr(see, name)] = value
    return dict(zip(NAMES, see.features({"signals": view}, None).tolist(), strict=True))


@pytest.mark.parametrize(
    ("signal", "byte", "name", "value"),
    [
        ("OWN_HP", 112, "own hp", 1.0),
        ("OWN_HP", 56, "own hp", 0.5),
        ("HP_LEAD", 112, "lead", 0.0),
        ("HP_LEAD", 224, "lead", 1.0),
        ("HP_LEAD", 0, "lead", -1.0),
        ("DISTANCE", 68, "distance", 0.5),
        ("OWN_X", 80, "own x", 0.0),
        ("HIS_X", 12, "his x", -1.0),
        ("OWN_Y", 20, "own y", 0.5),
        ("FACING", 0, "facing", -1.0),
        ("FACING", 3, "facing", 1.0),
        ("OWN_STUN", 24, "own stun", 0.5),
        ("HIS_STARTUP", 13, "his startup", 1.0),
        ("OWN_WAVE", 0, "own wave", 0.0),
        ("OWN_WAVE", 1, "own wave", 1.0),
        ("OWN_WAVE", 81, "own wave", 0.5),
        ("HIS_WAVE", 200, "his wave", 0.0),
        ("TIMER", 99, "time", 1.0),
        ("OWN_WINS", 3, "own wins", 1.0),
    ],
)
def test_a_feature_is_a_number_that_its_byte_stands_for(signal, byte, name, value):
    assert shown(**{signal: byte})[name] == pytest.approx(value)


@pytest.mark.parametrize("who", ["own", "his"])
@pytest.mark.parametrize("state", range(STATES))
def test_a_state_is_one_flag_of_thirteen(who, state):
    found = shown(**{f"{who.upper()}_STATE": state})
    flags = [found[f"{who} state {k}"] for k in range(13)]
    assert sum(flags) == 1
    pose = state if state <= 10 else state - 1  # winning and losing poses share one
    assert flags[pose] == 1


def test_there_are_48_features_of_names_of_their_own_within_one():
    assert len(NAMES) == len(set(NAMES)) == FEATURES == len(TABLE)
    assert (np.abs(TABLE) <= 1).all()
    assert TABLE.dtype == np.float32


def test_many_views_are_looked_up_at_once():
    views = np.random.default_rng(0).integers(0, 256, (3, 5, SIGNALS), np.uint8)
    found = see.features({"signals": views}, None)
    assert found.shape == (3, 5, FEATURES)
    for k in range(FEATURES):
        assert (found[..., k] == TABLE[k][views[..., see.SOURCE[k]]]).all()
