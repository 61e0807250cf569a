"""Duel's logic as machine code: its translation to C, compiled when it is first wanted."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from fighting.rom import DUEL
from fighting.rom.native import translated
from frugal_rl.errors import DataError

WORK_RAM = 0x2000
"""Bytes of work RAM; address A of it is at A & 0x1FFF."""
SEEN_BYTES = 22 + 2 * 38
"""State and both fighters, as the vector environment copies them."""
HOLD = """
#include <string.h>
static void frames(uint8_t *ram, const uint8_t *rom, int one, int two, int count) {
  ram[0x10] = one;
  ram[0x11] = two;
  while (count-- > 0) {
    frame(ram, rom);
    ram[0x42] = 0;  /* wHudCount: the picture would take the tiles that wait for it */
  }
}
void hold(uint8_t *ram, const uint8_t *rom, const uint8_t *one, const uint8_t *two, int machines,
          int skip, int press, uint8_t *seen) {
  for (int i = 0; i < machines; i++, ram += 0x2000, seen += 98) {
    int lifted = press > 0 && press < skip && (one[i] | two[i]) & 3 ? press : skip;
    frames(ram, rom, one[i], two[i], lifted);
    frames(ram, rom, one[i] & (lifted < skip ? ~3 : 255), two[i] & (lifted < skip ? ~3 : 255),
           skip - lifted);
    memcpy(seen, ram + 0x20, 22);
    memcpy(seen + 22, ram + 0x100, 38);
    memcpy(seen + 60, ram + 0x200, 38);
  }
}
"""
"""One action of both players on all machines: A and B are lifted after `press` frames of `skip`."""


def address(name: str) -> int:
    """Where a label of Duel's program is."""
    for line in DUEL.symbols.read_text(encoding="ascii").splitlines():
        place, _, label = line.partition(" ")
        if label == name:
            return int(place.partition(":")[2], 16)
    raise KeyError(name)


def compiled(source: str) -> ctypes.CDLL:
    """A library of C text; its own words where there is no compiler, or it does not compile."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise DataError(
            "Duel's logic is translated to C, and no compiler `cc` was found: install gcc, or "
            "choose env.emulator=pyboy."
        )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "duel.so"
        flags = ["-O1", "-fwrapv", "-shared", "-fPIC", "-x", "c", "-", "-o", str(path)]
        done = subprocess.run([compiler, *flags], input=source.encode(), capture_output=True)
        if done.returncode:
            words = done.stderr.decode(errors="replace").strip().splitlines() or ["no word"]
            raise DataError(
                f"{compiler} does not compile Duel's logic ({words[-1]}): mend it, or choose "
                "env.emulator=pyboy."
            )
        return ctypes.CDLL(str(path))


def in_c() -> str:
    """`Logic`, one frame of the fight, as C text."""
    stops = frozenset({address("Draw"), address("ReadPad")})
    return translated(DUEL.image.read_bytes(), address("Logic"), stops)


@cache
def library() -> ctypes.CDLL:
    """Two routines, which need a C compiler (`cc`) once; numbers are addresses of bytes.

    frame(ram, rom)  one frame; work RAM of 8,192 bytes, which it changes, and 32,768 of cartridge
    hold(ram, rom, one, two, machines, skip, press, seen)  one action on M machines, see `HOLD`:
        ram (M, 8192), one, two (M,), seen (M, 98)
    """
    found = compiled(in_c() + HOLD)
    byte, whole = ctypes.c_void_p, ctypes.c_int
    found.frame.argtypes, found.frame.restype = (byte, byte), None
    found.hold.argtypes = (byte, byte, byte, byte, whole, whole, whole, byte)
    found.hold.restype = None
    return found
