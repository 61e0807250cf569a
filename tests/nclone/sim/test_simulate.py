"""Smoke vectors of the specification (section 12), and the shapes of a trajectory."""

import numpy as np
import pytest

import nclone
from nclone.levels.format import pack_level


@pytest.fixture(scope="module")
def room():
    tiles = np.ones((23, 42))
    tiles[8:17, 2:31] = 0
    return pack_level(tiles, [(0, 22, 70, 0, 0)])


def test_running_right_gives_the_numbers_of_the_specification(room):
    hor = np.repeat([1, 0], 60)
    f = nclone.simulate(room, hor, np.zeros(120, int)).f
    want = {
        1: (132.0, 0.04444444444444444),
        30: (155.391550896873, 1.687189582924695),
        60: (228.18027420560165, 3.1978513319221262),
        61: (231.35677083811686, 3.1764966325152177),
        90: (275.02494012354316, 0.5217472357593456),
        120: (282.2847066947892, 0.07065315994395793),
    }
    for frame, (x, vx) in want.items():
        assert f[[0, 2], frame] == pytest.approx([x, vx], abs=1e-12)


def test_a_buffered_jump_gives_the_numbers_of_the_specification(room):
    jump = (np.arange(1, 81) >= 4) & (np.arange(1, 81) < 64)
    got = nclone.simulate(room, np.zeros(80, int), jump.astype(int))
    want = {
        6: (421.38452203785965, 0.39338133339643294, 4),
        10: (416.0732369131946, -1.951229852817502, 3),
        50: (356.2050776487374, -1.1013206238466675, 3),
        60: (347.3411675992782, -0.5942987127191046, 4),
        80: (349.67968779837395, 0.7322770301460365, 4),
    }
    for frame, (y, vy, state) in want.items():
        assert got.f[[1, 3], frame] == pytest.approx([y, vy], abs=1e-12)
        assert got.i[0, frame] == state


def test_a_trajectory_has_one_column_more_than_inputs(room):
    got = nclone.simulate(room, [1, 0, -1], [0, 1, 1])
    assert (got.f.shape, got.f.dtype) == ((4, 4), np.float64)
    assert (got.i.shape, got.i.dtype) == ((9, 4), np.int8)
    assert (got.gold.shape, got.gold.dtype) == ((4,), np.int16)
    assert (got.es.shape, got.es.dtype) == ((0, 4), np.int8)
    assert (got.mov.shape, got.mov.dtype) == ((0,), np.int16)
    assert (got.ep.shape, got.ep.dtype) == ((0, 2, 4), np.float64)
    assert got.f[:, 0].tolist() == [132.0, 420.0, 0.0, 0.0]


def test_no_inputs_give_the_start_alone(room):
    assert nclone.simulate(room, [], []).f.shape == (4, 1)


def test_inputs_that_do_not_fit_are_refused(room):
    with pytest.raises(ValueError, match="one value per frame"):
        nclone.simulate(room, [1, 0], [1])
    with pytest.raises(ValueError, match="-1, 0 or 1"):
        nclone.simulate(room, [2], [0])
