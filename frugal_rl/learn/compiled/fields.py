"""Where the kernels find the numbers of some samples: the fields' own memory, not a copy of it.

A kernel takes addresses, as numba would compile it anew for each number of arrays.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba import types
from numba.extending import intrinsic

from frugal_rl.learn.compiled.activations import inlined

ADDRESS, ROWS, WIDTH, DRAWN = range(4)
"""Columns of the table: where a field's rows [ROWS, WIDTH] float32 begin, and whether the samples'
are those at `places`, or the first ones in their order."""
FLOAT_BYTES = 4
NO_PLACES = np.empty(0, np.int64)


class Fields:
    """Fields side by side, in the order in which they were added.

    kernel  the table [k, 4] int64, the places [B] int64 and the first sample, as kernels take them
    """

    def __init__(self, places: np.ndarray = NO_PLACES) -> None:
        self.places = places
        self._table: list[tuple[int, int, int, int]] = []
        self._held: list[np.ndarray] = []  # the kernels know addresses only

    def add(self, rows: np.ndarray, width: int, drawn: bool = False) -> Fields:
        """Rows [n, ...] float32 of so many numbers; if `drawn`, the samples' are at `places`.

        A copy is made, and kept, where they are not contiguous.
        """
        assert rows.itemsize == FLOAT_BYTES
        assert rows.size == len(rows) * width
        rows = np.ascontiguousarray(rows)
        self._held.append(rows)
        self._table.append((rows.ctypes.data, len(rows), width, drawn))
        return self

    @property
    def kernel(self) -> tuple[np.ndarray, np.ndarray, int]:
        """Valid as long as this object."""
        return np.array(self._table, np.int64).reshape(-1, 4), self.places, 0


def _pointer_of(typing: Any, address: Any) -> Any:
    """An address as a pointer to float32."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

    kinds: Any = types
    return kinds.CPointer(types.float32)(types.int64), emit


pointer: Any = intrinsic(_pointer_of)
numba_array: Any = numba.carray  # type: ignore[attr-defined]


@inlined
def fill(x: Any, first: Any, into: Any) -> None:
    """The fields' rows of samples from `first` on into the input's buffer [m, inputs]."""
    table, places, begin = x
    first += begin
    column = 0
    for f in range(table.shape[0]):
        width = table[f, WIDTH]
        rows = numba_array(pointer(table[f, ADDRESS]), (table[f, ROWS], width))
        for i in range(into.shape[0]):
            row = into[i, column : column + width]
            given = rows[places[first + i] if table[f, DRAWN] else first + i]
            for j in range(width):
                row[j] = given[j]
        column += width
