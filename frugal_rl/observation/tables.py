"""Static data, one copy per distinct content, found by dense integer ids.

Ids are given in the order in which contents arrive; they stay below 2^24 so that they survive a
cast to float32, and are never reused inside a run. Checkpoints keep what gives the same
ids again: the keys, or all rows (`frugal_rl.observation.numbering`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from frugal_rl.errors import EncodingError
from frugal_rl.observation.growing_array import GrowingArray
from frugal_rl.observation.repeated_rows import RepeatedRows

MAX_ID = 1 << 24


@dataclass(frozen=True)
class TableField:
    """One array per table row; `ragged` rows differ in the length of their first axis.

    Items of a ragged field that are `repeated` lie in the table once, however often they occur.
    """

    name: str
    shape: tuple[int, ...]
    dtype: Any
    ragged: bool = False
    repeated: bool = False

    def arena(self) -> GrowingArray:
        """Where this field's rows, or a ragged field's items, are kept."""
        shape = self.shape[1:] if self.ragged else self.shape
        return RepeatedRows(shape, self.dtype) if self.repeated else GrowingArray(shape, self.dtype)


class StaticTable:
    """Rows of static fields by id, interned by content key.

    Fixed fields are read as `table[name][ids]`; a ragged field is an arena of all its rows' items,
    row i being `table[name][offsets[i] : offsets[i + 1]]` with `offsets = table.offsets(name)`.
    """

    moves: ClassVar[bool] = False
    """Whether rows change their places, so that `places` must be asked before every read."""

    def __init__(self, name: str, fields: tuple[TableField, ...]) -> None:
        self.name = name
        self.fields = {f.name: f for f in fields}
        self.arenas = {f.name: f.arena() for f in fields}
        self._offsets = {f.name: GrowingArray((), np.int64) for f in fields if f.ragged}
        for arena in self._offsets.values():
            arena.append(np.zeros(1, np.int64))
        self.ids: dict[Hashable, int] = {}

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, name: str) -> np.ndarray:
        """The rows [len, *shape] of a fixed field, or all items of a ragged one.

        A view, but of repeated items a copy: read those by `items`.
        """
        arena = self.arenas[name]
        return arena.read(0, arena.used)

    def items(self, name: str, place: int) -> np.ndarray:
        """The items [length, *item shape] of one row of a ragged field."""
        first, end = self.offsets(name)[place : place + 2]
        return self.arenas[name].read(int(first), int(end))

    def offsets(self, name: str) -> np.ndarray:
        """[len + 1] int64: where each row of a ragged field begins; a view."""
        arena = self._offsets[name]
        return arena.values[: arena.used]

    def intern(self, key: Hashable, build: Callable[[], Mapping[str, np.ndarray]]) -> int:
        """The id of `key`; on first sight `build()` gives its rows by field name."""
        known = self.ids.get(key)
        if known is not None:
            return known
        if len(self.ids) >= MAX_ID - 1:
            raise EncodingError(f"Table '{self.name}' holds {len(self.ids)} rows, the most it can.")
        self._append(self._checked(build()))
        self.ids[key] = len(self.ids)
        return self.ids[key]

    def reserve(self, count: int, items: Mapping[str, int] | None = None) -> None:
        """Take room for that many more rows now.

        Args:
            count: how many.
            items: of each ragged field, in all of them; where not known, each row is taken to be
                as long as the longest here.
        """
        for name, arena in self.arenas.items():
            if self.fields[name].ragged:
                longest = int(np.diff(self.offsets(name)).max(initial=0))
                arena.reserve(items[name] if items else count * longest)
                self._offsets[name].reserve(count)
            else:
                arena.reserve(count)

    def fill(self, keys: Sequence[Hashable], read: Callable[[list[np.ndarray]], bool]) -> bool:
        """Let `read` write the rows of new keys into all the room that was reserved for them.

        Returns:
            What `read` said: where False, nothing is in it, and the table is of no use any more.
        """
        if not read(self.arrays):
            return False
        for arena in self._all:
            arena.used = len(arena.values)
        self.ids.update((key, place) for place, key in enumerate(keys))
        return True

    @property
    def arrays(self) -> list[np.ndarray]:
        """All that is allocated, in the order of `fill`.

        Raises:
            EncodingError: a field keeps repeated rows once, so that there is more than its array.
        """
        if any(isinstance(arena, RepeatedRows) for arena in self._all):
            raise EncodingError(f"Table '{self.name}' repeats rows: it is more than its arrays.")
        return [arena.values for arena in self._all]

    @property
    def _all(self) -> tuple[GrowingArray, ...]:
        return (*self.arenas.values(), *self._offsets.values())

    def allocated_with(self, count: int, items: Mapping[str, int]) -> int:
        """Bytes allocated once `reserve` has been asked for the same; nothing is taken now."""
        rows = sum(
            arena.allocated_with(items[name] if self.fields[name].ragged else count)
            for name, arena in self.arenas.items()
        )
        return rows + sum(offsets.allocated_with(count) for offsets in self._offsets.values())

    def places(self, ids: np.ndarray) -> np.ndarray:
        """Ids [...] -> where their rows lie in the arrays: the ids themselves, as nothing moves."""
        return ids

    def _checked(self, rows: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        if set(rows) != set(self.fields):
            raise EncodingError(
                f"Table '{self.name}' wants {sorted(self.fields)}, got {sorted(rows)}."
            )
        return rows

    def _append(self, rows: Mapping[str, np.ndarray]) -> None:
        for name, arena in self.arenas.items():
            value = np.asarray(rows[name])
            if self.fields[name].ragged:
                arena.append(value)
                self._offsets[name].append(np.array([arena.used], np.int64))
            else:
                arena.append(value[None])

    def row(self, index: int) -> dict[str, np.ndarray]:
        """The content of one row by field name; views, but copies of repeated items."""
        rows = {}
        for name, spec in self.fields.items():
            rows[name] = self.items(name, index) if spec.ragged else self[name][index]
        return rows

    def empty(self) -> StaticTable:
        """A table of the same fields without rows."""
        return StaticTable(self.name, tuple(self.fields.values()))

    def clear(self) -> None:
        """Forget all rows."""
        for arena in self._all:
            arena.clear()
        for arena in self._offsets.values():
            arena.append(np.zeros(1, np.int64))
        self.ids.clear()

    @property
    def version(self) -> int:
        """Changes when rows that were there are no longer what or where they were."""
        return sum(arena.version for arena in self._all)

    @property
    def keys(self) -> list[Hashable]:
        """Content keys in the order of their ids."""
        return list(self.ids)

    @property
    def nbytes(self) -> int:
        """Bytes allocated by all arenas."""
        return sum(arena.nbytes for arena in self._all)

    @property
    def used_bytes(self) -> int:
        """Bytes of all rows, without the room for further ones."""
        return sum(arena.used_bytes for arena in self._all)


class Tables(dict[str, StaticTable]):
    """All static tables of a run, by name."""

    def empty(self) -> Tables:
        """Tables of the same fields without rows."""
        return Tables({name: table.empty() for name, table in self.items()})

    def check_ids(self, rows: Mapping[str, np.ndarray]) -> None:
        """Refuse ids of rows that no table has: kernels look them up unchecked.

        Raises:
            EncodingError: naming the table.
        """
        for name, table in self.items():
            ids = rows.get(f"{name}_id")
            if ids is not None and ids.size and not 0 <= ids.min() <= ids.max() < len(table):
                raise EncodingError(
                    f"An id of table '{name}' lies outside its {len(table)} rows: "
                    f"{ids.min()} to {ids.max()}."
                )

    @property
    def nbytes(self) -> int:
        """Bytes allocated by all tables."""
        return sum(t.nbytes for t in self.values())

    @property
    def version(self) -> int:
        """Changes when rows that were there are no longer what or where they were."""
        return sum(t.version for t in self.values())
