"""Watched bytes and pixels of one running machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fighting.cartridge.scene import Scene, Watched
    from fighting.machine.emulator import Emulator


def watch(
    emulator: Emulator, watched: Watched, runs: Sequence[tuple[int, int]], scene: Scene, row: int
) -> None:
    """Copies what `watched` names into one row of the present; `runs` are `watched.runs()`."""
    memory = scene.memory[row]
    columns = watched.addresses
    for first, end in runs:
        for address, byte in enumerate(emulator.read(first, end - first), first):
            column = columns.get(address)
            if column is not None:
                memory[column] = byte
    for (x, y), column in watched.pixels.items():
        scene.pixels[row, column] = emulator.screen[y, x, 0]
