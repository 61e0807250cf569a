"""The byte format of a level: offsets, entity types, packing (specification, section 2).

All multi-byte integers are little-endian. Entity coordinates count quarter tiles (6 px) from the
corner of the full level, border included.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nclone.errors import LevelError
from nclone.geometry import COLUMNS, ROWS
from nclone.levels.entity_types import SWITCH_OF, EntityType

PLAYABLE_COLUMNS, PLAYABLE_ROWS = 42, 23
UNIT_PX = 6
MAX_X_UNITS, MAX_Y_UNITS = COLUMNS * 4, ROWS * 4

TITLE_AT, TITLE_BYTES = 38, 128
AUTHOR_AT, AUTHOR_BYTES = 166, 18
TILES_AT = 184
COUNTS_AT, COUNTED_TYPES = 1150, 40
RECORDS_AT, RECORD_BYTES = 1230, 5
MAX_RECORDS = 8192
"""More records than any level of the game; above it a file is refused as oversized."""


def storage_order(records: NDArray[np.int64]) -> NDArray[np.int64]:
    """[K, 5] records -> the same rows by type ascending, each door still followed by its switch."""
    kind = records[:, 0].copy()
    for door, switch in SWITCH_OF.items():
        kind[kind == switch] = door
    return records[np.argsort(kind, kind="stable")]


def pack_level(
    tiles: ArrayLike,
    records: ArrayLike | Sequence[Sequence[int]],
    title: str = "",
    author: str = "",
) -> bytes:
    """Write level bytes.

    Args:
        tiles: [25, 44] with border, or [23, 42] without; tile ids, row and column.
        records: [K, 5] integers type, x, y, orientation, mode in quarter tiles; exactly one ninja;
            the k-th exit belongs to the k-th exit switch; each locked or trap door is directly
            followed by its switch. They are stored in the game's order (by type).
        title: at most 128 bytes in Latin-1.
        author: at most 18 bytes in Latin-1.

    Raises:
        LevelError: a shape, value or pairing does not fit the format.
    """
    grid = np.asarray(tiles)
    if grid.shape == (ROWS, COLUMNS):
        grid = grid[1:-1, 1:-1]
    if grid.shape != (PLAYABLE_ROWS, PLAYABLE_COLUMNS):
        raise LevelError(
            f"The tiles have shape {grid.shape}; pass [23, 42], or [25, 44] with border."
        )
    rows = np.asarray(records, dtype=np.int64).reshape(-1, RECORD_BYTES)
    for name, values in (("tile", grid), ("entity record", rows)):
        if values.min(initial=0) < 0 or values.max(initial=0) > 255:
            raise LevelError(f"A {name} holds a number outside 0..255; the format stores bytes.")
    if np.count_nonzero(rows[:, 0] == EntityType.NINJA) != 1:
        raise LevelError("A level needs exactly one ninja record (type 0).")
    data = bytearray(RECORDS_AT) + storage_order(rows).astype(np.uint8).tobytes()
    data[0:4] = len(data).to_bytes(4, "little")
    data[TITLE_AT:AUTHOR_AT] = _text(title, TITLE_BYTES, "title")
    data[AUTHOR_AT:TILES_AT] = _text(author, AUTHOR_BYTES, "author")
    data[TILES_AT:COUNTS_AT] = grid.astype(np.uint8).tobytes()
    counts = np.bincount(rows[:, 0], minlength=256)[:COUNTED_TYPES].astype("<u2")
    data[COUNTS_AT:RECORDS_AT] = counts.tobytes()
    return bytes(data)


def _text(value: str, size: int, field: str) -> bytes:
    encoded = value.encode("latin-1", "replace")
    if len(encoded) > size:
        raise LevelError(f"The {field} has {len(encoded)} bytes; the format holds {size}.")
    return encoded.ljust(size, b"\0")
