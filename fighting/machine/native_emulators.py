"""N Duel cartridges whose logic runs as machine code: what `Emulators` does, without pictures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from fighting.machine import duel
from fighting.machine.console import boot
from fighting.machine.emulator import Emulator, StateError
from fighting.rom import DUEL
from fighting.rom.logic import SEEN_BYTES, WORK_RAM, library
from frugal_rl.errors import ConfigError

if TYPE_CHECKING:
    from fighting.config import DuelConfig


@cache
def ready_ram() -> np.ndarray:
    """The work RAM (8192,) uint8 of a cartridge that waits for its first match."""
    emulator = boot()
    ram = np.array(emulator.read(0xC000, WORK_RAM), np.uint8)
    emulator.close()
    ram.flags.writeable = False
    return ram


class NativeEmulators:
    """The work RAM of N cartridges, stepped by the translated logic on the calling thread.

    work     (N, 8192) uint8   all that a fight depends on
    ram      (N, 98) uint8     state and fighters, see `signals`
    before   (N, 98) uint8     the same, one step earlier
    """

    renders = False
    machines: Sequence[Emulator] = ()
    pixels: Sequence[np.ndarray] = ()

    def __init__(self, config: DuelConfig, count: int) -> None:
        logic = library()
        self.config, self.count = config, count
        self.rom = np.frombuffer(DUEL.image.read_bytes(), np.uint8).copy()
        self.work = np.tile(ready_ram(), (count, 1))
        self.ram = np.zeros((count, SEEN_BYTES), np.uint8)
        self.before = np.zeros_like(self.ram)
        self._hold = logic.hold

    def begin(self, index: int, match: duel.MatchSettings) -> None:
        """Starts a match in the one frame in which the cartridge obeys."""
        for address, value in duel.order(match).items():
            self.work[index, address & WORK_RAM - 1] = value
        self._run(slice(index, index + 1), np.zeros(1, np.uint8), np.zeros(1, np.uint8), 1, 0)
        self.before[index] = self.ram[index]

    def step(
        self, first: np.ndarray, second: np.ndarray | None, after: Callable[[int], None]
    ) -> None:
        """One action each: button bytes (N,) of player 1 and of player 2.

        Nothing is drawn, so `after`, which takes pictures, is not called.
        """
        np.copyto(self.before, self.ram)
        one = np.ascontiguousarray(first, np.uint8)
        two = np.zeros_like(one) if second is None else np.ascontiguousarray(second, np.uint8)
        self._run(slice(None), one, two, self.config.frame_skip, self.config.press_frames)

    def _run(self, which: slice, one: np.ndarray, two: np.ndarray, skip: int, press: int) -> None:
        work, ram = self.work[which], self.ram[which]
        buttons = (one.ctypes.data, two.ctypes.data)
        self._hold(
            work.ctypes.data,
            self.rom.ctypes.data,
            *buttons,
            len(work),
            skip,
            press,
            ram.ctypes.data,
        )

    def picture(self, index: int) -> np.ndarray:
        """There is none."""
        raise ConfigError("env.emulator=native draws no pictures; env.emulator=pyboy does.")

    def save(self) -> list[bytes]:
        """The state of every cartridge."""
        return [row.tobytes() for row in self.work]

    def vet(self, states: Sequence[bytes]) -> None:
        """States are this class's own; whatever they hold, a frame of them stays in its memory."""
        for state in states:
            if len(state) != WORK_RAM:
                raise StateError(
                    f"The saved state has {len(state):,} bytes, env.emulator=native keeps "
                    f"{WORK_RAM:,}: it is PyBoy's. Choose env.emulator=pyboy."
                )

    def load(self, states: Sequence[bytes]) -> None:
        """Goes back to saved states."""
        self.vet(states)
        for row, state in zip(self.work, states, strict=True):
            row[:] = np.frombuffer(state, np.uint8)
        self.ram[:, :22] = self.work[:, 0x20:0x36]
        self.ram[:, 22:60] = self.work[:, 0x100:0x126]
        self.ram[:, 60:] = self.work[:, 0x200:0x226]
        np.copyto(self.before, self.ram)

    def close(self) -> None:
        """Nothing runs that would have to end."""
