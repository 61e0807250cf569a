"""Looking for values that are not finite, before anything that holds them is kept."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

LARGEST = float(np.finfo(np.float32).max)
ENVIRONMENTS = "vec_env"
STATIC = "static"
MAY_HOLD_ANY = {ENVIRONMENTS, STATIC}
"""Parts of a learner's state that may hold infinities: simulators mark absent things so."""


def finite(values: np.ndarray | Tensor) -> bool:
    """Whether all numbers are; integers are."""
    if isinstance(values, Tensor):
        if not values.is_floating_point():
            return True
        if not values.numel():
            return True
        ends = torch.aminmax(values.detach())  # NaN is both; `isfinite` would copy all weights
        return all(map(math.isfinite, (ends.min.item(), ends.max.item())))
    return values.dtype.kind not in "fc" or bool(np.isfinite(values).all())


def fits(values: np.ndarray | Tensor) -> bool:
    """Whether all numbers are finite, in float32 too, in which networks compute."""
    if not finite(values):
        return False
    wide = isinstance(values, np.ndarray) and values.dtype.kind == "f" and values.itemsize > 4
    return not wide or bool((np.abs(values) <= LARGEST).all())


def not_finite(state: Any, where: str = "") -> Iterator[str]:
    """Places of arrays and tensors with such values; simulators' own states are left out."""
    if isinstance(state, Mapping):
        for name, value in state.items():
            if name not in MAY_HOLD_ANY:
                yield from not_finite(value, f"{where}.{name}" if where else str(name))
    elif isinstance(state, list | tuple):
        for i, value in enumerate(state):
            yield from not_finite(value, f"{where}.{i}")
    elif isinstance(state, np.ndarray | Tensor) and not finite(state):
        yield where
