"""Random numbers that are the same for ever: a level's seed must outlive library versions."""

from __future__ import annotations

from collections.abc import MutableSequence, Sequence
from typing import TypeVar

T = TypeVar("T")
_MASK = (1 << 64) - 1


class Dice:
    """The generator SplitMix64, seeded by a name and a number."""

    def __init__(self, name: str, seed: int) -> None:
        state = 0xCBF29CE484222325  # FNV-1a over the name, then the seed
        for byte in name.encode() + (seed & _MASK).to_bytes(8, "little"):
            state = (state ^ byte) * 0x100000001B3 & _MASK
        self._state = state

    def _next(self) -> int:
        self._state = (self._state + 0x9E3779B97F4A7C15) & _MASK
        z = self._state
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & _MASK
        z = (z ^ z >> 27) * 0x94D049BB133111EB & _MASK
        return z ^ z >> 31

    def between(self, low: int, high: int) -> int:
        """A whole number from low to high, both included; low if high is below it."""
        return low if high <= low else low + self._next() % (high - low + 1)

    def chance(self, probability: float) -> bool:
        """True with a probability."""
        return (self._next() >> 11) < probability * (1 << 53)

    def pick(self, options: Sequence[T]) -> T:
        """One of the options."""
        return options[self._next() % len(options)]

    def shuffle(self, items: MutableSequence[T]) -> None:
        """Put items into a random order, in place."""
        for k in range(len(items) - 1, 0, -1):
            other = self._next() % (k + 1)
            items[k], items[other] = items[other], items[k]
