"""What expressions look at: watched bytes and pixels of N machines, now and one step before."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

FRAMES_PER_SECOND = 59.7275
MAP_BYTES = 8192
"""Of a map of 65,536 values, a bit each."""
GAP = 16
"""Watched addresses that lie closer are read together."""


@dataclass
class Watched:
    """Which addresses and pixels the expressions of a profile read; each has a column."""

    addresses: dict[int, int] = field(default_factory=dict)
    pixels: dict[tuple[int, int], int] = field(default_factory=dict)

    def byte(self, address: int) -> int:
        """The column of an address."""
        return self.addresses.setdefault(address, len(self.addresses))

    def pixel(self, x: int, y: int) -> int:
        """The column of a pixel."""
        return self.pixels.setdefault((x, y), len(self.pixels))

    def runs(self) -> list[tuple[int, int]]:
        """Pieces of memory [first, end) that hold every watched address."""
        return joined(self.addresses)


def joined(addresses: Iterable[int]) -> list[tuple[int, int]]:
    """Addresses as few pieces [first, end), small gaps between them included."""
    runs: list[tuple[int, int]] = []
    for address in sorted(addresses):
        if runs and address - runs[-1][1] <= GAP:
            runs[-1] = (runs[-1][0], address + 1)
        else:
            runs.append((address, address + 1))
    return runs


@dataclass
class Scene:
    """One moment of N machines.

    memory  (N, A) uint8    watched bytes, by column
    pixels  (N, P) uint8    watched pixels' grey values
    slots   (N, S) float64  what `start` and `best` remember of the episode
    steps   (N,) int64      actions since the episode began
    frames  (N,) int64      frames since then
    maps    (N, M, 8192) uint8   which of 65,536 values `seen` has met, a bit each; no past
    """

    memory: np.ndarray
    pixels: np.ndarray
    slots: np.ndarray
    steps: np.ndarray
    frames: np.ndarray
    maps: np.ndarray
    before: Scene | None = None

    @classmethod
    def empty(cls, count: int, watched: Watched, slots: int, maps: int = 0) -> Scene:
        """Zeros, with the moment before."""
        both = [
            cls(
                np.zeros((count, len(watched.addresses)), np.uint8),
                np.zeros((count, len(watched.pixels)), np.uint8),
                np.zeros((count, slots)),
                np.zeros(count, np.int64),
                np.zeros(count, np.int64),
                np.zeros((count, maps * now, MAP_BYTES), np.uint8),
            )
            for now in (1, 0)
        ]
        both[0].before = both[1]
        return both[0]

    @property
    def arrays(self) -> Sequence[np.ndarray]:
        """All arrays of this moment that have a past."""
        return self.memory, self.pixels, self.slots, self.steps, self.frames

    def pass_on(self, which: np.ndarray | slice = slice(None)) -> None:
        """The present of the machines listed becomes their past."""
        assert self.before is not None
        for now, past in zip(self.arrays, self.before.arrays, strict=True):
            past[which] = now[which]

    @property
    def nbytes(self) -> int:
        """Bytes of both moments."""
        return 2 * sum(a.nbytes for a in self.arrays) + self.maps.nbytes
