"""Copies of columns go on as what they were copied from; rows of other types are stored as such."""

import copy
import pickle

import numpy as np
import pytest

from frugal_rl.store.column_spec import ColumnSpec
from frugal_rl.store.found.column import FoundColumn

STEPS, ENVS = 48, 2
COPIES = {"deepcopy": copy.deepcopy, "pickle": lambda column: pickle.loads(pickle.dumps(column))}


def stacks(rng):
    """Four frames of 256 bytes, the newest last."""
    frames = rng.integers(0, 256, (STEPS + 3, ENVS, 16, 16), np.uint8)
    return np.stack([frames[k : k + STEPS] for k in range(4)], axis=2)


def moving(rng):
    """A vector in which few numbers change."""
    rows = np.zeros((STEPS, ENVS, 120), np.float32)
    rows[np.arange(STEPS), :, rng.integers(0, 120, STEPS)] = 1.5
    return np.cumsum(rows, axis=0, dtype=np.float32)


def shades(rng):
    """Pictures of noise of few bits."""
    return rng.integers(0, 6, (STEPS, ENVS, 32, 32), np.uint8)


def tiles(rng):
    """Pictures that are drawn of tiles of 4 x 4 pixels in four colours."""
    drawn = rng.integers(0, 256, (5, 4, 4), np.uint8)[rng.integers(0, 5, (STEPS, ENVS, 8, 8))]
    return drawn.swapaxes(3, 4).reshape(STEPS, ENVS, 32, 32)


def written(rows, until):
    column = FoundColumn(ColumnSpec("obs", rows.shape[2:], rows.dtype), STEPS, ENVS)
    for t in range(until):
        column.write(t, rows[t], None)
    return column


def drawn(column):
    t, n = np.divmod(np.arange(STEPS * ENVS), ENVS)
    return column.gather(t, n, None, None)


@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize(
    ("play", "form"),
    [(stacks, "stack"), (moving, "words"), (shades, "pixels in few bits"), (tiles, "tiles of")],
)
def test_a_copied_column_goes_on_by_itself(play, form, how):
    rows = play(np.random.default_rng(0))
    column = written(rows, 40)
    assert form in column.segments[-1].form.name
    other = COPIES[how](column)
    for t in range(40, STEPS):
        other.write(t, rows[t], None)
        column.write(t, rows[0], None)

    assert np.array_equal(drawn(other).reshape(rows.shape), rows)
    assert not np.array_equal(drawn(column).reshape(rows.shape), rows)


def test_rows_of_another_type_are_kept_as_an_array_would_keep_them():
    rows = moving(np.random.default_rng(0))
    wide = FoundColumn(ColumnSpec("obs", (120,), np.dtype(np.float64)), STEPS, ENVS)
    for t in range(STEPS):
        wide.write(t, rows[t], None)
    expected = np.zeros((STEPS, ENVS, 120), np.float64)
    expected[...] = rows

    assert drawn(wide).tobytes() == expected.tobytes()


def test_rows_of_another_shape_are_refused_or_spread_as_by_an_array():
    rows = moving(np.random.default_rng(0))
    column = written(rows, 40)
    column.write(40, rows[40, :, :1], None)

    assert (column.gather(np.array([40]), np.array([1]), None, None) == rows[40, 1, 0]).all()
    with pytest.raises(ValueError, match="broadcast"):
        column.write(41, rows[41, :, :60], None)
