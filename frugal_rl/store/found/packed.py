"""Pictures in few bits a byte: what differs from the line above, and colours from green.

For pictures that neither repeat nor are drawn of parts: rooms in three dimensions, noise. Each row
stands for itself and is packed in words, several times faster than by LZ4. A row equal
to the one before is that one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from frugal_rl.store.found.packed_kernels import BLOCK, HEAD, SLACK, pack_rows, unpack_rows
from frugal_rl.store.found.rows import Rows

GROWTH = 1.08


@dataclass(frozen=True)
class Pixels:
    """A row as planes [planes, lines, line]; apart tells that their bytes lie pixel by pixel."""

    planes: int
    lines: int
    line: int
    apart: bool

    @property
    def size(self) -> int:
        """Bytes of a plane."""
        return self.lines * self.line

    @property
    def distance(self) -> int:
        """Bytes to what a byte is compared with: a line above, or several that fill a block."""
        return self.line * -(-BLOCK // self.line)

    @property
    def blocks(self) -> int:
        """Blocks of a row."""
        return -(-self.planes * self.size // BLOCK)

    @property
    def lead(self) -> int:
        """Zeros before the first line."""
        return BLOCK * -(-self.distance // BLOCK)

    @property
    def values(self) -> tuple[int, int, int, int, int]:
        """For kernels."""
        return self.planes, self.size, self.distance, self.lead, int(self.apart)


def pixels_of(shape: tuple[int, ...], last: bool) -> Pixels:
    """How a picture [H, W], [H, W, C] or [C, H, W] of bytes lies; C is 1 or 3.

    last tells that a picture [C, H, W] lies in memory as [H, W, C].
    """
    if len(shape) == 2:
        return Pixels(1, shape[0], shape[1], apart=False)
    if shape[2] <= shape[0]:
        return Pixels(shape[2], shape[0], shape[1], apart=shape[2] == 3)
    return Pixels(shape[0], shape[1], shape[2], apart=last and shape[0] == 3)


class Packed(Rows):
    """Records behind each other; handles are places in the pool.

    pool    [capacity] uint8
    state   [N, 2] int64      place and size of each environment's newest record
    """

    name = "pixels in few bits"

    def __init__(self, num_envs: int, words: int, pixels: Pixels) -> None:
        self.pixels = pixels
        self.pool = np.zeros(0, np.uint8)
        self.state = np.zeros((num_envs, 2), np.int64)
        self._counts = np.array([0, *pixels.values])
        self._scratch = np.zeros(pixels.lead + BLOCK * (pixels.blocks + 1), np.uint8)

    def append(self, rows: np.ndarray, env: np.ndarray, handles: np.ndarray) -> None:
        """Pack rows."""
        done, counts = 0, self._counts
        while True:
            done = pack_rows(rows, done, env, counts, self.state, self.pool, self._scratch, handles)
            if done == len(rows):
                return
            need = self.used_bytes + (HEAD + BLOCK) * self.pixels.blocks + SLACK
            self.pool.resize(max(need, int(GROWTH * len(self.pool))), refcheck=False)

    def read(self, handles: np.ndarray, out: np.ndarray, env: np.ndarray | None = None) -> None:
        """Rows as they lie."""
        rows = out.reshape(-1, out.shape[2])
        self._read(handles, rows, np.empty((0, 3, 0), np.uint8))

    def read_turned(self, handles: np.ndarray, env: np.ndarray, out: np.ndarray) -> None:
        """Planes, which is how they are packed."""
        self._read(handles, np.empty((0, 0), np.uint64), out)

    def _read(self, handles: np.ndarray, out: np.ndarray, planes: np.ndarray) -> None:
        unpack_rows(self.pool, handles.reshape(-1), self._counts, self._scratch, out, planes)

    def clear(self) -> None:
        """Forget all rows."""
        self._counts[0] = 0
        self.state[:] = 0

    def trim(self) -> None:
        """Give unused bytes back; those stay that reading a word at the end may touch."""
        self.pool.resize(self.used_bytes + SLACK, refcheck=False)

    @property
    def end(self) -> int:
        """A number above every handle."""
        return self.used_bytes

    @property
    def used_bytes(self) -> int:
        """Bytes of the records."""
        return int(self._counts[0])

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        kept = (self.pool, self.state, self._counts, self._scratch)
        return sum(int(a.nbytes) for a in kept)
