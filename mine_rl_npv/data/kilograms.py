"""Tonnes as whole kilograms, so that a capacity is compared without rounding."""

from __future__ import annotations

import numpy as np

from frugal_rl.errors import DataError

KILOGRAMS = 1000
UNLIMITED = np.int64(2**61)
MOST = 2.0**60
"""Kilograms of all blocks together, above which sums would overflow."""


def kilograms_up(tonnes: np.ndarray) -> np.ndarray:
    """Tonnes as int64 kilograms, rounded up so that what fits in kilograms fits in tonnes.

    Raises:
        DataError: they are too many to be added up.
    """
    if tonnes.sum() * KILOGRAMS > MOST:
        raise DataError(
            f"The blocks take {tonnes.sum():.3g} tonnes in all, more than can be counted in whole "
            "kilograms; state tonnages and their limits in a larger unit."
        )
    return np.ceil(np.round(tonnes * KILOGRAMS, 6)).astype(np.int64)


def kilograms_down(tonnes: np.ndarray) -> np.ndarray:
    """Limits as int64 kilograms, rounded down; what no sum reaches becomes `UNLIMITED`."""
    kg = np.full(tonnes.shape, UNLIMITED, np.int64)
    near = tonnes * KILOGRAMS < MOST
    kg[near] = np.floor(np.round(tonnes[near] * KILOGRAMS, 6)).astype(np.int64)
    return kg


def fineness(tonnes: np.ndarray) -> np.ndarray:
    """Powers of ten (R,) that make whole kilograms fine enough for blocks below a tonne, else 1.

    Args:
        tonnes: (n, D, R) of what blocks take, perhaps in kilotonnes or millions.
    """
    heaviest = tonnes.max(axis=(0, 1), initial=0.0)
    light = (heaviest > 0) & (heaviest < 1)
    return np.where(light, 10.0 ** np.ceil(3 - np.log10(np.where(light, heaviest, 1.0))), 1.0)
