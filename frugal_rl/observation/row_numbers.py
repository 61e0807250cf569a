"""Kernels that number rows: equal rows get one number, found by their bits."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(forceinline=True)  # else each call counts references to five arrays: three times as long
def _slot_of(rows: Any, at: int, known: Any, base: int, slots: Any, fresh: Any) -> Any:
    """The slot of row `at`: that of an equal row, or the first empty one (linear probing).

    Numbers below `base` are rows of `known`, further ones of `rows` by `fresh`.
    """
    hashed = np.uint64(14695981039346656037)  # FNV-1a over words
    for w in range(rows.shape[1]):
        hashed = (hashed ^ np.uint64(rows[at, w])) * np.uint64(1099511628211)
        hashed ^= hashed >> np.uint64(29)
    slot: Any = np.int64(hashed & np.uint64(slots.shape[0] - 1))
    while slots[slot] != -1:
        number, same = slots[slot], True
        for w in range(rows.shape[1]):
            other = known[number, w] if number < base else rows[fresh[number - base], w]
            if rows[at, w] != other:
                same = False
                break
        if same:
            return slot
        slot = (slot + 1) & (slots.shape[0] - 1)
    return slot


@njit(cache=True)
def number_rows(rows: Any, known: Any, base: int, slots: Any, codes: Any, fresh: Any) -> int:
    """Write the number of each row [n, w] to `codes`; how many are new, their places in `fresh`."""
    count = 0
    for at in range(rows.shape[0]):
        slot = _slot_of(rows, at, known, base, slots, fresh)
        if slots[slot] == -1:
            slots[slot] = base + count
            fresh[count] = at
            count += 1
        codes[at] = slots[slot]
    return count


@njit(cache=True)
def find_slots(known: Any, base: int, slots: Any) -> None:
    """Enter rows [0, base) of `known`, all distinct, into empty `slots`."""
    nothing = np.empty(0, np.int64)
    for at in range(base):
        slots[_slot_of(known, at, known, base, slots, nothing)] = at
