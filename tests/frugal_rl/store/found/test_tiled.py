"""Pictures on a grid come back bit for bit, whatever their tiles, their layout and their edges."""

import numpy as np
import pytest

from frugal_rl.errors import DataError
from frugal_rl.observation.codecs.pooled import FoundCodec
from frugal_rl.observation.found_form import is_picture, read_form
from frugal_rl.store.column_spec import ColumnSpec
from frugal_rl.store.found import tiled
from frugal_rl.store.found.column import FoundColumn
from frugal_rl.store.found.tile_kernels import UNKNOWN, mix
from frugal_rl.store.found.tiled import TiledColumn
from frugal_rl.store.found.tiles import find_tiles, lying

ENVS = 3
U8 = np.dtype(np.uint8)


def drawn(rng, steps, high, wide, down, across, kinds=12, cut=(1, 2)):
    """Pictures [T, N, H, W, 3] of random tiles, some of which change, cut off at two edges."""
    art = rng.integers(0, 256, (kinds, high, wide, 3), np.uint8)
    grid = rng.integers(0, kinds, (ENVS, down, across))
    rows = []
    for t in range(steps):
        if t % 6 == 5:
            grid = np.roll(grid, 1, axis=2)
        grid[np.arange(ENVS), rng.integers(down, size=ENVS), rng.integers(across, size=ENVS)] = (
            t % 5
        )
        whole = art[grid].transpose(0, 1, 3, 2, 4, 5)
        whole = whole.reshape(ENVS, down * high, across * wide, 3)
        rows.append(whole[:, : down * high - cut[0], : across * wide - cut[1]])
    return np.array(rows)


def kept(column, rows):
    """Whether all rows are given back, drawn in any order, with some of them twice."""
    for t, row in enumerate(rows):
        column.write(t, row, None)
    order = np.random.default_rng(1).integers(0, len(rows) * ENVS, 3 * len(rows))
    t, n = np.divmod(order, ENVS)
    return column.gather(t, n, None, None).tobytes() == np.ascontiguousarray(rows[t, n]).tobytes()


@pytest.mark.parametrize("wide", [3, 5, 7, 8, 13])
@pytest.mark.parametrize("layout", ["last", "first", "turned", "grey", "words"])
def test_rows_of_tiles_are_given_back(layout, wide):
    rng = np.random.default_rng(wide)
    rows = drawn(rng, 40, 7, wide, 4, 9)
    tile = (7, wide)
    if layout == "first":
        rows = np.ascontiguousarray(rows.transpose(0, 1, 4, 2, 3))
    if layout == "turned":
        rows = rows.transpose(0, 1, 4, 2, 3)
    if layout == "grey":
        rows = rows[..., 0].copy()
    if layout == "words":
        rows = rows.astype(np.float32)
    column = TiledColumn(ColumnSpec("x", rows.shape[2:], rows.dtype), 40, ENVS, tile)

    for _ in range(2):  # a rollout after another
        assert kept(column, rows)
    assert column.used_bytes < 0.25 * rows.nbytes
    assert column.rows.whole is None


@pytest.mark.parametrize("turned", [False, True])
def test_rows_of_too_many_new_tiles_are_kept_whole_among_the_others(turned):
    rng = np.random.default_rng(0)
    rows = drawn(rng, 60, 8, 8, 5, 5, kinds=6)
    noisy = rng.random((60, ENVS)) < 0.3
    noisy[:4] = False  # the first tiles are let in, whatever they are
    rows[noisy] = rng.integers(0, 256, (int(noisy.sum()), *rows.shape[2:]), np.uint8)
    rows = rows.transpose(0, 1, 4, 2, 3) if turned else rows
    column = TiledColumn(ColumnSpec("x", rows.shape[2:], U8), 60, ENVS, (8, 8))

    assert kept(column, rows)
    assert (column.handles.values & 1 == 1).tolist() == noisy.tolist()
    assert column.rows.known <= 6 * 4  # whole ones, and cut off at two edges


