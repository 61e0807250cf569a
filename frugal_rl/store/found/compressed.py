"""Rows compressed one by one with LZ4: pictures that scroll, and patterns within a row."""

from __future__ import annotations

import lz4.block
import numpy as np

from frugal_rl.store.found.rows import Rows

GROWTH = 1.08


class Compressed(Rows):
    """Blocks behind each other; handles count rows. A row equal to the one before is that one.

    blocks  [capacity] uint8
    ends    [R] int64         where the block of each row ends
    last    [N, W] uint64     the newest row of each environment, and its handle
    """

    name = "compressed"
    weight = 1.25

    def __init__(self, num_envs: int, words: int) -> None:
        self.blocks = np.zeros(0, np.uint8)
        self.ends = np.zeros(0, np.int64)
        self.used = 0
        self.last = np.zeros((num_envs, words), np.uint64)
        self.last_handle = np.full(num_envs, -1, np.int64)

    def append(self, rows: np.ndarray, env: np.ndarray, handles: np.ndarray) -> None:
        """Compress what is new."""
        for b, n in enumerate(env):
            if self.last_handle[n] < 0 or not np.array_equal(rows[b], self.last[n]):
                self.last[n] = rows[b]
                self.last_handle[n] = self._put(rows[b])
            handles[b] = self.last_handle[n]

    def _put(self, row: np.ndarray) -> int:
        block = lz4.block.compress(np.ascontiguousarray(row), store_size=False)
        begin = self._begin(self.used)
        end = begin + len(block)
        if end > len(self.blocks):
            wanted = max(end, int(GROWTH * len(self.blocks)))
            self.blocks.resize(wanted, refcheck=False)
        if self.used == len(self.ends):
            self.ends.resize(int(GROWTH * self.used) + 16, refcheck=False)
        self.blocks[begin:end] = np.frombuffer(block, np.uint8)
        self.ends[self.used] = end
        self.used += 1
        return self.used - 1

    def _begin(self, handle: int) -> int:
        return int(self.ends[handle - 1]) if handle else 0

    def read(self, handles: np.ndarray, out: np.ndarray) -> None:
        """Rows, each decompressed once where it stands several times behind itself."""
        flat, size = out.reshape(-1, out.shape[2]), out.shape[2] * out.itemsize
        before = -2
        for place, handle in enumerate(handles.reshape(-1).tolist()):
            if handle < 0:
                flat[place] = 0
            elif handle == before:
                flat[place] = flat[place - 1]
            else:
                block = self.blocks[self._begin(handle) : self.ends[handle]]
                row = lz4.block.decompress(block, uncompressed_size=size)
                flat[place] = np.frombuffer(row, np.uint64)
            before = handle

    def clear(self) -> None:
        """Forget all rows."""
        self.used = 0
        self.last_handle[:] = -1

    def trim(self) -> None:
        """Give unused bytes back."""
        self.blocks.resize(self._begin(self.used), refcheck=False)

    @property
    def used_bytes(self) -> int:
        """Bytes of the blocks and of where they end."""
        return self._begin(self.used) + 8 * self.used

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        arrays = (self.blocks, self.ends, self.last, self.last_handle)
        return sum(int(a.nbytes) for a in arrays)
