"""Static data, one copy per distinct content, found by dense integer ids.

Ids are given in the order in which contents arrive; they stay below 2^24 so that they survive a
cast to float32, and are never reused inside a run. Checkpoints keep the keys, not the ids.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from frugal_rl.errors import EncodingError

MAX_ID = 1 << 24
GROWTH = 1.5
"""By how much an array grows when it is full; twice would leave up to half of it unused."""


def capacity_for(need: int, capacity: int) -> int:
    """Rows that an arena of `capacity` rows has room for once it holds `need` of them."""
    return capacity if need <= capacity else max(need, int(GROWTH * capacity))


@dataclass
class Arena:
    """One array that grows by half; rows [0, used) are valid.

    values   [capacity, *shape]
    version  changes when rows that were valid are no longer what they were
    """

    shape: tuple[int, ...]
    dtype: Any
    values: np.ndarray = field(init=False)
    used: int = 0
    version: int = 0

    def __post_init__(self) -> None:
        self.values = np.zeros((0, *self.shape), self.dtype)

    def append(self, rows: np.ndarray) -> None:
        """Add rows [n, *shape] at the end; the array may move."""
        need = self.used + len(rows)
        if need > len(self.values):
            grown = np.zeros((capacity_for(need, len(self.values)), *self.shape), self.dtype)
            grown[: self.used] = self.values[: self.used]
            self.values = grown
        self.values[self.used : need] = rows
        self.used = need

    def clear(self) -> None:
        """Forget all rows and give the memory back."""
        self.values = np.zeros((0, *self.shape), self.dtype)
        self.used = 0
        self.version += 1

    @property
    def row_bytes(self) -> int:
        """Bytes of one row."""
        return math.prod(self.shape) * int(np.dtype(self.dtype).itemsize)

    @property
    def nbytes(self) -> int:
        """Bytes allocated, unused capacity included."""
        return int(self.values.nbytes)


@dataclass(frozen=True)
class TableField:
    """One array per table row; `ragged` rows differ in the length of their first axis."""

    name: str
    shape: tuple[int, ...]
    dtype: Any
    ragged: bool = False


class StaticTable:
    """Rows of static fields by id, interned by content key.

    Fixed fields are read as `table[name][ids]`; a ragged field is an arena of all its rows' items,
    row i being `table[name][offsets[i] : offsets[i + 1]]` with `offsets = table.offsets(name)`.
    """

    def __init__(self, name: str, fields: tuple[TableField, ...]) -> None:
        self.name = name
        self.fields = {f.name: f for f in fields}
        self.arenas = {f.name: Arena(f.shape[1:] if f.ragged else f.shape, f.dtype) for f in fields}
        self._offsets = {f.name: Arena((), np.int64) for f in fields if f.ragged}
        for arena in self._offsets.values():
            arena.append(np.zeros(1, np.int64))
        self.ids: dict[Hashable, int] = {}

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, name: str) -> np.ndarray:
        """The rows [len, *shape] of a fixed field, or all items of a ragged one; a view."""
        arena = self.arenas[name]
        return arena.values[: arena.used]

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
        """The content of one row by field name; views."""
        rows = {}
        for name, spec in self.fields.items():
            if spec.ragged:
                first, end = self.offsets(name)[index : index + 2]
                rows[name] = self[name][first:end]
            else:
                rows[name] = self[name][index]
        return rows

    def empty(self) -> StaticTable:
        """A table of the same fields without rows."""
        return StaticTable(self.name, tuple(self.fields.values()))

    @property
    def keys(self) -> list[Hashable]:
        """Content keys in the order of their ids."""
        return list(self.ids)

    @property
    def nbytes(self) -> int:
        """Bytes allocated by all arenas."""
        arenas = [*self.arenas.values(), *self._offsets.values()]
        return sum(a.nbytes for a in arenas)


class Tables(dict[str, StaticTable]):
    """All static tables of a run, by name."""

    def empty(self) -> Tables:
        """Tables of the same fields without rows."""
        return Tables({name: table.empty() for name, table in self.items()})

    @property
    def nbytes(self) -> int:
        """Bytes allocated by all tables."""
        return sum(t.nbytes for t in self.values())
