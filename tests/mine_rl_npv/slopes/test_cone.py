"""Slope rules by azimuth, and what a rule says of itself."""

import math

import numpy as np
import pytest

from frugal_rl.errors import ConfigError
from mine_rl_npv.slopes.cone import cell_slopes, runs_by_azimuth

CELLS = np.argwhere(np.ones((2, 2, 3)))


def degrees_of(run):
    return np.degrees(np.arctan(1.0 / run)).round(6)


@pytest.mark.parametrize("slope", [30.0, 45.0, 60.0])
def test_one_slope_holds_all_round(slope):
    run = runs_by_azimuth(slope)
    assert run.shape == (360,)
    assert run == pytest.approx(np.full(360, 1.0 / math.tan(math.radians(slope))))


def test_a_sector_begins_at_its_first_degree_and_ends_before_its_last():
    steep = degrees_of(runs_by_azimuth(45.0, ("90-180:30",)))
    assert set(steep[90:180]) == {30.0}
    assert set(steep[:90]) == set(steep[180:]) == {45.0}


def test_a_sector_may_cross_north():
    steep = degrees_of(runs_by_azimuth(45.0, ("300-60:38",)))
    assert set(steep[300:]) == set(steep[:60]) == {38.0}
    assert set(steep[60:300]) == {45.0}


def test_a_sector_may_be_the_whole_circle():
    assert set(degrees_of(runs_by_azimuth(45.0, ("0-360:38",)))) == {38.0}


def test_of_two_sectors_the_later_one_counts():
    steep = degrees_of(runs_by_azimuth(45.0, ("0-180:30", "90-100:60")))
    assert (steep[89], steep[90], steep[99], steep[100]) == (30.0, 60.0, 60.0, 30.0)


def test_blanks_and_fractions_of_degrees_are_read():
    assert degrees_of(runs_by_azimuth(45.0, (" 10 - 20 : 37.5 ",)))[15] == 37.5


@pytest.mark.parametrize("bearing", [0, 25, 90, 359])
def test_a_turned_model_meets_a_sector_at_its_own_azimuth(bearing):
    steep = degrees_of(runs_by_azimuth(45.0, ("90-180:30",), float(bearing)))
    world = [45.0] * 90 + [30.0] * 90 + [45.0] * 180
    assert steep.tolist() == [world[(degree + bearing) % 360] for degree in range(360)]


def test_a_degree_that_touches_two_sectors_takes_the_flatter_one():
    steep = degrees_of(runs_by_azimuth(45.0, ("90-180:30", "180-270:60"), 0.5))
    assert (steep[88], steep[89], steep[90]) == (45.0, 30.0, 30.0)
    assert (steep[178], steep[179], steep[180]) == (30.0, 30.0, 60.0)
    assert (steep[268], steep[269], steep[270]) == (60.0, 45.0, 45.0)


@pytest.mark.parametrize("sector", ["", "90", "90-180", "a-b:30", "-10-20:30", "1.5-3:30", "0-90:"])
def test_a_sector_of_another_form_is_refused(sector):
    with pytest.raises(ConfigError, match="is not of the form FROM-TO:DEGREES"):
        runs_by_azimuth(45.0, (sector,))


@pytest.mark.parametrize("sector", ["360-10:30", "0-361:30", "10-10:30", "0-90:0", "0-90:90"])
def test_a_sector_out_of_range_is_refused(sector):
    with pytest.raises(ConfigError, match="needs azimuths from 0 to 360 and a slope between"):
        runs_by_azimuth(45.0, (sector,))


def rule(run, levels=0, pattern=""):
    return cell_slopes(CELLS, (20.0, 10.0, 5.0), run, levels, pattern)


def test_a_rule_knows_places_and_edges_in_metres():
    found = rule(runs_by_azimuth(45.0))
    assert found.centre.tolist() == (CELLS * (20.0, 10.0, 5.0)).tolist()
    assert (found.edge == (20.0, 10.0, 5.0)).all()
    assert found.regular


@pytest.mark.parametrize(("levels", "reach"), [(0, math.inf), (1, 5.0), (8, 40.0)])
def test_a_rule_reaches_as_high_as_its_benches(levels, reach):
    assert rule(runs_by_azimuth(45.0), levels).reach == reach


@pytest.mark.parametrize(
    ("run", "levels", "pattern", "words"),
    [
        (runs_by_azimuth(45.0), 0, "", "45 degrees"),
        (runs_by_azimuth(45.0), 8, "", "45 degrees over 8 benches"),
        (runs_by_azimuth(45.0, ("0-90:38",)), 0, "", "38 to 45 degrees"),
        (runs_by_azimuth(37.5, ("0-90:60",)), 2, "", "37.5 to 60 degrees over 2 benches"),
        (runs_by_azimuth(45.0), 0, "1-5-9", "pattern 1-5-9"),
    ],
)
def test_a_rule_says_itself_in_words(run, levels, pattern, words):
    assert rule(run, levels, pattern).words == words


def test_a_rule_for_some_blocks_is_the_same_rule():
    whole = rule(runs_by_azimuth(45.0), 3, "5")
    keep = CELLS[:, 2] > 0
    some = whole.restricted(keep)
    assert some.centre.tolist() == whole.centre[keep].tolist()
    assert some.stated.tolist() == whole.stated[keep].tolist()
    assert len(some.edge) == keep.sum()
    assert (some.levels, some.pattern, some.regular) == (3, "5", True)
