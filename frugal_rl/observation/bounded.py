"""A static table that keeps what was read last: ids stay, contents are dropped and built again."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import ClassVar

import numpy as np

from frugal_rl.errors import EncodingError
from frugal_rl.observation.tables import MAX_ID, StaticTable, TableField

Build = Callable[[], Mapping[str, np.ndarray]]
NOWHERE = -1


class BoundedTable(StaticTable):
    """At most `most_bytes` of contents, the least recently read dropped first.

    `intern` builds nothing: a content is built when `places` is first asked where it lies, and
    again after it was dropped. The rows of one call are never dropped by it, so that a batch which
    alone needs more than the bound gets what it needs. Places move when something is dropped: ask
    for them anew before every read.
    """

    moves: ClassVar[bool] = True

    def __init__(self, name: str, fields: tuple[TableField, ...], most_bytes: int) -> None:
        super().__init__(name, fields)
        self.most_bytes = most_bytes
        self.builds = self.drops = 0
        self._builders: list[Build] = []
        self._place = np.full(64, NOWHERE, np.int64)
        self._read_at = np.zeros(64, np.int64)
        self._held: list[int] = []
        self._clock = 0

    def intern(self, key: Hashable, build: Build) -> int:
        """The id of `key`; `build()` gives its rows whenever they are needed and not there."""
        known = self.ids.get(key)
        if known is not None:
            return known
        if len(self.ids) >= MAX_ID - 1:
            raise EncodingError(f"Table '{self.name}' holds {len(self.ids)} rows, the most it can.")
        new = self.ids[key] = len(self.ids)
        self._builders.append(build)
        if new >= len(self._place):
            self._place = np.concatenate([self._place, np.full_like(self._place, NOWHERE)])
            self._read_at = np.concatenate([self._read_at, np.zeros_like(self._read_at)])
        return new

    def places(self, ids: np.ndarray) -> np.ndarray:
        """Ids [...] -> where their rows lie in the arrays; valid until the next call."""
        self._clock += 1
        self._read_at[ids] = self._clock
        found: np.ndarray = self._place[ids]
        if found.size and found.min() < 0:
            for missing in np.unique(np.asarray(ids)[found < 0]):
                self._load(int(missing))
            found = self._place[ids]
        return found

    def row(self, index: int) -> dict[str, np.ndarray]:
        """The content of one row by field name; views, but copies of repeated items."""
        return super().row(int(self.places(np.array([index]))[0]))

    def empty(self) -> StaticTable:
        """A table of the same fields without rows; it keeps everything that it is given."""
        return StaticTable(self.name, tuple(self.fields.values()))

    @property
    def nbytes(self) -> int:
        """Bytes allocated for contents and for the directory."""
        return super().nbytes + self._place.nbytes + self._read_at.nbytes

    def _load(self, index: int) -> None:
        rows = self._checked(self._builders[index]())
        if self._has_stale() and self._allocated_with(rows) > self.most_bytes:
            self._drop()
        self._append(rows)
        self._place[index] = len(self._held)
        self._held.append(index)
        self.builds += 1

    def _has_stale(self) -> bool:
        """Whether there is a row that this call does not read."""
        return bool((self._read_at[self._held] < self._clock).any())

    def _allocated_with(self, rows: Mapping[str, np.ndarray]) -> int:
        """Bytes of all arrays once `rows` are in."""
        total = sum(a.nbytes for a in self._offsets.values())
        for name, arena in self.arenas.items():
            value = np.asarray(rows[name])
            total += arena.allocated_with(len(value) if self.fields[name].ragged else 1)
        return total

    def _drop(self) -> None:
        """Keep what this call reads and, of the rest, the newest that fill half of the bound."""
        held = np.array(self._held)
        order = held[np.argsort(-self._read_at[held], kind="stable")]
        kept, size = [], 0
        for index in order:
            size += self._content_bytes(int(self._place[index]))
            if self._read_at[index] < self._clock and 2 * size > self.most_bytes:
                break
            kept.append(int(index))
        self.drops += len(held) - len(kept)
        self._keep(self._place[kept])
        self._place[held] = NOWHERE
        self._place[kept] = np.arange(len(kept))
        self._held = kept

    def _keep(self, places: np.ndarray) -> None:
        """Only the rows at these places, in this order."""
        for name, arena in self.arenas.items():
            if not self.fields[name].ragged:
                arena.select(places)
                continue
            offsets = self.offsets(name)
            first, lengths = offsets[places], offsets[places + 1] - offsets[places]
            ends = np.cumsum(lengths)
            arena.select(np.repeat(first - ends + lengths, lengths) + np.arange(lengths.sum()))
            self._offsets[name].clear()
            self._offsets[name].append(np.concatenate([[0], ends]))

    def _content_bytes(self, place: int) -> int:
        total = 0
        for name, arena in self.arenas.items():
            ends = self.offsets(name)[place : place + 2] if self.fields[name].ragged else (0, 1)
            total += arena.content_bytes(int(ends[1] - ends[0]))
        return total
