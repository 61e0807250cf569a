"""Where arrays and their rows begin."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

ALIGNMENT = 64
"""Bytes; matrix kernels round differently where an operand begins elsewhere."""
WORD_BYTES = 8
"""Rows are compared and kept in whole words."""


def aligned_empty(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """An array that begins at a multiple of `ALIGNMENT` bytes, as torch's own tensors do."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    memory = np.empty(size + ALIGNMENT, np.uint8)
    return np.ndarray(shape, dtype, memory, -memory.ctypes.data % ALIGNMENT)
