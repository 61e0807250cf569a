"""The Duel cartridge: its source, its binary and the assembler that connects the two."""

from pathlib import Path

FOLDER = Path(__file__).parent
SOURCE_PATH = FOLDER / "duel.asm"
ROM_PATH = FOLDER / "duel.gb"
SYMBOL_PATH = FOLDER / "duel.sym"
SHA1_PATH = FOLDER / "duel.sha1"
