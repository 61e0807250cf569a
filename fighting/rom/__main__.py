"""`python -m fighting.rom build|check|list [NAME]`: make, verify or print our own cartridges."""

import argparse
import hashlib
import sys
from pathlib import Path

from fighting.rom import CARTRIDGES, Cartridge
from fighting.rom.sm83asm import AssemblyError, Program, assemble


def outputs(cartridge: Cartridge, program: Program) -> dict[Path, bytes]:
    """The three committed files that an assembly gives."""
    digest = hashlib.sha1(program.rom, usedforsecurity=False).hexdigest()
    return {
        cartridge.image: program.rom,
        cartridge.symbols: program.symbol_file().encode(),
        cartridge.hash: f"{digest}  {cartridge.image.name}\n".encode(),
    }


def main(arguments: list[str] | None = None) -> int:
    """Runs one of the three commands; 1 means that the files do not match the source."""
    names = [cartridge.name for cartridge in CARTRIDGES]
    parser = argparse.ArgumentParser(prog="python -m fighting.rom", description=__doc__)
    parser.add_argument("command", choices=("build", "check", "list"))
    parser.add_argument("name", nargs="?", choices=names, help="one cartridge instead of all")
    typed = parser.parse_args(arguments)
    run = {"build": build, "check": check, "list": show}[typed.command]
    chosen = [c for c in CARTRIDGES if typed.name in (None, c.name)]
    try:
        return max([run(cartridge, assemble(cartridge.source)) for cartridge in chosen])
    except AssemblyError as problem:
        print(problem, file=sys.stderr)
        return 1


def stale(cartridge: Cartridge, program: Program) -> dict[Path, bytes]:
    """The files that are missing or differ, with what they should hold."""
    return {
        path: content
        for path, content in outputs(cartridge, program).items()
        if not path.is_file() or path.read_bytes() != content
    }


def show(cartridge: Cartridge, program: Program) -> int:
    """Prints addresses, bytes and source."""
    sys.stdout.write(program.listing())
    return 0


def check(cartridge: Cartridge, program: Program) -> int:
    """Says whether the files match."""
    differing = stale(cartridge, program)
    for path in differing:
        print(f"{path.name} differs from the source; run `python -m fighting.rom build`")
    if not differing:
        files = [cartridge.image.name, cartridge.symbols.name]
        print(f"{', '.join(files)} and {cartridge.hash.name} match the source")
    return int(bool(differing))


def build(cartridge: Cartridge, program: Program) -> int:
    """Writes what differs, each file whole or not at all."""
    written = stale(cartridge, program)
    for path, content in written.items():
        temporary = path.with_name(path.name + ".new")
        temporary.write_bytes(content)
        temporary.replace(path)
    used = sum(item.size for item in program.items)
    print(
        f"{cartridge.name}: {used} bytes of code and data, {len(program.labels)} labels, "
        f"{len(written)} files written"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
