"""Which integer type holds a range of whole numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def smallest_integer(low: float, high: float) -> np.dtype[Any]:
    """The smallest integer type that holds all whole numbers in [low, high], and zero."""
    low, high = min(0, math.floor(low)), max(0, math.ceil(high))
    kinds = (np.uint8, np.int8, np.uint16, np.int16, np.uint32, np.int32, np.int64)
    return next(np.dtype(k) for k in kinds if np.iinfo(k).min <= low and high <= np.iinfo(k).max)
