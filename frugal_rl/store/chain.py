"""Rows of bytes as chains of differences, with random access, in a ring or a refilled rollout.

Every `key_every`-th row of an environment begins a chain: it is kept as what differs from an
anchor (a whole row that some chains share), each row after it as what differs from the row
before. A row is drawn by walking its chain; neighbours that are drawn together share the walk.

The rows of `key_every` steps of all environments are a block. Blocks follow each other in a region
of addresses that is as large as the worst case, and are freed in the order in which they came,
as soon as none of their rows is held; an anchor is freed with the last block that uses it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from frugal_rl.errors import DataError
from frugal_rl.memory.choices import RolloutLocation
from frugal_rl.store.chain_kernels import (
    BESIDE,
    OFFSET,
    append_records,
    begin_chains,
    drop_users,
    read_chains,
)
from frugal_rl.store.region import Region
from frugal_rl.store.side_table import SideTable

KEY_EVERY = 32
NONE = -1
SAVED_ARRAYS = (
    "bases",
    "links",
    "starts",
    "anchor_of",
    "last",
    "_anchor",
    "_anchor_age",
    "_users",
)


class FrameChain:
    """The newest `steps` rows [row_bytes] of each of N environments, kept as differences.

    Rows are named by their absolute step: the first one appended is 0, whatever was freed since.
    A row may have one row beside it (an episode's last observation), kept as what differs.

    bases      [blocks] int64            where a block begins in the pool, in units of two bytes
    links      [blocks, N]               where what a key row differs in from the row before begins
    starts     [blocks * key_every, N]   where a row begins in its block, and whether it is whole
    anchor_of  [blocks, N] int32         the anchor of each chain
    last       [N, W] uint64             the newest row of each environment
    base       where the newest block begins
    beside     starts of the rows that are kept beside others
    written    what a compiled loop that appends rows writes to
    read       what one that walks chains reads
    """

    def __init__(
        self,
        row_bytes: int,
        steps: int,
        num_envs: int,
        *,
        key_every: int = KEY_EVERY,
        location: RolloutLocation = RolloutLocation.ram,
        folder: str = "",
    ) -> None:
        words = -(-row_bytes // 8)
        self.row_bytes, self.steps, self.num_envs, self.key_every = (
            row_bytes,
            steps,
            num_envs,
            key_every,
        )
        self.blocks = -(-steps // key_every) + 1
        self.block_units = most_block_units(words, num_envs, key_every)
        self.pool = Region((self.blocks + 2) * self.block_units * 2, location, folder)
        self.units = self.pool.view(np.uint16)
        self.anchor_room = Region(self.blocks * num_envs * words * 8, location, folder)
        self.anchors = self.anchor_room.view(np.uint64)[: self.blocks * num_envs * words]
        self.anchors = self.anchors.reshape(-1, words)
        self.bases = np.zeros(self.blocks, np.int64)
        self.links = np.zeros((self.blocks, num_envs), np.uint32)
        self.starts = np.zeros((self.blocks * key_every, num_envs), np.uint32)
        self.anchor_of = np.zeros((self.blocks, num_envs), np.int32)
        self.last = np.zeros((num_envs, words), np.uint64)
        self.tops = tops_of(words)
        self._state = np.zeros(words, np.uint64)
        self.written = self.last, self.units, self.starts, self.pool.touched
        self._rows = np.zeros((num_envs, words), np.uint64)
        self._stale = np.zeros(num_envs, np.bool_)
        self._dropped = np.zeros(num_envs, np.int32)
        self.read = (
            self.units,
            self.starts,
            self.bases,
            self.links,
            self.anchors,
            self.anchor_of,
        )
        self.scratch_of_a_walk = self.tops, self._state.view(np.uint16), self._state
        self._order: np.ndarray = np.arange(num_envs, dtype=np.int32)
        self.reset()

    def reset(self) -> None:
        """Hold no row; the memory stays for the rows that come."""
        self.count = 0
        self.used = 0
        self.base = 0
        self.freed_blocks = 0
        self._anchor: np.ndarray = np.full(self.num_envs, NONE, np.int32)
        self._anchor_age = np.zeros(self.num_envs, np.int32)
        self._users = np.zeros(len(self.anchors), np.int32)
        self._free_anchors: list[int] = []
        self._anchors_touched = 0
        self.beside = SideTable(self.num_envs, (), np.int64, self.starts.size)

    @property
    def first(self) -> int:
        """The oldest step that is held."""
        return max(0, self.count - self.steps)

    def append(self, rows: np.ndarray) -> int:
        """Add one row per environment, [N, ...] of row_bytes each; returns its step."""
        step, reference, which = self.count, self.last, self._order
        words = self._words(rows)
        if step % self.key_every == 0:
            self._begin_block(words)
            reference, which = self.anchors, self._anchor
        self.make_room(self.num_envs)
        self._put(words, reference, which, self.starts[step % len(self.starts)])
        self.last[...] = words
        self.count += 1
        return step

    def append_beside(self, n: int, row: np.ndarray) -> None:
        """Keep one more row beside the newest one of environment n, freed together with it."""
        step = self.count - 1
        start = np.zeros(1, np.uint32)
        self.make_room(1)
        self._put(self._words(row[None]), self.last[n : n + 1], self._order[:1], start)
        self.starts[step % len(self.starts), n] |= BESIDE
        self.beside.append(step, n, start[0])

    def has_beside(self, steps: np.ndarray, n: np.ndarray) -> np.ndarray:
        """[B] bool, whether a row is kept beside each of these."""
        found: np.ndarray = self.starts[steps % len(self.starts), n] & BESIDE != 0
        return found

    def gather(
        self,
        first: np.ndarray,
        last: np.ndarray,
        n: np.ndarray,
        out: np.ndarray,
        place: np.ndarray | None = None,
        beside: np.ndarray | None = None,
    ) -> None:
        """Rows first[b] to last[b] of environment n[b] into out[b, place[b]:] with one walk each.

        out [B, k, row_bytes] uint8; places that no row is for stay as they are. Where `beside`
        [B] is true, the row beside last[b] follows.
        """
        place = np.zeros(len(n), np.int64) if place is None else place
        aside = np.full(len(n), NONE, np.int64)
        if beside is not None and beside.any():
            aside[beside] = self.beside.find(last[beside], n[beside])
        unit = np.uint64 if self.row_bytes % 8 == 0 else np.uint8
        shown = self._state.view(np.uint8)[: self.row_bytes].view(unit)
        read_chains(
            *self.read,
            self.key_every,
            self.count,
            self.tops,
            first,
            last,
            n,
            place,
            aside,
            self._state.view(np.uint16),
            self._state,
            shown,
            out.view(unit),
        )

    def rows(self, steps: np.ndarray, n: np.ndarray) -> np.ndarray:
        """Single rows [B, row_bytes] uint8."""
        out = np.empty((len(n), 1, self.row_bytes), np.uint8)
        self.gather(steps, steps, n, out)
        return out[:, 0]

    def _words(self, rows: np.ndarray) -> np.ndarray:
        """Rows as 64-bit words [M, W]; copied only if they are not whole words."""
        flat = np.ascontiguousarray(rows).reshape(len(rows), -1).view(np.uint8)
        if flat.shape[1] == self.last.shape[1] * 8:
            return flat.view(np.uint64)
        self._rows[: len(flat)].view(np.uint8)[:, : self.row_bytes] = flat
        return self._rows[: len(flat)]

    def make_room(self, rows: int) -> None:
        """Have the disk's room for so many rows before they are written, whatever they take."""
        if self.pool.in_file:
            most = rows * self.last.shape[1] * 8
            self.pool.reserve(2 * self.used, 2 * self.used + most)

    def _put(
        self,
        words: np.ndarray,
        references: np.ndarray,
        which: np.ndarray,
        starts: np.ndarray,
    ) -> None:
        before = self.used
        self.used = append_records(words, references, which, self.units, self.base, before, starts)
        self.pool.touch(2 * before, 2 * self.used)

    def _begin_block(self, words: np.ndarray) -> None:
        """Free what is no longer held, choose where the block lies and what its chains begin at."""
        block = self.count // self.key_every
        while (self.freed_blocks + 1) * self.key_every <= self.count + 1 - self.steps:
            self._free_block(block)
        if self.used + self.block_units > len(self.units):
            self.used = 0
        at = block % self.blocks
        self.base = self.bases[at] = self.used
        self.make_room(self.num_envs)
        self.used = begin_chains(
            words,
            self.last,
            self.anchors,
            self._anchor,
            self._anchor_age,
            self._stale,
            self.units,
            self.used,
            block == 0,
            self.links[at],
        )
        self.pool.touch(2 * self.base, 2 * self.used)
        if self._stale.any():
            self._renew_anchors(words)
        self.anchor_of[at] = self._anchor
        self._users[self._anchor] += 1

    def _renew_anchors(self, words: np.ndarray) -> None:
        for n in np.flatnonzero(self._stale):
            before = self._anchor[n]
            if before != NONE and self._users[before] == 0:
                self._free_anchors.append(int(before))
            self._anchor[n] = self._new_anchor(words[n])
            self._anchor_age[n] = 0

    def _new_anchor(self, row: np.ndarray) -> int:
        if self._free_anchors:
            slot = self._free_anchors.pop()
        else:
            slot = self._anchors_touched
            if slot >= len(self.anchors):  # only a file can have counted so
                raise DataError("a replay's chain counts more anchors than it has.")
            self._anchors_touched += 1
        self.anchor_room.reserve(slot * row.nbytes, (slot + 1) * row.nbytes)
        self.anchors[slot] = row
        self.anchor_room.touch(slot * row.nbytes, (slot + 1) * row.nbytes)
        return slot

    def _free_block(self, newest: int) -> None:
        """Give back the oldest block: its rows, the rows beside them, anchors it used last."""
        oldest = self.freed_blocks
        self.freed_blocks += 1
        slots = self.anchor_of[oldest % self.blocks]
        freed = drop_users(slots, self._users, self._anchor, self._dropped)
        self._free_anchors += self._dropped[:freed].tolist()
        begin = 2 * int(self.bases[oldest % self.blocks])
        following = self.bases[(oldest + 1) % self.blocks] if oldest + 1 < newest else self.used
        end = 2 * int(following)
        self.pool.release(begin, end if end >= begin else 2 * len(self.units))
        self.beside.drop_before((oldest + 1) * self.key_every)

    def state(self) -> dict[str, Any]:
        """Records, anchors and tables, for an exact resume."""
        arrays = {name: getattr(self, name).copy() for name in SAVED_ARRAYS}
        return arrays | {
            "numbers": [self.count, self.used, self.freed_blocks, self._anchors_touched],
            "free_anchors": list(self._free_anchors),
            "pool": self.pool.state(),
            "anchor_room": self.anchor_room.state(),
            "beside": self.beside.state(),
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Continue from `state()`; one of a file is checked before it is walked (`chain_check`)."""
        for name in SAVED_ARRAYS:
            getattr(self, name)[...] = state[name]
        numbers = map(int, state["numbers"])
        self.count, self.used, self.freed_blocks, self._anchors_touched = numbers
        self._free_anchors = [int(slot) for slot in state["free_anchors"]]
        self.base = int(self.bases[max(self.count - 1, 0) // self.key_every % self.blocks])
        self.pool.load(state["pool"])
        self.anchor_room.load(state["anchor_room"])
        self.beside.load(state["beside"])

    @property
    def record_bytes(self) -> int:
        """Bytes of all records of the blocks that are held; whole chunks where they wrap around."""
        oldest = int(self.bases[self.freed_blocks % self.blocks])
        return 2 * (self.used - oldest) if self.used >= oldest else self.pool.nbytes

    @property
    def anchors_held(self) -> int:
        """Whole rows that chains share."""
        return self._anchors_touched - len(self._free_anchors)

    @property
    def nbytes(self) -> int:
        """Bytes that hold memory: written chunks of the regions and the tables."""
        return sum(self.parts().values())

    def parts(self) -> dict[str, int]:
        """Bytes by name: records, anchors, tables."""
        tables = (self.bases, self.links, self.starts, self.anchor_of, self.last, self._users)
        return {
            "records": self.pool.nbytes,
            "anchors": self.anchor_room.nbytes,
            "tables": sum(int(t.nbytes) for t in tables) + self.beside.nbytes,
        }


def tops_of(words: int) -> int:
    """Top bitmaps of a row of so many words."""
    return -(-words // 1024)


def most_block_units(words: int, num_envs: int, key_every: int) -> int:
    """Units of a block in which every row, one beside each, and the links are kept whole."""
    most = (2 * key_every + 1) * num_envs * words * 4
    if most > OFFSET:
        raise ValueError(
            f"A block of {key_every} rows of {num_envs} environments may need {most * 2} bytes, "
            f"more than {OFFSET * 2}. Choose a smaller key_every."
        )
    return most
