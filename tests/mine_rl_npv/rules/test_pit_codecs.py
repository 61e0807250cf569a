"""The pit in fewer bytes: what comes back of both planes, and which pits are refused."""

import numpy as np
import pytest

from frugal_rl.errors import EncodingError
from frugal_rl.observation.choices import Label
from mine_rl_npv.rules.codecs import MinedBitsCodec, SpanCodec, StampCodec

GRID = (4, 3, 5)
PLANES = (2, *GRID)


def pits(seed, batch=6):
    """[B, 2, nx, ny, nz] float32 pits that were dug from the top of each column, with days."""
    random = np.random.default_rng(seed)
    planes = np.zeros((batch, *PLANES), np.float32)
    for b in range(batch):
        for x in range(GRID[0]):
            for y in range(GRID[1]):
                for z in range(GRID[2] - random.integers(0, GRID[2] + 1), GRID[2]):
                    planes[b, 0, x, y, z] = 1
                    planes[b, 1, x, y, z] = random.integers(0, 900)
    return planes


def codecs():
    cells = int(np.prod(GRID))
    return [StampCodec(), MinedBitsCodec(cells, GRID), SpanCodec(levels=GRID[2])]


@pytest.mark.parametrize("codec", codecs(), ids=lambda c: c.name)
@pytest.mark.parametrize("seed", range(3))
def test_which_cells_were_mined_always_comes_back(codec, seed):
    planes = pits(seed)
    again = codec.decode(codec.encode(planes))
    assert again.dtype == np.float32
    assert again.shape == planes.shape
    assert (again[:, 0] == planes[:, 0]).all()


@pytest.mark.parametrize("codec", codecs(), ids=lambda c: c.name)
def test_a_row_has_the_form_that_was_announced(codec):
    shape, dtype = codec.stored(PLANES, np.dtype(np.float32))
    row = codec.encode(pits(0))[0]
    assert (row.shape, row.dtype) == (tuple(shape), dtype)


@pytest.mark.parametrize("codec", codecs(), ids=lambda c: c.name)
def test_one_pit_is_encoded_as_a_batch_of_them(codec):
    planes = pits(1)
    assert (codec.encode(planes[2]) == codec.encode(planes)[2]).all()
    many = planes.reshape(2, 3, *PLANES)
    assert (codec.encode(many).reshape(6, -1) == codec.encode(planes).reshape(6, -1)).all()


def test_a_stamp_keeps_the_days_and_is_lossless():
    planes = pits(2)
    codec = StampCodec()
    assert (codec.decode(codec.encode(planes)) == planes).all()
    assert codec.label is Label.lossless


@pytest.mark.parametrize("codec", codecs()[1:], ids=lambda c: c.name)
def test_the_smaller_forms_drop_the_days_and_say_so(codec):
    assert not codec.decode(codec.encode(pits(3)))[:, 1].any()
    assert codec.label is Label.precision


def test_days_up_to_the_last_but_one_of_16_bits_are_kept():
    planes = np.zeros(PLANES, np.float32)
    planes[0, 0, 0, 0], planes[1, 0, 0, 0] = 1, 65534
    codec = StampCodec()
    assert codec.encode(planes)[0, 0, 0] == 65535
    assert (codec.decode(codec.encode(planes)) == planes).all()
    planes[1, 0, 0, 0] = 65535
    with pytest.raises(EncodingError, match="Day 65535 does not fit a 16-bit stamp"):
        codec.encode(planes)


def test_a_pit_of_no_cells_at_all_is_fine():
    assert StampCodec().encode(np.zeros((0, *PLANES), np.float32)).shape == (0, *GRID)


def test_a_column_that_begins_below_the_surface_is_kept():
    planes = np.zeros(PLANES, np.float32)
    planes[0, 1, 1, 1:3] = 1
    codec = SpanCodec(levels=5)
    assert codec.encode(planes)[1, 1].tolist() == [3, 2]
    assert (codec.decode(codec.encode(planes))[0] == planes[0]).all()


def test_a_column_with_a_gap_is_refused_with_a_remedy():
    planes = np.zeros(PLANES, np.float32)
    planes[0, 1, 1, [0, 2]] = 1
    with pytest.raises(EncodingError, match=r"with gaps; use env\.fields\.pit=bits or derived"):
        SpanCodec(levels=5).encode(planes)


@pytest.mark.parametrize(("levels", "fine"), [(255, True), (256, False)])
def test_more_levels_than_a_byte_counts_are_refused(levels, fine):
    codec, shape = SpanCodec(levels=levels), (2, 3, 3, levels)
    if fine:
        assert codec.stored(shape, np.dtype(np.float32))[0] == (3, 3, 2)
    else:
        with pytest.raises(EncodingError, match="256 levels do not fit 8 bits"):
            codec.stored(shape, np.dtype(np.float32))


@pytest.mark.parametrize(
    ("cells", "grid", "size"), [(60, GRID, 8), (64, (4, 4, 4), 8), (1, (1, 1, 1), 1)]
)
def test_bits_take_whole_bytes(cells, grid, size):
    assert MinedBitsCodec(cells, grid).stored((2, *grid), np.dtype(np.float32))[0] == (size,)
