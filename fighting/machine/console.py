"""Duel's cartridge in a running machine."""

from fighting.machine import duel
from fighting.machine.emulator import Emulator, RomError
from fighting.rom import ROM_PATH

BOOT_FRAMES = 80
"""Frames after power-on within which `MAGIC` must have appeared."""


def boot() -> Emulator:
    """A running Duel cartridge that has finished its initialisation."""
    emulator = Emulator(ROM_PATH.read_bytes())
    for _ in range(BOOT_FRAMES + 1):
        emulator.tick()
        if bytes(emulator.read(0xC000, 4)) == duel.MAGIC:
            version = emulator.memory[0xC004]
            if version != duel.VERSION:
                raise RomError(
                    f"{ROM_PATH.name} speaks version {version}, expected {duel.VERSION}."
                )
            return emulator
    raise RomError(f"{ROM_PATH.name} did not report ready within {BOOT_FRAMES} frames.")
