"""Which form is smallest for rows like these: tried on them, not guessed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from frugal_rl.memory.choices import RolloutLocation
from frugal_rl.observation.codecs.pooled import FoundCodec
from frugal_rl.observation.found_form import PACKED, can_be_packed
from frugal_rl.store.column_spec import ColumnSpec
from frugal_rl.store.columns import ArrayColumn, Column
from frugal_rl.store.found.compressed import Compressed
from frugal_rl.store.found.handled import HandledColumn, StackedColumn
from frugal_rl.store.found.interned import Interned
from frugal_rl.store.found.narrow import NarrowColumn, range_of
from frugal_rl.store.found.packed_column import PackedColumn
from frugal_rl.store.found.plain import Plain
from frugal_rl.store.found.records import Records
from frugal_rl.store.found.stacks import Stack, find_stack
from frugal_rl.store.found.tiled import TiledColumn
from frugal_rl.store.found.tiles import find_tiles
from frugal_rl.store.found.worded import Worded

if TYPE_CHECKING:
    from frugal_rl.store.found.rows import Rows

WORTH = 0.9
"""A form is taken if it needs less than this share of the rows as they are."""

WORTH_COMPRESSING = 512
"""Bytes of a row below which compression is not tried."""
STAYS = 0.8
"""A form is left for one that needs less than this share of it."""

Make = Callable[[ColumnSpec, int, int], Column]


@dataclass(frozen=True)
class Form:
    """A way to keep a column's rows, and what it takes on the rows that it was tried on."""

    name: str
    make: Make
    row_bytes: float
    """Bytes of one more row, measured over the second half of the trial."""
    weight: float = 1.0
    """By how much they count more than those of a faster form."""

    def total(self, spec: ColumnSpec, steps: int, num_envs: int) -> float:
        """Bytes of a whole rollout, by arithmetic."""
        return self.make(spec, 1, num_envs).nbytes + self.row_bytes * steps * num_envs


KINDS: dict[str, type[Rows]] = {k.name: k for k in (Records, Worded, Interned, Compressed, Plain)}
"""What keeps rows, by its name in `observation.found_form`."""


def dense(spec: ColumnSpec, steps: int, num_envs: int) -> ArrayColumn:
    """Rows as they are, in an array."""
    return ArrayColumn(spec, steps, num_envs, RolloutLocation.ram, "")


AS_IT_IS = Form("as it is", dense, math.inf)


def used_bytes(column: Column, steps: int, of: int) -> float:
    """Bytes that the first `steps` of `of` steps take in a column."""
    if isinstance(column, HandledColumn | StackedColumn):
        fixed = column.used_bytes - column.rows.used_bytes
        return column.rows.used_bytes + fixed * steps / of
    if isinstance(column, NarrowColumn):
        return column.used_bytes(steps, of)
    return column.nbytes * steps / of


def packed_form(spec: ColumnSpec, rows: np.ndarray) -> list[Form]:
    """Few bits a byte, where rows [T, N, *shape] are pictures of bytes."""
    if not can_be_packed(spec.shape, spec.dtype.itemsize):
        return []
    return [Form(PACKED, PackedColumn, row_bytes_in(PackedColumn, spec, rows))]


def tiled_form(spec: ColumnSpec, rows: np.ndarray) -> list[Form]:
    """Tiles of a grid, where rows [T, N, *shape] are drawn on one."""
    tile = find_tiles(rows)
    if tile is None:
        return []
    make = partial(TiledColumn, tile=tile)
    return [Form(tiles_name(tile), make, row_bytes_in(make, spec, rows))]


def tiles_name(tile: tuple[int, int]) -> str:
    """As `observation.found_form` reads it."""
    return f"tiles of {tile[0]} x {tile[1]} pixels"


def narrow_form(spec: ColumnSpec, rows: np.ndarray) -> list[Form]:
    """Whole numbers in few bits, where rows [T, N, *shape] are such."""
    found = range_of(rows)
    if found is None:
        return []
    low, bits = found
    make = partial(NarrowColumn, low=low, bits=bits)
    name = f"whole numbers from {low} in {bits} bits"
    return [Form(name, make, row_bytes_in(make, spec, rows))]


def forms(spec: ColumnSpec, history: np.ndarray) -> dict[str, tuple[type[Rows], Make]]:
    """The ways worth a trial for rows [T, N, row bytes] uint8, by name."""
    stack = find_stack(history, spec.shape, spec.dtype.itemsize)
    size = spec.row_bytes if stack is None else stack.part_bytes
    kinds: tuple[type[Rows], ...] = (Records, Worded, Interned)
    if size >= WORTH_COMPRESSING:
        kinds += (Compressed,)
    if stack is None:
        return {k.name: (k, partial(HandledColumn, kind=k)) for k in kinds}
    kinds += (Plain,)
    return {f"{stack}, {k.name}": (k, partial(StackedColumn, kind=k, stack=stack)) for k in kinds}


