"""Our own cartridges: their sources, their binaries and the assembler that connects the two."""

from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Cartridge:
    """The files of one cartridge: its source and the three that an assembly gives."""

    name: str

    @property
    def source(self) -> Path:
        """The main file of the program."""
        return FOLDER / f"{self.name}.asm"

    @property
    def image(self) -> Path:
        """The 32 KiB that an emulator runs."""
        return FOLDER / f"{self.name}.gb"

    @property
    def symbols(self) -> Path:
        """Addresses by name."""
        return FOLDER / f"{self.name}.sym"

    @property
    def hash(self) -> Path:
        """The SHA-1 of the image, as sha1sum writes it."""
        return FOLDER / f"{self.name}.sha1"


DUEL, HOP, STACK, ROAM, VOLLEY = CARTRIDGES = tuple(
    Cartridge(name) for name in ("duel", "hop", "stack", "roam", "volley")
)
ROM_PATH = DUEL.image


def image_of(sha1: str) -> Path | None:
    """Our own image with that SHA-1, if there is one."""
    for cartridge in CARTRIDGES:
        if cartridge.hash.read_text(encoding="ascii").split()[0] == sha1:
            return cartridge.image
    return None
