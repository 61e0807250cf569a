"""Words for buttons and the bytes they stand for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fighting.machine.emulator import BUTTONS

DIRECTIONS = {"toward": 1 << 4, "away": 1 << 5, "up": 1 << 6, "down": 1 << 7}
"""Directions as button bits, for a fighter who looks right."""
WORDS = {**{name: 1 << bit for bit, name in enumerate(BUTTONS)}, **DIRECTIONS}


class UnknownButtonError(ValueError):
    """A word that is no button."""


def buttons(words: Sequence[str]) -> int:
    """A button byte from words such as [down, a].

    Raises:
        UnknownButtonError: a word names none.
    """
    byte = 0
    for word in words:
        if word not in WORDS:
            raise UnknownButtonError(f"no button {word!r}; there are {', '.join(WORDS)}")
        byte |= WORDS[word]
    return byte


def facing_left(byte: int) -> int:
    """The same buttons for a fighter who looks left."""
    return byte & ~0x30 | (byte & 0x10) << 1 | (byte & 0x20) >> 1


def sided_combos(combos: Sequence[int]) -> np.ndarray:
    """(2, C) uint8: the buttons of C combos for a fighter on the right, then on the left."""
    return np.array([[facing_left(byte) for byte in combos], combos], np.uint8)
