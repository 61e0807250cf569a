"""Tonnes as whole kilograms, so that a capacity is compared without rounding."""

from __future__ import annotations

import numpy as np

KILOGRAMS = 1000
UNLIMITED = np.int64(2**61)


def kilograms_up(tonnes: np.ndarray) -> np.ndarray:
    """Tonnes as int64 kilograms, rounded up so that what fits in kilograms fits in tonnes."""
    return np.ceil(np.round(tonnes * KILOGRAMS, 6)).astype(np.int64)


def kilograms_down(tonnes: np.ndarray) -> np.ndarray:
    """Limits as int64 kilograms, rounded down; infinity becomes `UNLIMITED`."""
    finite = np.isfinite(tonnes)
    kg = np.full(tonnes.shape, UNLIMITED, np.int64)
    kg[finite] = np.floor(np.round(tonnes[finite] * KILOGRAMS, 6)).astype(np.int64)
    return kg
