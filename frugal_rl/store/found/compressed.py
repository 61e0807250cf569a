"""Rows compressed with LZ4 against rows before them: pictures that scroll, patterns that move.

Of 16 rows of an environment the first is compressed for itself; each other even one takes that
first row as its dictionary, each odd one the row before it. So reading one row decompresses three
at most. A row equal to the one before is that one.
"""

from __future__ import annotations

import lz4.block
import numpy as np

from frugal_rl.store.found.rows import Rows

GROWTH = 1.08
GROUP = 16
"""Rows of an environment that rest on one."""
KEPT_BYTES = 4 << 20
"""The most bytes of rows that one reading keeps for those that rest on them."""


class Compressed(Rows):
    """Blocks behind each other; handles count rows.

    blocks  [capacity] uint8
    ends    [R] int64         where the block of each row ends
    bases   [R] int32         the row that is its dictionary, -1 for none
    last    [N, W] uint64     the newest row of each environment, and its handle
    root    [N, W] uint64     the first row of its group, and its handle
    count   [N] int64         rows of its group
    """

    name = "compressed"
    weight = 1.25

    def __init__(self, num_envs: int, words: int) -> None:
        self.blocks = np.zeros(0, np.uint8)
        self.ends = np.zeros(0, np.int64)
        self.bases = np.zeros(0, np.int32)
        self.used = 0
        self.last, self.root = (np.zeros((num_envs, words), np.uint64) for _ in range(2))
        self.last_handle, self.root_handle = (np.full(num_envs, -1, np.int64) for _ in range(2))
        self.count = np.zeros(num_envs, np.int64)

    def append(self, rows: np.ndarray, env: np.ndarray, handles: np.ndarray) -> None:
        """Compress what is new."""
        for b, n in enumerate(env.tolist()):
            row = rows[b]
            if self.last_handle[n] < 0 or row.tobytes() != self.last[n].tobytes():
                self.last_handle[n] = self._put(row, n)
                self.last[n] = row
            handles[b] = self.last_handle[n]

    def _put(self, row: np.ndarray, n: int) -> int:
        """A new row of environment n; its handle."""
        place = int(self.count[n]) % GROUP
        self.count[n] += 1
        given, base = b"", -1
        if place:
            near = place % 2
            given = (self.last if near else self.root)[n].tobytes()
            base = int((self.last_handle if near else self.root_handle)[n])
        else:
            self.root[n], self.root_handle[n] = row, self.used
        block = lz4.block.compress(row.tobytes(), store_size=False, dict=given)
        return self._keep(block, base)

    def _keep(self, block: bytes, base: int) -> int:
        begin = self._begin(self.used)
        end = begin + len(block)
        if end > len(self.blocks):
            self.blocks.resize(max(end, int(GROWTH * len(self.blocks))), refcheck=False)
        if self.used == len(self.ends):
            wanted = int(GROWTH * self.used) + 16
            self.ends.resize(wanted, refcheck=False)
            self.bases.resize(wanted, refcheck=False)
        self.blocks[begin:end] = np.frombuffer(block, np.uint8)
        self.ends[self.used], self.bases[self.used] = end, base
        self.used += 1
        return self.used - 1

    def _begin(self, handle: int) -> int:
        return int(self.ends[handle - 1]) if handle else 0

    def read(self, handles: np.ndarray, out: np.ndarray, env: np.ndarray | None = None) -> None:
        """Rows, each decompressed once where it stands several times, as long as they fit."""
        flat, size = out.reshape(-1, out.shape[2]), out.shape[2] * out.itemsize
        kept: dict[int, bytes] = {}
        for place, handle in enumerate(handles.reshape(-1).tolist()):
            if handle < 0:
                flat[place] = 0
            else:
                flat[place] = np.frombuffer(self._row(handle, size, kept), np.uint64)
            if len(kept) * size > KEPT_BYTES:
                kept.clear()

    def _row(self, handle: int, size: int, kept: dict[int, bytes]) -> bytes:
        """One row of `size` bytes."""
        if handle not in kept:
            base = int(self.bases[handle])
            given = self._row(base, size, kept) if base >= 0 else b""
            block = self.blocks[self._begin(handle) : self.ends[handle]]
            kept[handle] = lz4.block.decompress(block, uncompressed_size=size, dict=given)
        return kept[handle]

    def clear(self) -> None:
        """Forget all rows."""
        if not len(self.last):
            shape = len(self.count), self.last.shape[1]
            self.last, self.root = (np.zeros(shape, np.uint64) for _ in range(2))
        self.used = 0
        self.last_handle[:] = self.root_handle[:] = -1
        self.count[:] = 0

    def rest(self) -> None:
        """Rows that others rest on are needed to compress those; blocks tell them as well."""
        self.last, self.root = (np.zeros((0, self.last.shape[1]), np.uint64) for _ in range(2))

    def trim(self) -> None:
        """Give unused bytes back."""
        self.blocks.resize(self._begin(self.used), refcheck=False)
        self.ends.resize(self.used, refcheck=False)
        self.bases.resize(self.used, refcheck=False)

    @property
    def end(self) -> int:
        """A number above every handle."""
        return self.used

    @property
    def used_bytes(self) -> int:
        """Bytes of the blocks, of where they end and of what they rest on."""
        return self._begin(self.used) + 12 * self.used

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        fixed = (self.last, self.root, self.last_handle, self.root_handle, self.count)
        grown = (self.blocks, self.ends, self.bases)
        return sum(int(a.nbytes) for a in (*grown, *fixed))
