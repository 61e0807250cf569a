"""The declared observation: derived fields, their twins, their bytes."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from frugal_rl.observation.choices import Storage
from frugal_rl.observation.encoding import Encoding
from frugal_rl.observation.tables import Tables
from nclone import spec
from nclone.derive import frames
from nclone.geometry import COLUMNS, ROWS, is_solid_in_level


def batch(seed: int, size: int = 6) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    cell = np.stack([rng.integers(0, 88, size), rng.integers(0, 50, size)], axis=1)
    tiles = rng.integers(0, 38, (size, ROWS, COLUMNS))
    return {"tiles": tiles.astype(np.uint8), "cell": cell.astype(np.uint8)}


def slow_window(tiles: np.ndarray, column: int, row: int) -> np.ndarray:
    out = np.zeros((spec.WINDOW, spec.WINDOW), np.uint8)
    for i in range(spec.WINDOW):
        for j in range(spec.WINDOW):
            x0, y0 = 12 * (column + j - 7), 12 * (row + i - 7)
            out[i, j] = sum(
                is_solid_in_level(tiles, x0 + x + 0.5, y0 + y + 0.5)
                for x in range(12)
                for y in range(12)
            )
    return out


@given(st.integers(0, 2**31))
def test_the_tile_window_and_its_torch_twin_agree_to_the_bit(seed):
    sources = batch(seed)
    tensors = {k: torch.from_numpy(v) for k, v in sources.items()}

    kernel = spec.tile_window(sources, Tables())
    gathered = frames.tile_window_by_gathers(tensors["tiles"], tensors["cell"].long())

    assert_array_equal(gathered.numpy(), kernel)
    assert_array_equal(frames.tile_window(tensors, {}).numpy(), kernel)


def test_the_tile_window_counts_solid_pixels_around_the_ninja():
    sources = batch(3, size=2)

    windows = spec.tile_window(sources, Tables())

    for n in range(2):
        column, row = (int(v) for v in sources["cell"][n])
        assert_array_equal(windows[n], slow_window(sources["tiles"][n], column, row))


def test_the_lossless_row_drops_what_the_level_already_says():
    declared = spec.observation_spec(spec.Observation.state)

    dense = Encoding.choose(declared, Storage.dense)
    lossless = Encoding.choose(declared, Storage.lossless)

    assert dense.row_bytes - lossless.row_bytes == 15 * 15 - 2 - 4 + 6 - 1