def frozen(spec: ColumnSpec) -> Form | None:
    """The form that a column's codec is frozen in, if any."""
    form = spec.codec.form if isinstance(spec.codec, FoundCodec) else None
    if form is None:
        return None
    if form.bits:
        make: Make = partial(NarrowColumn, low=form.low, bits=form.bits)
        return Form(f"whole numbers from {form.low} in {form.bits} bits", make, math.inf)
    if not form.rows:
        return AS_IT_IS
    if form.tile is not None:
        make = partial(TiledColumn, tile=form.tile)
        return Form(tiles_name(form.tile), make, math.inf)
    if form.rows == PACKED:
        return Form(PACKED, PackedColumn, math.inf)
    kind = KINDS[form.rows]
    if form.parts == 1:
        return Form(kind.name, partial(HandledColumn, kind=kind), math.inf)
    stack = Stack(form.outer, form.parts, form.inner, form.newest_last)
    make = partial(StackedColumn, kind=kind, stack=stack)
    return Form(f"{stack}, {kind.name}", make, math.inf)


def row_bytes_in(make: Make, spec: ColumnSpec, rows: np.ndarray) -> float:
    """Bytes of one more row of rows [T, N, *shape] in a form."""
    steps, num_envs = rows.shape[:2]
    column, half = make(spec, steps, num_envs), steps // 2
    before = 0.0
    for t in range(steps):
        if t == half:
            before = used_bytes(column, half, steps)
        column.write(t, rows[t], None)
    grown = used_bytes(column, steps, steps) - before
    return float(grown / ((steps - half) * num_envs))


def best_form(spec: ColumnSpec, rows: np.ndarray, steps: int, current: str) -> Form:
    """The smallest form for rollouts of `steps` steps like rows [T, N, *shape].

    Rows stay as they are where nothing is worth it, and in their `current` form where no other is
    much smaller.
    """
    num_envs = rows.shape[1]
    history = np.ascontiguousarray(rows).reshape(*rows.shape[:2], -1).view(np.uint8)
    found = [
        Form(name, make, row_bytes_in(make, spec, rows), kind.weight)
        for name, (kind, make) in forms(spec, history).items()
    ]
    found += narrow_form(spec, rows) + packed_form(spec, rows) + tiled_form(spec, rows)
    most = WORTH * spec.dense_bytes(steps, num_envs)
    worth = [form for form in found if form.total(spec, steps, num_envs) < most]

    def cost(form: Form) -> float:
        return form.row_bytes * form.weight * (STAYS if form.name == current else 1)

    return min(worth, key=cost, default=AS_IT_IS)


def load_kernels() -> None:
    """Load the compiled code that a found column may call, so that its memory can be measured."""
    parts = np.arange(16, dtype=np.uint8).repeat(8).reshape(16, 8)
    rows = np.array([parts[t : t + 4] for t in range(12)])[:, None]
    every = np.arange(len(rows))
    for shape in ((4, 8), (8, 4)):  # a stack by its parts, and by its pixels
        spec = ColumnSpec("", shape, rows.dtype)
        history = np.ascontiguousarray(rows).reshape(len(rows), 1, -1)
        for kind, make in forms(spec, history).values():
            for built in (make, partial(HandledColumn, kind=kind)):
                column = built(spec, len(rows), 1)
                for t in every:
                    column.write(int(t), rows[t], None)
                column.gather(every, np.zeros_like(every), None, None)
        rows = np.ascontiguousarray(rows.swapaxes(2, 3))
    load_tiles()
    load_growth()
    for dtype in (np.uint8, np.int8, np.int64, np.float32, np.float64):
        narrow = NarrowColumn(ColumnSpec("", (9,), np.dtype(dtype)), 1, 1, low=0, bits=2)
        narrow.write(0, np.ones((1, 9), dtype), None)
        narrow.gather(np.zeros(1, np.int64), np.zeros(1, np.int64), None, None)


def load_tiles() -> None:
    """Those of pictures: as they lie, and turned."""
    spec = ColumnSpec("", (3, 16, 16), np.dtype(np.uint8))
    pictures = (
        np.arange(8 * 768, dtype=np.uint64).view(np.uint8)[: 8 * 768].reshape(8, 1, 16, 16, 3)
    )
    find_tiles(pictures)
    every = np.arange(len(pictures))
    for rows in (pictures.transpose(0, 1, 4, 2, 3), pictures.reshape(8, 1, 3, 16, 16)):
        for make in (
            PackedColumn,
            partial(TiledColumn, tile=(4, 4)),
            partial(HandledColumn, kind=Interned),
        ):
            column = make(spec, len(rows), 1)
            for t in every:
                column.write(int(t), rows[t], None)
            column.gather(every, np.zeros_like(every), None, None)


def load_growth() -> None:
    """Those of tables that grow, as each row brings a few words and tiles that no other has."""
    spec = ColumnSpec("", (16, 16, 3), np.dtype(np.uint8))
    rows = np.arange(1, 1 + 32 * 768, dtype=np.uint32).view(np.uint8).reshape(32, 4, 16, 16, 3)
    rows[:, :, 4:] = 0
    for make in (partial(HandledColumn, kind=Worded), partial(TiledColumn, tile=(4, 4))):
        column = make(spec, len(rows), 4)
        for t, row in enumerate(rows):
            column.write(t, row, None)
