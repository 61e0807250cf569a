"""Looking for values that are not finite finds each of them, and holds nothing meanwhile."""

import math

import pytest
import torch

from frugal_rl.learn.held import Held
from frugal_rl.run.finite import finite


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_one_value_is_found_wherever_it_lies(dtype, value):
    for at in (0, 5000, 9999):
        values = torch.zeros(10_000, dtype=dtype)
        assert finite(values)
        values[at] = value
        assert not finite(values)
        assert not finite(values.view(100, 100).T)
    assert finite(torch.zeros(0, dtype=dtype))
    assert finite(torch.zeros(3, dtype=torch.int64))


def test_weights_are_looked_through_without_a_copy():
    values = torch.zeros(1 << 20)
    held = Held()
    held.leave_out([values])
    with held:
        finite(values)

    assert held.peak < values.nbytes / 100
