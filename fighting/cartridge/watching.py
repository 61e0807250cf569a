"""Watched bytes and pixels of one running machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    from fighting.cartridge.scene import Watched
    from fighting.machine.emulator import Emulator


def watch(
    emulator: Emulator,
    watched: Watched,
    runs: Sequence[tuple[int, int]],
    memory: np.ndarray,
    points: np.ndarray,
) -> None:
    """Copies what `watched` names into `memory` (A,) and `points` (P,) uint8, by column.

    `runs` are `watched.runs()`.
    """
    columns = watched.addresses
    for first, end in runs:
        for address, byte in enumerate(emulator.read(first, end - first), first):
            column = columns.get(address)
            if column is not None:
                memory[column] = byte
    for (x, y), column in watched.pixels.items():
        points[column] = emulator.screen[y, x, 0]