def test_tiles_that_differ_in_one_bit_and_those_of_one_hash_are_told_apart(monkeypatch):
    rng = np.random.default_rng(0)
    art = np.repeat(rng.integers(0, 256, (1, 8, 8, 3), np.uint8), 193, axis=0)
    bits = art.reshape(193, -1)
    bits[np.arange(1, 193), np.arange(192)] ^= np.uint8(1) << (np.arange(192) % 8).astype(np.uint8)
    rows = art[rng.integers(0, 193, (50, ENVS, 16))].reshape(50, ENVS, 4, 4, 8, 8, 3)
    rows = rows.transpose(0, 1, 2, 4, 3, 5, 6).reshape(50, ENVS, 32, 32, 3)
    monkeypatch.setattr(tiled, "NEW_SHARE", 1)
    for keys in (None, 0):
        column = TiledColumn(ColumnSpec("x", (32, 32, 3), U8), 50, ENVS, (8, 8))
        if keys is not None:
            column.rows._keys[:] = keys  # every tile has the same hash
        assert kept(column, rows)
        assert column.rows.whole is None
        assert 100 < column.rows.known <= 193


def test_a_table_that_is_full_takes_no_more_tiles(monkeypatch):
    monkeypatch.setattr(tiled, "MOST_TILES", 20)
    monkeypatch.setattr(tiled, "NEW_SHARE", 1)
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 256, (30, ENVS, 16, 16, 3), np.uint8)
    column = TiledColumn(ColumnSpec("x", (16, 16, 3), U8), 30, ENVS, (8, 8))

    assert kept(column, rows)
    assert column.rows.known <= 20
    assert (column.handles.values & 1).sum() > 60


def test_a_hash_depends_on_every_bit_in_its_highest_ones():
    keys = tiled.Tiled(1, 8, lying((16, 16), 1, False, 4, 4))._keys[:4]
    tile = np.arange(4, dtype=np.uint64)
    seen = set()
    for bit in range(256):
        other = tile.copy()
        other[bit // 64] ^= np.uint64(1) << np.uint64(bit % 64)
        seen.add(int(mix(other, keys)) >> 40)
    assert len(seen) > 250
    assert all(keys % np.uint64(2) == 1)


@pytest.mark.parametrize(
    ("high", "wide"), [(7, 7), (8, 8), (16, 16), (12, 8), (5, 9), (3, 3), (32, 32)]
)
def test_the_size_of_tiles_is_found(high, wide):
    rows = drawn(np.random.default_rng(3), 30, high, wide, 6, 6, cut=(0, 0))

    assert find_tiles(rows) == (high, wide)
    assert find_tiles(rows.transpose(0, 1, 4, 2, 3)) == (high, wide)


def test_noise_and_vectors_are_no_tiles():
    rng = np.random.default_rng(0)
    assert find_tiles(rng.integers(0, 256, (8, ENVS, 32, 32, 3), np.uint8)) is None
    assert find_tiles(rng.integers(0, 2, (8, ENVS, 400), np.uint8)) is None
    assert [is_picture(s) for s in ((16, 16), (3, 16, 20), (20, 16, 3), (15, 20), (5, 20, 20))] == [
        True, True, True, False, False,
    ]  # fmt: skip


def test_a_rollout_of_pictures_on_a_grid_becomes_tiles_by_itself():
    rows = drawn(np.random.default_rng(0), 128, 7, 7, 9, 9).transpose(0, 1, 4, 2, 3)
    column = FoundColumn(ColumnSpec("x", rows.shape[2:], U8), 128, ENVS)

    for _ in range(2):
        assert kept(column, rows)
    assert column.segments[0].form.name == "tiles of 7 x 7 pixels"
    assert column.nbytes < rows.nbytes / 60


def test_tiles_can_be_frozen_for_pictures_alone():
    form = read_form("tiles of 7 x 9 pixels")
    assert form.tile == (7, 9)
    assert form.fits((64, 64, 3), 1)
    assert not form.fits((64,), 1)
    with pytest.raises(DataError, match="is no form"):
        read_form("tiles of 0 x 9 pixels")
    rows = drawn(np.random.default_rng(0), 20, 7, 9, 4, 4)
    spec = ColumnSpec("x", rows.shape[2:], U8, codec=FoundCodec(form=form))
    column = FoundColumn(spec, 20, ENVS)
    assert kept(column, rows)
    assert column.segments[0].form.name == "tiles of 7 x 9 pixels"


def test_names_are_below_the_mark_of_an_unknown_tile():
    assert tiled.MOST_TILES == int(UNKNOWN) == 65535
