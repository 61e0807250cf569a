"""Amounts in a file's units and in whole kilograms, and the plans that are written and read."""

import math
from functools import cache

import numpy as np
import pytest

from frugal_rl.errors import DataError
from mine_rl_npv.data.instance import NEVER
from mine_rl_npv.data.kilograms import UNLIMITED, fineness, kilograms_down, kilograms_up
from mine_rl_npv.data.solutions import (
    period_of,
    read_pit,
    read_solution,
    write_pit,
    write_schedule,
)
from mine_rl_npv.data.synthetic import varied_instance
from mine_rl_npv.data.units import Density, Grade, Length, Mass, Units

ROCK = {
    "x": np.array([10.0]),
    "dx": np.array([20.0]),
    "ton": np.array([30.0]),
    "density": np.array([2.5]),
    "cu": np.array([0.4]),
    "rock": np.array([7.0]),
}


def converted(**units):
    found = Units(**units).converted(ROCK)
    return {name: float(values[0]) for name, values in found.items()}


def test_metres_tonnes_and_per_cent_stay_as_they_are():
    assert converted() == {name: float(values[0]) for name, values in ROCK.items()}


def test_feet_are_lengths_of_places_and_edges():
    found = converted(length=Length.ft)
    assert (found["x"], found["dx"]) == (pytest.approx(3.048), pytest.approx(6.096))
    assert (found["ton"], found["rock"]) == (30.0, 7.0)


@pytest.mark.parametrize(
    ("mass", "tonnes"),
    [(Mass.t, 30.0), (Mass.kg, 0.03), (Mass.lb, 0.0136077711), (Mass.short_ton, 27.2155422)],
)
def test_masses_become_tonnes(mass, tonnes):
    assert converted(mass=mass)["ton"] == pytest.approx(tonnes)


def test_a_short_ton_is_two_thousand_pounds():
    assert converted(mass=Mass.short_ton)["ton"] == pytest.approx(
        2000 * converted(mass=Mass.lb)["ton"]
    )


@pytest.mark.parametrize(
    ("density", "found"),
    [(Density.kg_m3, 0.0025), (Density.lb_ft3, 2.5 * 0.45359237e-3 / 0.3048**3)],
)
def test_densities_become_tonnes_per_cubic_metre(density, found):
    assert converted(density=density)["density"] == pytest.approx(found)


@pytest.mark.parametrize(("grade", "found"), [(Grade.share, 40.0), (Grade.ppm, 0.4e-4)])
def test_grades_become_per_cent(grade, found):
    assert converted(grade=grade)["cu"] == pytest.approx(found)


@pytest.mark.parametrize(
    ("tonnes", "up", "down"),
    [
        (0.0, 0, 0),
        (1.0, 1000, 1000),
        (1.0001, 1001, 1000),
        (1.9999, 2000, 1999),
        (0.1 + 0.2, 300, 300),
        (1e9 / 3, 333333333334, 333333333333),
        (-1.0001, -1000, -1001),
    ],
)
def test_what_is_used_is_rounded_up_and_what_is_allowed_down(tonnes, up, down):
    assert kilograms_up(np.array([tonnes])).tolist() == [up]
    assert kilograms_down(np.array([tonnes])).tolist() == [down]


def test_no_limit_is_more_than_any_sum():
    found = kilograms_down(np.array([[math.inf, 1.0, 1e30]]))
    assert found.dtype == np.int64
    assert found.tolist() == [[UNLIMITED, 1000, UNLIMITED]]
    assert UNLIMITED > 10**9 * 10**6


def test_tonnages_that_no_integer_holds_are_refused():
    with pytest.raises(DataError, match="larger unit"):
        kilograms_up(np.array([1e16]))


def test_light_blocks_are_counted_in_finer_parts():
    assert fineness(np.array([[[0.0123, 15_000.0, 0.0]]])).tolist() == [1e5, 1.0, 1.0]


def test_what_fits_in_kilograms_fits_in_tonnes():
    random = np.random.default_rng(0)
    use = random.uniform(0, 100, (500, 7)).round(3)
    room = (use.sum(axis=1) + random.choice([-0.0004, 0.0, 0.0004], 500)).round(4)
    fits = kilograms_up(use).sum(axis=1) <= kilograms_down(room)
    assert (use.sum(axis=1)[fits] <= room[fits] + 1e-9).all()
    assert 100 < fits.sum() < 500


@cache
def mine():
    """Made when first asked for: its kernels are compiled by one process of the tests alone."""
    return varied_instance(5, 3, 3)


def solution(tmp_path, text):
    path = tmp_path / "a.sol"
    path.write_text(text)
    return path


def test_a_solution_is_fractions_by_block_destination_and_period(tmp_path):
    path = solution(tmp_path, "% lp\n0 0 0 0.25\n0 0 1 0.75\n3 1 2 1\n")
    share = read_solution(path, mine())
    assert share.shape == (mine().blocks, mine().destinations, mine().periods)
    assert share[0, 0, :2].tolist() == [0.25, 0.75]
    assert share[3, 1, 2] == 1
    assert share.sum() == 2


def test_fractions_of_one_place_add_up(tmp_path):
    share = read_solution(solution(tmp_path, "0 0 0 0.25\n0 0 0 0.5\n"), mine())
    assert share[0, 0, 0] == 0.75


def test_six_digits_may_be_a_little_above_one(tmp_path):
    assert read_solution(solution(tmp_path, "0 0 0 1.00001\n"), mine())[0, 0, 0] == 1.00001


@pytest.mark.parametrize("fraction", ["-0.1", "1.1", "nan", "inf", "-inf"])
def test_a_fraction_outside_nought_to_one_is_named_with_its_line(tmp_path, fraction):
    with pytest.raises(DataError, match=r"line 2: the fraction .* is outside \[0, 1\]"):
        read_solution(solution(tmp_path, f"1 0 0 1\n0 0 0 {fraction}\n"), mine())


def test_a_period_is_where_most_of_a_block_goes():
    share = np.zeros((4, 2, 3))
    share[0, 0, 2] = 1
    share[1, 1, 0] = 1
    share[3, 0, 1], share[3, 1, 1], share[3, 0, 0] = 0.3, 0.3, 0.4
    found = period_of(share)
    assert found.tolist() == [2, 0, NEVER, 1]
    assert found.dtype == np.int32


@pytest.mark.parametrize("destinations", [False, True])
def test_a_schedule_comes_back(tmp_path, destinations):
    random = np.random.default_rng(1)
    period = random.integers(-1, mine().periods, mine().blocks)
    sent = random.integers(0, mine().destinations, mine().blocks) if destinations else None
    write_schedule(period, tmp_path / "a.sol", sent)
    share = read_solution(tmp_path / "a.sol", mine())
    assert period_of(share).tolist() == period.tolist()
    mined = period >= 0
    where = share.sum(axis=2).argmax(axis=1)[mined]
    assert where.tolist() == ([0] * mined.sum() if sent is None else sent[mined].tolist())


def test_a_pit_comes_back(tmp_path):
    inside = np.random.default_rng(2).random(30) < 0.4
    write_pit(inside, tmp_path / "pit.sol")
    assert read_pit(tmp_path / "pit.sol", 30).tolist() == inside.tolist()


def test_a_pit_of_another_mine_is_refused(tmp_path):
    (tmp_path / "pit.sol").write_text("0\n30\n")
    with pytest.raises(DataError, match="line 2: block 30 is unknown; known are 0 to 29"):
        read_pit(tmp_path / "pit.sol", 30)
