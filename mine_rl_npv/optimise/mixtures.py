"""Destinations that share a block, as PCPSP lets them and a mill of a few blocks asks for.

Orders choose one destination per block. Where a destination has no room for a whole block in any
period, the largest share that fits goes there and the rest to the spare destination, which takes
least; where few blocks fill a period, parts of that are choices of their own.
"""

from __future__ import annotations

import numpy as np

COARSE = 0.25
"""Share of the roomiest period that one block takes, above which its parts are choices."""
PARTS = 4


def mixtures(use: np.ndarray, room: np.ndarray) -> np.ndarray | None:
    """Shares (m, C, D) of the D destinations in C >= D choices; None where whole blocks will do.

    Args:
        use: (m, D, R) int64 kilograms.
        room: (R, T) int64 kilograms.
    """
    m, destinations, _ = use.shape
    most = room.max(axis=1, initial=0)
    tight = _shares_of(use, most)
    spare = tight.argmin(axis=1)
    rows = np.arange(m)
    extra = use - use[rows, spare][:, None]
    left = most - use[rows, spare] - 1  # a kilogram, by which tonnes may be rounded up
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(extra > 0, left[:, None] / extra, 1.0).min(axis=2, initial=1.0).clip(0)
    whole = (use <= most).all(axis=2)
    share[whole] = 1.0
    coarse = np.flatnonzero((_shares_of(extra.clip(0), most) > COARSE).any(axis=0))
    if whole.all() and not len(coarse):
        return None
    choices = [_blended(d, share[:, d], spare, destinations) for d in range(destinations)]
    for part in range(PARTS - 1, 0, -1):
        choices += [_blended(d, share[:, d] * part / PARTS, spare, destinations) for d in coarse]
    return np.stack(choices, axis=1)


def _shares_of(use: np.ndarray, most: np.ndarray) -> np.ndarray:
    """(m, D) greatest share of the roomiest period; inf of a resource without any room."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(use > 0, use / most, 0.0).max(axis=2, initial=0.0)


def _blended(d: int, share: np.ndarray, spare: np.ndarray, destinations: int) -> np.ndarray:
    """(m, D) the share in destination d, the rest in the spare one."""
    blended = np.zeros((len(share), destinations))
    blended[np.arange(len(share)), spare] = 1.0 - share
    blended[:, d] += share
    return blended
