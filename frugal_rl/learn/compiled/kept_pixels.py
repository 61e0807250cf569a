"""Decoded pixels of one picture field, kept from one update to the next.

A minibatch of the main job shows about 600 windows of tiles and all of its levels 1,000: decoding
them for each minibatch took a third of what reading it takes. Where pictures hardly repeat the room
is soon full, and starts again.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from frugal_rl.observation.growing_array import GrowingArray
from frugal_rl.observation.repeated_rows import DistinctRows

MOST_BYTES = 4 * 2**20
"""Of one field's pixels; more pictures at a time than that are decoded and not kept."""


class KeptPixels:
    """Pictures [kept, pixels] float32 by the bits of what they are decoded from."""

    def __init__(self, words: int, pixels: int) -> None:
        self.origins = DistinctRows((words,), np.uint64)
        self.pixels = GrowingArray((pixels,), np.float32)
        self.most = MOST_BYTES // self.pixels.row_bytes

    def of(self, origins: np.ndarray, decode: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """The pictures [D, pixels] of origins [D, words]; `decode` gives those at some places."""
        if len(origins) > self.most:
            return decode(np.arange(len(origins)))
        if self.origins.used + len(origins) > self.most:
            self.forget()
        codes, new = self.origins.number(origins)
        if len(new):
            self.pixels.append(decode(new))
        return self.pixels.values.take(codes, axis=0)

    def forget(self) -> None:
        """Keep nothing any more, in the same memory."""
        self.origins.forget()
        self.pixels.used = 0

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return self.origins.nbytes + self.pixels.nbytes
