"""Block sizes are what nearly all centroids agree on; the rest is put back, named or refused."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mine_rl_npv.data.lattice import NEAR, ON, fit_lattice, turn

CELL = np.argwhere(np.ones((9, 7, 5)))
SIZE = np.array([20.0, 25.0, 12.5])


def centroids(seed=0, keep=1.0):
    """Shuffled centroids of a model with voids, and their cells."""
    rng = np.random.default_rng(seed)
    cell = CELL[rng.permutation(len(CELL))]
    cell = cell[rng.random(len(cell)) < keep]
    return cell * SIZE + (431_250.0, 7_012_340.0, 1_205.0), cell - cell.min(axis=0)


@pytest.mark.parametrize("keep", [1.0, 0.8, 0.5])
def test_a_lattice_with_voids_is_found_in_any_order_of_rows(keep):
    points, cell = centroids(1, keep)
    lattice = fit_lattice(points)
    assert_allclose(lattice.size, SIZE)
    assert_array_equal(lattice.cell, cell)
    assert (lattice.off() < 1e-9).all()


@pytest.mark.parametrize("gap", [(50, 0, 0), (50, 28, 0), (-80, 900, 2), (0, 100, -3)])
@pytest.mark.parametrize("bearing", [0.0, 30.0])
def test_pits_far_apart_have_the_blocks_of_one(gap, bearing):
    """All centroids agree on the distance between the pits too, which made two cells of them."""
    points, cell = centroids(1, 0.8)
    both = np.vstack([cell, cell + gap])
    lattice = fit_lattice(turn(np.vstack([points, points + gap * SIZE]), -bearing))
    assert_allclose(lattice.size, SIZE, rtol=1e-6)
    assert lattice.bearing == pytest.approx(bearing, abs=1e-3)
    assert_array_equal(lattice.cell, both - both.min(axis=0))
    assert (lattice.off() < 1e-4).all()


def test_blocks_in_one_cell_do_not_make_others_smaller():
    points, cell = centroids(1)
    lattice = fit_lattice(np.vstack([points, points[:40]]))
    assert_allclose(lattice.size, SIZE)
    assert_array_equal(lattice.cell, np.vstack([cell, cell[:40]]))


@pytest.mark.parametrize("share", [0.01, 0.1])
def test_moved_centroids_do_not_change_the_block_size(share):
    points, cell = centroids(2)
    rng = np.random.default_rng(3)
    moved = np.flatnonzero(rng.random(len(points)) < share)
    points[moved] += rng.uniform(-0.3, 0.3, (len(moved), 3)) * SIZE
    lattice = fit_lattice(points)
    assert_allclose(lattice.size, SIZE, rtol=1e-6)
    assert_array_equal(lattice.cell, cell)
    assert set(np.flatnonzero(lattice.off() > ON)) <= set(moved)
    assert (lattice.off() < NEAR).all()


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_a_level_moved_by_a_part_of_a_block_never_makes_the_blocks_smaller(axis):
    for part in (0.2, 0.25, 1 / 3, 0.5):
        points, cell = centroids(4)
        points[cell[:, 2] == 3, axis] += part * SIZE[axis]
        lattice = fit_lattice(points)
        if lattice is None or (lattice.off() > NEAR).any():
            assert part == 0.5
        else:
            assert_allclose(lattice.size, SIZE)
            assert_array_equal(lattice.cell, cell)


def test_one_centroid_moved_by_5_m_is_the_only_one_off():
    points, _ = centroids(4)
    points[17, 0] += 5.0
    lattice = fit_lattice(points)
    assert_array_equal(np.flatnonzero(lattice.off() > ON), [17])
    assert_allclose(lattice.off()[17], 0.25)


def test_surveyed_centroids_that_all_wobble_still_agree():
    points, cell = centroids(5)
    points += np.random.default_rng(6).uniform(-0.4, 0.4, points.shape)
    lattice = fit_lattice(points)
    assert_allclose(lattice.size, SIZE, rtol=0.01)
    assert_array_equal(lattice.cell, cell)


@pytest.mark.parametrize("size", [(10 / 3, 10 / 3, 5.0), (0.3048 * 50, 0.3048 * 50, 0.3048 * 40)])
def test_sizes_that_are_no_round_number_survive_rounding_in_the_file(size):
    points = np.round(CELL * np.asarray(size) + 1000.0, 2)
    lattice = fit_lattice(points)
    assert_allclose(lattice.size, size, rtol=2e-3)
    assert_array_equal(lattice.cell, CELL)


@pytest.mark.parametrize("bearing", [30.0, 45.0, 12.34, 89.0])
def test_a_rotated_model_is_turned_back(bearing):
    points, cell = centroids(7, 0.9)
    middle = points.mean(axis=0)
    rotated = turn(points - middle, -bearing) + (5_000.0, 9_000.0, 300.0)
    lattice = fit_lattice(rotated)
    assert lattice.bearing == pytest.approx(bearing, abs=0.01)
    assert_allclose(lattice.size, SIZE, rtol=1e-3)
    assert_array_equal(lattice.cell, cell)


def test_points_without_a_lattice_have_none():
    rng = np.random.default_rng(8)
    assert fit_lattice(rng.uniform(0, 500, (300, 3))) is None


@pytest.mark.parametrize("parts", [2, 3, 4])
@pytest.mark.parametrize("share", [0.1, 0.5])
def test_sub_blocks_are_never_taken_for_a_lattice(parts, share):
    rng = np.random.default_rng(8)
    parents = CELL * 30.0 + 15.0
    split = rng.random(len(parents)) < share
    offsets = (np.argwhere(np.ones((parts,) * 3)) - (parts - 1) / 2) * 30.0 / parts
    children = (parents[split][:, None] + offsets).reshape(-1, 3)
    lattice = fit_lattice(np.vstack((parents[~split], children)))
    assert lattice is None or (lattice.off() > NEAR).any()


def test_a_stated_size_beats_what_the_centroids_say():
    points, cell = centroids(9)
    sparse = points[(cell % 2 == 0).all(axis=1)]
    assert fit_lattice(sparse, SIZE).size == tuple(SIZE)
    assert fit_lattice(sparse).size == tuple(2 * SIZE)


@pytest.mark.parametrize(
    "points", [[[5.0, 5, 5]], [[0.0, 0, 0], [0, 0, 15]], [[0.0, 0, 0], [20, 0, 0]]]
)
def test_a_single_block_and_single_layers_have_a_size_everywhere(points):
    lattice = fit_lattice(np.array(points))
    assert (np.array(lattice.size) > 0).all()
    assert len(np.unique(lattice.cell, axis=0)) == len(points)
