"""Compiled loops of `NarrowColumn` for codes of at most a byte.

Numbers are compared as their bits, with those that their codes stand for: -0.0 is not 0.0, and NaN
is none of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(cache=True)
def whole_numbers(rows: Any, out: Any) -> None:
    """Floats [N, M] as int64 [N, M]; anything where they are no whole numbers."""
    for n in range(rows.shape[0]):
        for m in range(rows.shape[1]):
            out[n, m] = np.int64(rows[n, m])


@njit(cache=True)
def pack_rows(
    numbers: Any, raw: Any, low: int, bits: int, known: Any, packed: Any, odd: Any
) -> int:
    """Codes of numbers [N, M] int64 into packed [N, bytes] uint8, the first in the lowest bits.

    raw [N, M] is their bits as they came, known [2^bits] those of each code. odd [N] tells rows
    that hold anything else; returns how many.
    """
    count, mask = 0, (1 << bits) - 1
    for n in range(numbers.shape[0]):
        packed[n] = 0
        differs = False
        for m in range(numbers.shape[1]):
            code = (numbers[n, m] - low) & mask
            differs |= known[code] != raw[n, m]
            packed[n, (m * bits) >> 3] |= np.uint8(code << ((m * bits) & 7))
        odd[n] = differs
        count += differs
    return count


@njit(cache=True)
def unpack_rows(packed: Any, at: Any, bits: int, known: Any, out: Any) -> None:
    """Rows at [B] of packed [R, bytes] into their bits, out [B, M]."""
    mask = (1 << bits) - 1
    for b in range(at.shape[0]):
        row = packed[at[b]]
        for m in range(out.shape[1]):
            out[b, m] = known[(row[(m * bits) >> 3] >> ((m * bits) & 7)) & mask]
