"""Room on a device for blocks that come and go in order, and for whole rows. Imports torch."""

from __future__ import annotations

from collections import deque

import numpy as np
import torch

WIDER = 1.125
"""Room beyond what all blocks are expected to take."""


class EntryRing:
    """Entries of blocks, one block behind the other, freed in the order in which they came.

    values  [room]            on the device; grows while the first blocks come
    bases   [blocks] int64    where a block begins, by its number modulo `blocks`
    """

    def __init__(self, dtype: torch.dtype, blocks: int, device: torch.device) -> None:
        self.values = torch.zeros(0, dtype=dtype, device=device)
        self.bases = np.zeros(blocks, np.int64)
        self._held: deque[tuple[int, int, int]] = deque()

    def put(self, block: int, entries: np.ndarray) -> None:
        """Keep a block's entries [M]."""
        begin = self._room_for(len(entries))
        if begin is None:
            self._grow(len(entries))
            begin = self._room_for(len(entries))
            assert begin is not None
        end = begin + len(entries)
        self.values[begin:end] = torch.from_numpy(entries)
        self.bases[block % len(self.bases)] = begin
        self._held.append((block, begin, end))

    def drop_oldest(self) -> None:
        """Free the oldest block."""
        self._held.popleft()

    def _room_for(self, count: int) -> int | None:
        """Where so many entries fit behind the newest block, or at the front."""
        if not self._held:
            return 0 if count <= len(self.values) else None
        oldest, end = self._held[0][1], self._held[-1][2]
        if self._held[-1][1] < oldest:  # the newest blocks lie before the oldest
            return end if end + count <= oldest else None
        if end + count <= len(self.values):
            return end
        return 0 if count <= oldest else None

    def _grow(self, count: int) -> None:
        """Room for what all blocks would take if they were as those held, twice as much at most."""
        taken = sum(end - begin for _, begin, end in self._held) + count
        full = int(WIDER * taken * len(self.bases) / (len(self._held) + 1))
        room = max(min(full, 2 * taken), taken)
        wider = torch.zeros(room, dtype=self.values.dtype, device=self.values.device)
        at, moved = 0, deque[tuple[int, int, int]]()
        for begin, end in self._stretches():
            wider[at : at + end - begin] = self.values[begin:end]
            at += end - begin
        at = 0
        for block, begin, end in self._held:
            self.bases[block % len(self.bases)] = at
            moved.append((block, at, at + end - begin))
            at += end - begin
        self.values, self._held = wider, moved

    def _stretches(self) -> list[tuple[int, int]]:
        """Where blocks lie without a gap between them."""
        found: list[tuple[int, int]] = []
        for _, begin, end in self._held:
            if found and found[-1][1] == begin:
                found[-1] = found[-1][0], end
            else:
                found.append((begin, end))
        return found

    @property
    def nbytes(self) -> int:
        """Bytes on the device."""
        return self.values.nbytes


class SlotTable:
    """Whole rows by number.

    values  [room, units] int16   on the device
    free    numbers that stand for no row
    """

    def __init__(self, units: int, device: torch.device) -> None:
        self.values = torch.zeros((0, units), dtype=torch.int16, device=device)
        self.free: list[int] = []

    def take(self, count: int) -> list[int]:
        """Numbers for so many rows."""
        if count > len(self.free):
            self._grow(count - len(self.free))
        taken = [self.free.pop() for _ in range(count)]
        return taken

    def _grow(self, count: int) -> None:
        held = len(self.values)
        room = held + max(count, held // 4)
        wider = self.values.new_zeros((room, self.values.shape[1]))
        wider[:held] = self.values
        self.values = wider
        self.free += range(held, room)

    def put(self, slots: list[int], rows: np.ndarray) -> None:
        """Rows [M, units] uint16 under their numbers."""
        if slots:
            at = torch.tensor(slots, device=self.values.device)
            self.values[at] = torch.from_numpy(rows.view(np.int16)).to(self.values.device)

    @property
    def nbytes(self) -> int:
        """Bytes on the device."""
        return self.values.nbytes
