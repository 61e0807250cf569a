"""The committed cartridges: from their sources, valid, nothing foreign."""

import hashlib
import subprocess
from pathlib import Path

import pytest

from fighting.cartridge.reading import load_profile
from fighting.rom import CARTRIDGES, image_of
from fighting.rom.__main__ import main
from fighting.rom.sm83asm import assemble

ROOT = Path(__file__).resolve().parents[3]
LOGO_SHA1 = "0745fdef34132d1b3d488cfbdf0379a39fd54b4c"
"""SHA-1 of the 48 bytes that commercial cartridges carry at $0104; the bytes are not here."""


HASHES = {
    "duel": "803b2bef2415ce03e2ac512a727b3c98061182b3",
    "hop": "bd26d3fe84b31270b1e2866529b2bde65ae43578",
    "stack": "c6067eb0d63cfc9595f57050ad8b23f53a21babd",
    "roam": "1aa5c057e59d2602b6c6255eb6565b4513d0c000",
    "volley": "e589443373681c8f34668581f1975f7d5d4cbbec",
}


@pytest.mark.parametrize("cartridge", CARTRIDGES, ids=lambda c: c.name)
def test_assembling_the_source_gives_the_committed_bytes(cartridge):
    program = assemble(cartridge.source)
    assert program.rom == cartridge.image.read_bytes()
    assert program.symbol_file() == cartridge.symbols.read_text()
    digest = hashlib.sha1(program.rom, usedforsecurity=False).hexdigest()
    assert digest == HASHES[cartridge.name] == cartridge.hash.read_text().split()[0]
    assert load_profile(cartridge.name).roms[0].digest == digest
    assert image_of(digest) == cartridge.image


def test_no_image_is_ours_by_a_hash_that_none_has():
    assert image_of("0" * 40) is None


@pytest.mark.parametrize("cartridge", CARTRIDGES, ids=lambda c: c.name)
def test_the_header_is_valid_and_the_logo_area_is_zero(cartridge):
    rom = cartridge.image.read_bytes()
    assert len(rom) == 32768
    assert rom[0x134:0x144].rstrip(b"\0") == cartridge.name.upper().encode()
    assert not any(rom[0x104:0x134])
    checksum = 0
    for byte in rom[0x134:0x14D]:
        checksum = (checksum - byte - 1) & 0xFF
    assert rom[0x14D] == checksum
    rest = sum(rom) - rom[0x14E] - rom[0x14F]
    assert rom[0x14E] << 8 | rom[0x14F] == rest & 0xFFFF
    assert rom[0x143] == rom[0x146] == rom[0x147] == rom[0x148] == rom[0x149] == 0


def test_the_repository_holds_no_other_cartridge_and_no_logo():
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    names = [name for name in listed.stdout.decode().split("\0") if name]
    cartridges = [n for n in names if n.lower().endswith((".gb", ".gbc", ".sgb", ".sav", ".state"))]
    ours = [f"fighting/rom/{cartridge.image.name}" for cartridge in CARTRIDGES]
    assert sorted(cartridges) in ([], sorted(ours))
    for name in names:
        path = ROOT / name
        if not path.is_file() or path.stat().st_size > 1 << 21:
            continue
        data = path.read_bytes()
        # Every commercial image has its logo at $0104; ours and any other file must not.
        found = hashlib.sha1(data[0x104:0x134], usedforsecurity=False).hexdigest()
        assert found != LOGO_SHA1, name


def test_check_says_whether_the_files_match(capsys):
    assert main(["check"]) == 0
    assert capsys.readouterr().out.count("match the source") == len(CARTRIDGES)


def test_list_prints_addresses_bytes_and_source(capsys):
    assert main(["list", "duel"]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert any(row.startswith("0100  00") and "nop" in row for row in rows)
    assert len(rows) > 1000
