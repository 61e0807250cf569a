"""The lattice against slow twins that look at the geometry point by point."""

from collections import deque

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nclone.geometry import MIRRORED, SHAPES, TILE_TYPES, is_solid, is_solid_in_level
from nclone.graph import lattice

GLITCH = (34, 35, 36, 37)


def cave(seed: int, types: int = TILE_TYPES) -> np.ndarray:
    """A random level whose tiles are half empty; the border is full."""
    rng = np.random.default_rng(seed)
    tiles = rng.integers(0, types, (25, 44)).astype(np.uint8)
    tiles[rng.random((25, 44)) < 0.5] = 0
    tiles[[0, -1]] = 1
    tiles[:, [0, -1]] = 1
    return tiles


def free_along(tiles, start, end, samples=97) -> bool:
    """Slow twin of a step: looks at many points of the straight line."""
    return not any(
        is_solid_in_level.py_func(
            tiles,
            start[0] + (end[0] - start[0]) * k / (samples - 1),
            start[1] + (end[1] - start[1]) * k / (samples - 1),
        )
        for k in range(samples)
    )


@pytest.mark.parametrize("tile", range(TILE_TYPES))
def test_a_tile_and_its_mirror_image_are_solid_in_mirrored_places(tile):
    for x in np.arange(0.5, 24):
        for y in np.arange(0.5, 24):
            assert is_solid(tile, x, y) == is_solid(MIRRORED[tile], 24 - x, y)


def test_tiles_cover_the_areas_that_their_shapes_have():
    grid = (np.arange(240) + 0.5) / 10
    share = {t: np.mean([[is_solid(t, x, y) for x in grid] for y in grid]) for t in (1, 2, 8, 10)}
    share |= {t: np.mean([[is_solid(t, x, y) for x in grid] for y in grid]) for t in (14, 20, 24)}

    expected = {1: 1, 2: 1 / 2, 8: 1 / 2, 10: np.pi / 4, 14: 1 - np.pi / 4, 20: 1 / 4, 24: 3 / 4}
    assert share == pytest.approx(expected, abs=3e-3)
    assert all(SHAPES[t, 0] == 0 for t in GLITCH)


@pytest.mark.parametrize("direction", range(4))
@pytest.mark.parametrize("tile", range(TILE_TYPES))
def test_half_a_step_is_free_exactly_where_no_point_of_it_is_solid(tile, direction):
    for node in range(4):
        x, y = 6 + 12 * (node % 2), 6 + 12 * (node // 2)
        points = [
            (x + lattice.STEP_X[direction] * d, y + lattice.STEP_Y[direction] * d)
            for d in np.linspace(0, 6, 61)
        ]
        free = not any(is_solid(tile, px, py) for px, py in points)
        assert lattice.HALF_STEP_FREE[tile, node, direction] == free


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=3)
def test_steps_between_all_kinds_of_tiles_are_free_where_the_line_is(seed):
    tiles = cave(seed)
    exists, steps = np.empty(lattice.NODES, bool), np.empty(lattice.NODES, np.uint8)
    lattice.free_nodes(tiles, exists)
    lattice.free_steps(tiles, exists, steps)

    rng = np.random.default_rng(seed)
    for node in rng.choice(lattice.NODES, 400, replace=False):
        start = lattice.node_position(node)
        for direction in range(4):
            end = (
                start[0] + 12 * lattice.STEP_X[direction],
                start[1] + 12 * lattice.STEP_Y[direction],
            )
            assert bool(steps[node] >> direction & 1) == free_along(tiles, start, end)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=10)
def test_steps_lead_both_ways(seed):
    tiles = cave(seed)
    exists, steps = np.empty(lattice.NODES, bool), np.empty(lattice.NODES, np.uint8)
    lattice.free_nodes(tiles, exists)
    lattice.free_steps(tiles, exists, steps)
    grid = steps.reshape(lattice.HEIGHT, lattice.WIDTH)

    np.testing.assert_array_equal(grid[:, :-1] >> 1 & 1, grid[:, 1:] >> 3 & 1)
    np.testing.assert_array_equal(grid[:-1] >> 2 & 1, grid[1:] & 1)


@given(st.integers(0, 2**32 - 1), st.floats(24, 1032), st.floats(24, 576))
@settings(max_examples=10)
def test_the_flood_reaches_what_a_plain_search_reaches_in_as_many_steps(seed, x, y):
    tiles = cave(seed)
    exists, steps = np.empty(lattice.NODES, bool), np.empty(lattice.NODES, np.uint8)
    lattice.free_nodes(tiles, exists)
    lattice.free_steps(tiles, exists, steps)
    queue, hops = np.empty(lattice.NODES, np.int32), np.empty(lattice.NODES, np.uint16)

    count = lattice.flood_from_spawn(steps, exists, x, y, queue, hops)

    positions = np.array([lattice.node_position(k) for k in range(lattice.NODES)])
    distance = np.where(exists, np.hypot(*(positions - [x, y]).T), np.inf)
    sources = np.flatnonzero(distance <= 10)
    sources = sources if len(sources) else [int(distance.argmin())]
    expected = dict.fromkeys(map(int, sources), 0)
    open_nodes = deque(expected)
    while open_nodes:
        node = open_nodes.popleft()
        for direction, offset in enumerate((-lattice.WIDTH, 1, lattice.WIDTH, -1)):
            if steps[node] >> direction & 1 and node + offset not in expected:
                expected[node + offset] = expected[node] + 1
                open_nodes.append(node + offset)
    assert count == len(expected)
    assert {k: hops[k] for k in np.flatnonzero(hops != 65535)} == expected
