"""The column of pictures in few bits a byte."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from frugal_rl.store.found.handled import PictureColumn
from frugal_rl.store.found.packed import Packed, pixels_of

if TYPE_CHECKING:
    from frugal_rl.store.column_spec import ColumnSpec


class PackedColumn(PictureColumn):
    """T steps of N environments whose pictures are packed."""

    def __init__(self, spec: ColumnSpec, steps: int, num_envs: int) -> None:
        super().__init__(spec, steps, num_envs, partial(packed_rows, spec))


def packed_rows(spec: ColumnSpec, last: bool) -> partial[Packed]:
    """Rows of pictures whose channels lie last in memory, or first."""
    return partial(Packed, pixels=pixels_of(spec.shape, last))
