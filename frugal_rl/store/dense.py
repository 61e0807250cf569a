"""A drawn minibatch as plain arrays, rebuilt in memory that is kept between draws.

For networks that want every field at its full size. Only what differs from what lies there already
is written: a static row that a slot shows stays, padding behind it stays zero, and a frame stored
as differences is its reference, copied, and a few stores.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit

from frugal_rl.observation.codecs.codec import DenseCodec
from frugal_rl.observation.encoding import BY_REFERENCE
from frugal_rl.observation.fields import EPISODE, AnyField, Derived, Static, Stored
from frugal_rl.observation.repeated_rows import RepeatedRows
from frugal_rl.store.delta import DeltaColumn
from frugal_rl.store.pixels import PixelReader

if TYPE_CHECKING:
    from frugal_rl.observation.tables import StaticTable, Tables
    from frugal_rl.store.columns import Column
    from frugal_rl.store.rollout import RolloutBuffer


class DenseMinibatch(Mapping[str, np.ndarray]):
    """Observed fields of drawn samples, [B, *observed shape], as `edge.decode` gives them.

    Arrays are read-only for the caller and valid until the next draw.

    Args:
        buffer: a rollout with an encoding.
        tables: the static tables that its ids refer to.
        capacity: the most samples of a draw.
        into: arrays [capacity, *observed shape] of the caller's own for some fields, such as
            slices of one larger array; each sample must be contiguous. Allocated where missing.
    """

    def __init__(
        self,
        buffer: RolloutBuffer,
        tables: Tables,
        capacity: int,
        into: Mapping[str, np.ndarray] | None = None,
    ) -> None:
        if buffer.encoding is None:
            raise ValueError("A rollout without an encoding delivers plain arrays by itself.")
        self.buffer, self.tables, self.capacity = buffer, tables, capacity
        self.encoding = buffer.encoding
        self.names = tuple(f.name for f in self.encoding.spec.observed())
        self._kept = dict(into or {})
        self._fresh: dict[str, np.ndarray] = {}
        self._slots: dict[str, StaticSlots] = {}
        self._pixels: dict[str, PixelReader] = {}
        self._t = self._n = np.zeros(0, np.int64)
        self._age: np.ndarray | None = None

    def draw(self, indices: np.ndarray) -> DenseMinibatch:
        """Show the samples of env-major indices [B], index = n * T + t; fields come when read."""
        self._n, self._t = np.divmod(indices, self.buffer.buffer_size)
        ages = self.buffer.columns.get("age")
        self._age = None if ages is None else ages.gather(self._t, self._n, None, None).reshape(-1)
        self._fresh.clear()
        return self

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self._fresh:
            self._fresh[name] = self._value(name)
        return self._fresh[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    @property
    def nbytes(self) -> int:
        """Bytes kept, the caller's own arrays included."""
        pixels = sum(reader.nbytes for reader in self._pixels.values())
        return sum(int(a.nbytes) for a in self._kept.values()) + pixels

    def _value(self, name: str) -> np.ndarray:
        f = self.encoding.spec.by_name.get(name)
        if f is None:  # an id row, or `age`
            return self._rows(name)
        if self.encoding.choice[name] not in BY_REFERENCE:
            return self._stored(name, f)
        if isinstance(f, Static):
            slots = self._slots.setdefault(name, StaticSlots(self.capacity))
            out = self._room(name, f.shape, f.dtype)
            slots.show(self.tables[f.table], name, self[f"{f.table}_id"].reshape(-1), out)
            return out
        assert isinstance(f, Derived)
        out = self._room(name, f.shape, f.dtype)
        if f.derive_into is not None:
            f.derive_into(self, self.tables, out)
        elif f.derive is not None:
            out[...] = f.derive(self, self.tables)
        return out

    def _stored(self, name: str, f: AnyField) -> np.ndarray:
        """A stored field: decoded where it is coded, gathered straight into place where not."""
        column, row = self.buffer.columns[name], self.encoding.by_name[name]
        shape = f.shape
        if isinstance(f, Stored) and f.window != 1:
            shape = (column.spec.lead + 1 if f.window == EPISODE else f.window, *f.shape)
        out = self._room(name, shape, f.dtype)
        if isinstance(row.codec, DenseCodec) and column.fills and out.flags.c_contiguous:
            column.gather(self._t, self._n, self._age, out)
            return out
        if isinstance(column, DeltaColumn) and PixelReader.reads(column):
            reader = self._pixels.setdefault(name, PixelReader(column))
            reader.gather(self._t, self._n, self._age, out)
            return out
        row.codec.decode_into(self._rows(name), out)
        return out

    def _rows(self, name: str) -> np.ndarray:
        """A column's rows in policy form, kept between draws as well."""
        column: Column = self.buffer.columns[name]
        spec = column.spec
        out = self._room(f"rows of {name}", spec.shown(), spec.dtype) if column.fills else None
        return np.asarray(column.gather(self._t, self._n, self._age, out))

    def _room(self, name: str, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        kept = self._kept.get(name)
        if kept is None:
            kept = self._kept[name] = np.zeros((self.capacity, *shape), dtype)
        return kept[: len(self._t)]


class StaticSlots:
    """Which row of a static table each slot of a kept minibatch shows.

    shown    [capacity] int64   row id, -1 at first
    lengths  [capacity] int64   items that are not padding
    """

    def __init__(self, capacity: int) -> None:
        self.shown = np.full(capacity, -1, np.int64)
        self.lengths = np.zeros(capacity, np.int64)

    def show(self, table: StaticTable, name: str, ids: np.ndarray, out: np.ndarray) -> None:
        """Rows [B, *shape] of a field by id into `out`, where they are not there already."""
        arena = table.arenas[name]
        places = table.places(ids)  # before reading: they may move
        book = arena.book if isinstance(arena, RepeatedRows) else arena
        items = book.read(0, book.used)
        if items.size == 0:
            return
        memory, stride = samples_of(out)
        source, target = items.reshape(len(items), -1), memory
        if items.dtype == out.dtype:  # else the table's narrower numbers are widened
            apart = stride * out.itemsize
            size = math.gcd(items[0].nbytes, memory.nbytes, apart, memory.ctypes.data, 8)
            source, target, stride = source.view(f"u{size}"), memory.view(f"u{size}"), apart // size
        if not table.fields[name].ragged:
            show_fixed(source, places, ids, self.shown, target, stride)
            return
        ragged = (table.offsets(name), places, ids, self.shown, self.lengths, target, stride)
        if book is arena:
            show_ragged(source, *ragged)
        else:
            show_repeated(source, arena.values, *ragged)


def samples_of(out: np.ndarray) -> tuple[np.ndarray, int]:
    """The memory from the first sample of out [B, ...] to its last as one axis, and the stride.

    Sample b is memory[b * stride :] for as long as it is; both count elements. Compiled loops run
    over this form, as slices of a larger array are not contiguous as a whole.
    """
    size = math.prod(out.shape[1:])
    stride = out.strides[0] // out.itemsize if len(out) > 1 else size
    if not out[:1].flags.c_contiguous:
        raise ValueError("Each sample of a kept minibatch must be contiguous.")
    length = (len(out) - 1) * stride + size
    return np.lib.stride_tricks.as_strided(out, (length,), (out.itemsize,)), stride


@njit(cache=True)
def show_fixed(items: Any, places: Any, ids: Any, shown: Any, out: Any, stride: int) -> None:
    """Rows items [R, W] at places [B] to out[b * stride], but for samples that show theirs."""
    for b in range(ids.shape[0]):
        if shown[b] != ids[b]:
            start = b * stride
            out[start : start + items.shape[1]] = items[places[b]]
            shown[b] = ids[b]


@njit(cache=True)
def show_ragged(
    items: Any, offsets: Any, places: Any, ids: Any, shown: Any, lengths: Any, out: Any, stride: int
) -> None:
    """Items [I, W] of rows at places [B] to out[b * stride]; zeros where a row was longer."""
    width, flat = items.shape[1], items.reshape(-1)
    for b in range(ids.shape[0]):
        if shown[b] != ids[b]:
            first, end = offsets[places[b]], offsets[places[b] + 1]
            start, count = b * stride, (end - first) * width
            out[start : start + count] = flat[first * width : end * width]
            for at in range(start + count, start + lengths[b] * width):
                out[at] = 0
            lengths[b] = end - first
            shown[b] = ids[b]


@njit(cache=True)
def show_repeated(
    book: Any,
    codes: Any,
    offsets: Any,
    places: Any,
    ids: Any,
    shown: Any,
    lengths: Any,
    out: Any,
    stride: int,
) -> None:
    """As `show_ragged`, of items that are `book[codes]`."""
    width = book.shape[1]
    for b in range(ids.shape[0]):
        if shown[b] != ids[b]:
            first, end = offsets[places[b]], offsets[places[b] + 1]
            at = b * stride
            for item in range(first, end):
                for k in range(width):
                    out[at + k] = book[codes[item], k]
                at += width
            for rest in range(at, b * stride + lengths[b] * width):
                out[rest] = 0
            lengths[b] = end - first
            shown[b] = ids[b]
