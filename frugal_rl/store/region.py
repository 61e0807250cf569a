"""A range of addresses as large as the worst case, of which only what is written takes memory.

A pool that lies in a region never grows by copying: the worst case is reserved, pages become
resident as they are written, and go back to the system as they are released.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import shutil
import tempfile
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from frugal_rl.errors import DataError, MemoryBudgetError
from frugal_rl.memory.choices import RolloutLocation

CHUNK_BYTES = 16384
"""What is counted and given back at once: a whole number of pages."""

NO_RESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)


class Region:
    """Zeroed bytes [capacity] in RAM or in an unnamed mapped file.

    touched   [capacity / CHUNK_BYTES] bool   chunks that hold memory
    reserved  the same, of a mapped file: chunks that the disk has given room for
    """

    def __init__(
        self, capacity: int, location: RolloutLocation = RolloutLocation.ram, folder: str = ""
    ) -> None:
        size = max(1, -(-capacity // CHUNK_BYTES)) * CHUNK_BYTES
        self.in_file = location is RolloutLocation.memmap
        self.file = -1
        if self.in_file:
            self.memory, self.file = _mapped_file(size, folder)
            weakref.finalize(self, os.close, self.file)
        else:
            self.memory = _anonymous(size)
        self.touched = np.zeros(size // CHUNK_BYTES, np.bool_)
        self.reserved = np.zeros(len(self.touched), np.bool_)

    def view(self, dtype: Any) -> np.ndarray:
        """All bytes as an array of a type."""
        return np.frombuffer(self.memory, dtype)

    def reserve(self, start: int, end: int) -> None:
        """Have room for bytes start to end before they are written; memory needs none of this.

        A mapped file's hole that a full disk cannot fill ends the process at the write.

        Raises:
            OSError: the disk is full.
        """
        if not self.in_file:
            return
        first, stop = start // CHUNK_BYTES, -(-min(end, len(self.memory)) // CHUNK_BYTES)
        if not self.reserved[first:stop].all():
            size = (stop - first) * CHUNK_BYTES
            os.posix_fallocate(self.file, first * CHUNK_BYTES, size)
            self.reserved[first:stop] = True

    def touch(self, start: int, end: int) -> None:
        """Bytes start to end are about to be written, or just were."""
        self.touched[start // CHUNK_BYTES : -(-end // CHUNK_BYTES)] = True

    def release(self, start: int, end: int) -> None:
        """Give back the chunks from the one of `start` up to the one of `end`, which stays."""
        first, stop = start // CHUNK_BYTES, end // CHUNK_BYTES
        if first < stop:
            self.touched[first:stop] = self.reserved[first:stop] = False
            advice = mmap.MADV_REMOVE if self.in_file else mmap.MADV_DONTNEED
            size = (stop - first) * CHUNK_BYTES
            with contextlib.suppress(OSError):  # a file system without holes keeps the bytes
                self.memory.madvise(advice, first * CHUNK_BYTES, size)

    def state(self) -> dict[str, Any]:
        """What was written, whole chunks and their places."""
        chunks = np.flatnonzero(self.touched)
        return {"chunks": chunks, "bytes": self._chunks()[chunks]}

    def load(self, state: Mapping[str, Any]) -> None:
        """Hold what `state()` told, and nothing else."""
        self.release(0, len(self.touched) * CHUNK_BYTES)
        chunks = np.asarray(state["chunks"], np.int64)
        if len(chunks) and not 0 <= chunks.min() <= chunks.max() < len(self.touched):
            raise DataError("a replay's chunk lies outside its region.")
        for run in np.split(chunks, np.flatnonzero(np.diff(chunks) != 1) + 1):
            if len(run):
                self.reserve(int(run[0]) * CHUNK_BYTES, (int(run[-1]) + 1) * CHUNK_BYTES)
        self._chunks()[chunks] = state["bytes"]
        self.touched[chunks] = True

    def _chunks(self) -> np.ndarray:
        return self.view(np.uint8).reshape(-1, CHUNK_BYTES)

    @property
    def nbytes(self) -> int:
        """Bytes written and not released, whole chunks."""
        return int(np.count_nonzero(self.touched)) * CHUNK_BYTES


def _anonymous(size: int) -> mmap.mmap:
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NO_RESERVE
    try:
        return mmap.mmap(-1, size, flags=flags)
    except OSError as error:
        raise MemoryBudgetError(
            f"The system reserves no {size / 2**30:.1f} GiB of addresses for the store ({error}), "
            "though it would fill only what it needs. Choose a smaller size, or a mapped file."
        ) from error


def _mapped_file(size: int, folder: str) -> tuple[mmap.mmap, int]:
    """A file with holes and without a name, so that nothing is left behind whatever happens.

    Returns its bytes and its number, which stays open.
    """
    where = Path(folder or tempfile.gettempdir())
    with tempfile.TemporaryFile(dir=where) as file:
        try:
            file.truncate(size)
        except OSError as error:
            free = shutil.disk_usage(where).free / 2**30
            raise MemoryBudgetError(
                f"{where} takes no file of up to {size / 2**30:.1f} GiB ({error}; {free:.1f} GiB "
                "are free). Choose another folder, a smaller size, or memory."
            ) from error
        return mmap.mmap(file.fileno(), size), os.dup(file.fileno())
