"""Pictures in few bits come back bit for bit: every width, layout and edge, noise and constants."""

import numpy as np
import pytest

from frugal_rl.errors import DataError
from frugal_rl.observation.codecs.pooled import FoundCodec
from frugal_rl.observation.found_form import can_be_packed, read_form
from frugal_rl.store.column_spec import ColumnSpec
from frugal_rl.store.found.column import FoundColumn
from frugal_rl.store.found.packed import Packed
from frugal_rl.store.found.packed_column import PackedColumn
from frugal_rl.store.found.packed_kernels import spread, squeezed

ENVS, STEPS = 3, 20
U8 = np.dtype(np.uint8)


def drawn(rng, shape, bits):
    """Pictures [T, N, *shape] of noise of some bits on a slope that wraps around at 256."""
    noise = rng.integers(0, 1 << bits, (STEPS, ENVS, *shape), np.uint8)
    slope = np.arange(np.prod(shape)).reshape(shape) // 3
    rows = (noise + slope).astype(np.uint8)
    rows[4] = rows[3]
    rows[7, 1] = 0
    rows[8, 2] = 255
    return rows


def kept(column, rows):
    """Whether all rows are given back, drawn in any order, over two rollouts."""
    for _ in range(2):
        for t, row in enumerate(rows):
            column.write(t, row, None)
    order = np.random.default_rng(1).integers(0, len(rows) * ENVS, 3 * len(rows))
    t, n = np.divmod(order, ENVS)
    return column.gather(t, n, None, None).tobytes() == np.ascontiguousarray(rows[t, n]).tobytes()


@pytest.mark.parametrize("bits", [0, 1, 3, 6, 8])
@pytest.mark.parametrize("shape", [(16, 21, 3), (3, 18, 40), (17, 33), (20, 17, 1), (1, 16, 65)])
def test_pictures_are_given_back(shape, bits):
    rows = drawn(np.random.default_rng(bits), shape, bits)
    assert kept(PackedColumn(ColumnSpec("x", shape, U8), STEPS, ENVS), rows)


@pytest.mark.parametrize("bits", [2, 7])
def test_pictures_that_lie_channels_last_are_given_back_turned(bits):
    rows = drawn(np.random.default_rng(bits), (18, 21, 3), bits).transpose(0, 1, 4, 2, 3)
    column = PackedColumn(ColumnSpec("x", (3, 18, 21), U8), STEPS, ENVS)
    assert kept(column, rows)
    assert kept(column, np.ascontiguousarray(rows))  # a rollout that lies in another way
    assert column.rows.pixels.apart is False


def test_every_width_of_a_byte_is_spread_again_and_what_follows_is_dropped():
    rng = np.random.default_rng(0)
    for bits in range(1, 9):
        for _ in range(50):
            octets = rng.integers(0, 1 << bits, 8).astype(np.uint8)
            word = int(squeezed(octets.view(np.uint64)[0], bits))
            assert word < 1 << (8 * bits)
            behind = int(rng.integers(1 << 62)) << (8 * bits)
            back = np.uint64(spread(np.uint64((word | behind) & (1 << 64) - 1), bits))
            assert back.tobytes() == octets.tobytes()


def test_equal_rows_are_kept_once_and_noise_takes_little_more_than_itself():
    rng = np.random.default_rng(0)
    column = PackedColumn(ColumnSpec("x", (3, 32, 32), U8), STEPS, ENVS)
    rows = np.repeat(rng.integers(0, 256, (1, ENVS, 3, 32, 32), np.uint8), STEPS, axis=0)
    assert kept(column, rows)
    assert column.rows.used_bytes <= 1.07 * rows[0].nbytes
    grey = np.repeat(rng.integers(0, 256, (STEPS, ENVS, 1, 32, 32), np.uint8), 3, axis=2)
    assert kept(column, grey)  # colours are what they differ by from green: nothing here
    assert column.rows.used_bytes < 0.42 * grey.nbytes


def test_pictures_of_slopes_are_packed_by_themselves_and_frozen():
    rng = np.random.default_rng(0)
    steps = 64
    slope = np.add.outer(np.arange(40), np.arange(40))[..., None]
    rows = (slope + rng.integers(0, 8, (steps, ENVS, 40, 40, 3))).astype(np.uint8)
    column = FoundColumn(ColumnSpec("x", (40, 40, 3), U8), steps, ENVS)
    assert kept(column, rows)
    assert [s.form.name for s in column.segments] == [Packed.name]
    assert column.nbytes < 0.7 * rows.nbytes

    form = read_form(Packed.name)
    frozen = FoundColumn(ColumnSpec("x", (40, 40, 3), U8, codec=FoundCodec(form=form)), steps, ENVS)
    assert isinstance(frozen.segments[0].column, PackedColumn)
    assert kept(frozen, rows)
    assert form.fits((40, 40, 3), 1)
    assert not form.fits((40, 40, 3), 4)
    assert form.stacked(4, 4800) is None
    with pytest.raises(DataError, match="pixels in few bits"):
        read_form("pixels in no bits")


@pytest.mark.parametrize(
    ("shape", "packs"),
    [((40, 40), True), ((40, 40, 3), True), ((1, 40, 40), True), ((40, 40, 4), False),
     ((40,), False), ((8, 8, 3), False)],
)  # fmt: skip
def test_only_grey_and_coloured_pictures_are_packed(shape, packs):
    assert can_be_packed(shape, 1) is packs
    assert not can_be_packed(shape, 2)
