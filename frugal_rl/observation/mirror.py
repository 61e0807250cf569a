"""Static tables where the network computes: shared memory on the CPU, a growing copy elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from frugal_rl.observation.growing_array import GrowingArray
from frugal_rl.observation.repeated_rows import RepeatedRows
from frugal_rl.observation.untraced import untraced

if TYPE_CHECKING:
    from frugal_rl.observation.tables import StaticTable

_SIGNED = {torch.uint16: torch.int16, torch.uint32: torch.int32}
"""torch gathers and writes no rows of these; their bits travel as signed ones of the same size."""


@dataclass
class ArenaMirror:
    """One arena as a tensor; rows [0, copied) are valid on the device."""

    arena: GrowingArray
    source: np.ndarray | None = None
    tensor: Tensor | None = None
    copied: int = 0
    version: int = 0

    def sync(self, device: torch.device) -> Tensor:
        """The arena's valid rows [used, *shape], refreshed where the arena has grown."""
        if device.type == "cpu":
            return self._share()
        return self._copy(device)

    def _share(self) -> Tensor:
        if self.tensor is None or self.source is not self.arena.values:
            self.source = self.arena.values
            self.tensor = torch.from_numpy(self.source)
        return self.tensor[: self.arena.used]

    def _copy(self, device: torch.device) -> Tensor:
        used, values = self.arena.used, self.arena.values
        if self.version != self.arena.version:
            self.version, self.copied = self.arena.version, 0
        if self.tensor is None or self.tensor.device != device or len(self.tensor) < used:
            self.tensor = torch.empty(
                (len(values), *values.shape[1:]), dtype=torch.from_numpy(values).dtype
            ).to(device)
            self.copied = 0
        if self.copied < used:
            fresh = torch.from_numpy(values[self.copied : used])
            self.tensor[self.copied : used] = fresh.to(device)
            self.copied = used
        return self.tensor[:used]

    def gather(self, index: Tensor) -> Tensor:
        """Rows [m, *shape] at the places `index` [m], on its device."""
        return take(self.sync(index.device), index)

    @property
    def nbytes(self) -> int:
        """Bytes of the device copy; 0 where memory is shared with the arena."""
        held = self.tensor
        return 0 if held is None or held.device.type == "cpu" else held.nbytes


class RepeatedMirror:
    """An arena of repeated rows: both its codes and its distinct rows on the device."""

    def __init__(self, arena: RepeatedRows) -> None:
        self.codes, self.book = ArenaMirror(arena), ArenaMirror(arena.book)

    def sync(self, device: torch.device) -> Tensor:
        """All valid rows [used, *shape], gathered."""
        return take(self.book.sync(device), self.codes.sync(device))

    def gather(self, index: Tensor) -> Tensor:
        """Rows [m, *shape] at the places `index` [m], on its device."""
        return take(self.book.sync(index.device), self.codes.gather(index))

    @property
    def nbytes(self) -> int:
        """Bytes of the device copies."""
        return self.codes.nbytes + self.book.nbytes


def mirror_of(arena: GrowingArray) -> ArenaMirror | RepeatedMirror:
    """The mirror that reads this arena."""
    return RepeatedMirror(arena) if isinstance(arena, RepeatedRows) else ArenaMirror(arena)


@dataclass(frozen=True)
class RaggedRows:
    """Rows of a ragged field, without padding.

    items    [sum of lengths, *item shape], row after row
    lengths  [B] int64
    """

    items: Tensor
    lengths: Tensor

    @property
    def row_of_item(self) -> Tensor:
        """[sum of lengths] int64: the row that each item belongs to."""
        rows = torch.arange(len(self.lengths), device=self.lengths.device)
        return torch.repeat_interleave(rows, self.lengths, output_size=len(self.items))

    @property
    def place_in_row(self) -> Tensor:
        """[sum of lengths] int64: the position of each item within its row."""
        first = torch.cumsum(self.lengths, 0) - self.lengths
        every = torch.arange(len(self.items), device=self.lengths.device)
        return every - first[self.row_of_item]

    def padded(self, length: int) -> Tensor:
        """[B, length, *item shape], zeros behind each row's end."""
        shape = (len(self.lengths), length, *self.items.shape[1:])
        items = self.items
        items = items.view(_SIGNED.get(items.dtype, items.dtype))
        out = torch.zeros(shape, dtype=items.dtype, device=items.device)
        out[self.row_of_item, self.place_in_row] = items
        return out.view(self.items.dtype)


class TableMirror:
    """Reads a `StaticTable` by id on the device of the ids.

    Nothing is copied on the CPU. Elsewhere each new row is copied once, when it is first read.
    Tables are NumPy, and they grow: no compiler reads these methods.
    """

    def __init__(self, table: StaticTable) -> None:
        self.table = table
        self._arenas = {n: mirror_of(a) for n, a in table.arenas.items()}
        self._offsets = {
            n: ArenaMirror(table._offsets[n]) for n, f in table.fields.items() if f.ragged
        }

    def __getitem__(self, name: str) -> Tensor:
        """A fixed field's rows, or all items of a ragged one, on the CPU."""
        return self.values(name, torch.device("cpu"))

    @untraced
    def values(self, name: str, device: torch.device) -> Tensor:
        """A fixed field's rows, or all items of a ragged one, on `device`.

        A view, but of repeated items a copy.
        """
        return self._arenas[name].sync(device)

    @untraced
    def places(self, ids: Tensor) -> Tensor:
        """Ids [...] int64 -> where their rows lie in `values`; ask before reading `values`."""
        if not self.table.moves:
            return ids  # without asking the device for them
        places = self.table.places(ids.numpy(force=True))
        return torch.from_numpy(places).to(ids.device)

    @untraced
    def rows(self, name: str, ids: Tensor) -> Tensor:
        """Ids [...] int64 -> [..., *shape] of a fixed field."""
        ids = self.places(ids)
        values = self.values(name, ids.device)
        return take(values, ids.reshape(-1)).reshape(*ids.shape, *values.shape[1:])

    @untraced
    def ragged(self, name: str, ids: Tensor) -> RaggedRows:
        """Ids [B] int64 -> the unpadded rows of a ragged field, in the order of `ids`."""
        ids = self.places(ids)
        offsets = self._offsets[name].sync(ids.device)
        first = offsets[ids]
        lengths = offsets[ids + 1] - first
        shift = first - (torch.cumsum(lengths, 0) - lengths)
        index = torch.repeat_interleave(shift, lengths)
        index += torch.arange(len(index), device=ids.device)
        return RaggedRows(self._arenas[name].gather(index), lengths)

    @property
    def nbytes(self) -> int:
        """Bytes of device copies."""
        return sum(m.nbytes for m in (*self._arenas.values(), *self._offsets.values()))


def take(values: Tensor, index: Tensor) -> Tensor:
    """Values [n, ...], index [m] -> [m, ...], for every dtype that an arena may have."""
    signed = values.view(_SIGNED.get(values.dtype, values.dtype))
    return signed.index_select(0, index).view(values.dtype)
