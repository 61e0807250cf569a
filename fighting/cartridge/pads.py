"""A cartridge's second pad, as its profile says it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fighting.machine.emulator import Emulator


@dataclass(frozen=True)
class Pads:
    """What a profile says of its second pad."""

    second: int
    """Address of the byte that the cartridge reads it from: A, B, Select, Start, Right, Left, Up,
    Down from bit 0."""
    set: Mapping[int, int] = field(default_factory=dict)
    """Bytes written as an episode between two players begins, by address."""
    exchange: Sequence[tuple[str, str]] = ()
    """Values of the first and of the second player, in pairs."""
    mirror: Mapping[str, int] = field(default_factory=dict)
    """Values that the second player sees as this number minus them; the picture is mirrored then,
    and Left and Right are exchanged."""

    def begin(self, emulator: Emulator) -> None:
        """Tells the cartridge that two play."""
        for address, byte in self.set.items():
            emulator.memory[address] = byte
