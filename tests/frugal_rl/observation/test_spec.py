"""What a plain Gymnasium user sees of a declaration."""

import numpy as np
import pytest

from frugal_rl import ObservationSpec, Stored


@pytest.mark.parametrize(("window", "shape"), [(1, (3,)), (2, (2, 3)), (4, (4, 3))])
def test_a_window_is_observed_as_so_many_rows(window, shape):
    field = Stored("x", (3,), np.float32, -1, 2, window=window)

    box = ObservationSpec((field,)).observation_space["x"]

    assert (box.shape, box.dtype) == (shape, np.float32)
    assert (box.low.min(), box.high.max()) == (-1, 2)
