"""How a game looks from its second pad."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fighting.cartridge.buttons import facing_left

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fighting.cartridge.memory import Address
    from fighting.cartridge.pads import Pads
    from fighting.cartridge.scene import Watched

MIRRORED = np.array([facing_left(byte) for byte in range(256)], np.uint8)
"""Of each button byte the one with Left and Right exchanged."""


class SecondSeat:
    """Memory as the second player sees it: the same rules then speak of the second player.

    `order` is where each watched column comes from; mirrored numbers are turned round after it.
    """

    def __init__(self, pads: Pads, memory: Mapping[str, Address], watched: Watched) -> None:
        found: list[tuple[int, int]] = []
        for one, two in pads.exchange:
            ours, theirs = _columns(memory[one], watched), _columns(memory[two], watched)
            found += [*zip(ours, theirs, strict=True), *zip(theirs, ours, strict=True)]
        self.turned = [(_columns(memory[n], watched), pads.mirror[n]) for n in pads.mirror]
        self.order = np.arange(len(watched.addresses))
        for column, source in found:
            self.order[column] = source

    def seen(self, memory: np.ndarray) -> np.ndarray:
        """Watched bytes [N, A] uint8 of the cartridge -> those of its second player."""
        out: np.ndarray = memory[:, self.order]
        for columns, whole in self.turned:
            places = 256 ** np.arange(len(columns))
            number = (whole - out[:, columns] @ places) % (256 ** len(columns))
            out[:, columns] = number[:, None] // places % 256
        return out


def _columns(address: Address, watched: Watched) -> list[int]:
    """The columns of a value's bytes, the lowest first."""
    assert address.addr is not None
    columns = [watched.byte(address.addr + i) for i in range(address.size)]
    return columns[::-1] if address.big else columns
