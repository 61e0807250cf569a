"""One Game Boy: PyBoy with the settings that training needs, and clear errors for bad input."""

import hashlib
import io
import warnings
from functools import cached_property
from importlib.metadata import version
from pathlib import Path

import numpy as np

from frugal_rl.errors import DataError
from frugal_rl.untrusted.files import read_bytes
from frugal_rl.untrusted.printing import printable

with warnings.catch_warnings():  # of which SDL it found, in every command
    warnings.simplefilter("ignore", UserWarning)
    from pyboy import PyBoy

SHADES = (0xFFFFFF, 0xAAAAAA, 0x555555, 0x000000)
"""The four shades of the DMG as red = green = blue values: 255, 170, 85, 0."""
SCREEN = (144, 160)
PYBOY_VERSION = version("pyboy")
FRAMES_PER_SECOND = 59.7275
BUTTONS = ("a", "b", "select", "start", "right", "left", "up", "down")
"""Bit 0 to 7 of a button byte."""
ROM_SIZES = tuple(0x8000 << n for n in range(9))
MOST_STATE_BYTES = 1 << 22
"""More than a state of any cartridge has (128 KiB of its own memory, and the machine's)."""


class RomError(DataError):
    """A cartridge image that cannot be used."""


class StateError(DataError):
    """A saved state that cannot be loaded."""


def read_rom(path: Path) -> bytes:
    """The bytes of a cartridge image whose size agrees with its header."""
    if not path.is_file():
        raise RomError(f"There is no cartridge image at {path}. Give the path of a file you own.")
    rom = read_bytes(path, ROM_SIZES[-1])
    if len(rom) < 0x150:
        raise RomError(f"{path} has {len(rom)} bytes, too few for a cartridge header.")
    code = rom[0x148]
    declared = 0x8000 << code if code <= 8 else 0
    if len(rom) != declared:
        raise RomError(
            f"{path} has {len(rom)} bytes, its header (at $0148) declares {declared}: "
            "the file is truncated or not a Game Boy cartridge. Copy it again."
        )
    checksum = (-sum(rom[0x134:0x14D]) - 25) & 0xFF
    if checksum != rom[0x14D]:
        raise RomError(
            f"{path}: the header checksum is ${rom[0x14D]:02X}, its bytes give ${checksum:02X}. "
            "The file is damaged or not a Game Boy cartridge."
        )
    return rom


def sha1(rom: bytes) -> str:
    """The hexadecimal SHA-1 by which profiles name cartridge images."""
    return hashlib.sha1(rom, usedforsecurity=False).hexdigest()


def sha256(rom: bytes) -> str:
    """The hexadecimal SHA-256, by which some collections name them."""
    return hashlib.sha256(rom).hexdigest()


class Emulator:
    """A running cartridge. One thread at a time may use it; `tick` releases the GIL.

    Args:
        rom: a cartridge image. It is given to the emulator as a stream, so that no save file
            beside a ROM is read or written.
        sound: emulates the sound unit, which training never needs.
        window: `null` draws nothing on screen, `SDL2` opens a window.
    """

    def __init__(self, rom: bytes, *, sound: bool = False, window: str = "null") -> None:
        self.pyboy = PyBoy(
            io.BytesIO(rom),
            window=window,
            sound_emulated=sound,
            color_palette=SHADES,
            log_level="CRITICAL",
        )
        self.pyboy.set_emulation_speed(0)
        self.memory = self.pyboy.memory
        self.screen: np.ndarray = self.pyboy.screen.ndarray
        """(144, 160, 4) uint8 view of the last rendered frame."""
        self.pixels: np.ndarray = self.screen.view("<u4")[..., 0]
        """(144, 160) uint32 view of the same, red in the low byte."""
        self.held = 0

    def tick(self, frames: int = 1, render: bool = False) -> None:
        """Emulates `frames` frames; only the last one is drawn, and only if asked for."""
        self.pyboy.tick(frames, render, False)

    def read(self, address: int, count: int) -> list[int]:
        """`count` bytes from `address` on."""
        return self.memory[address : address + count]

    def write(self, address: int, value: int, size: int = 1) -> None:
        """Writes a little-endian number."""
        for i in range(size):
            self.memory[address + i] = value >> 8 * i & 0xFF

    def hold(self, buttons: int) -> None:
        """Presses exactly the buttons of a button byte on the joypad."""
        changed = buttons ^ self.held
        for bit in range(8):
            if changed >> bit & 1:
                if buttons >> bit & 1:
                    self.pyboy.button_press(BUTTONS[bit])
                else:
                    self.pyboy.button_release(BUTTONS[bit])
        self.held = buttons

    def save(self) -> bytes:
        """The whole state of the machine."""
        stream = io.BytesIO()
        self.pyboy.save_state(stream)
        return stream.getvalue()

    @cached_property
    def _form(self) -> tuple[int, int]:
        """Format and length of this machine's states; saving one takes three times a load."""
        own = self.save()
        return own[0], len(own)

    def load(self, state: bytes) -> None:
        """Goes back to a saved state, which must come from this or an older emulator version."""
        newest, length = self._form
        if not state or state[0] > newest:
            found = state[0] if state else "no"
            raise StateError(
                f"The saved state has format {found}; PyBoy {PYBOY_VERSION} reads formats up "
                f"to {newest}. Make the state again, or install the version that wrote it."
            )
        if state[0] == newest and len(state) != length:
            raise StateError(
                f"The saved state has {len(state):,} bytes; this cartridge's have {length:,}. It "
                "is truncated or belongs to another cartridge."
            )
        try:
            self.pyboy.load_state(io.BytesIO(state))
        except Exception as problem:
            raise StateError(
                f"PyBoy {PYBOY_VERSION} cannot load this state ({len(state)} bytes, format "
                f"{state[0]}): {printable(str(problem))}. It is truncated or belongs to another "
                "cartridge."
            ) from problem

    def close(self) -> None:
        """Ends the emulation; nothing is written to disk."""
        self.pyboy.stop(save=False)
