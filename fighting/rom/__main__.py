"""`python -m fighting.rom build|check|list`: make, verify or print the Duel cartridge."""

import argparse
import hashlib
import sys
from pathlib import Path

from fighting.rom import ROM_PATH, SHA1_PATH, SOURCE_PATH, SYMBOL_PATH
from fighting.rom.sm83asm import AssemblyError, Program, assemble


def outputs(program: Program) -> dict[Path, bytes]:
    """The three committed files that an assembly gives."""
    digest = hashlib.sha1(program.rom, usedforsecurity=False).hexdigest()
    return {
        ROM_PATH: program.rom,
        SYMBOL_PATH: program.symbol_file().encode(),
        SHA1_PATH: f"{digest}  {ROM_PATH.name}\n".encode(),
    }


def main(arguments: list[str] | None = None) -> int:
    """Runs one of the three commands; 1 means that the files do not match the source."""
    parser = argparse.ArgumentParser(prog="python -m fighting.rom", description=__doc__)
    parser.add_argument("command", choices=("build", "check", "list"))
    command = parser.parse_args(arguments).command
    try:
        program = assemble(SOURCE_PATH)
    except AssemblyError as problem:
        print(problem, file=sys.stderr)
        return 1
    if command == "list":
        sys.stdout.write(program.listing())
        return 0
    stale = [
        path
        for path, content in outputs(program).items()
        if not path.is_file() or path.read_bytes() != content
    ]
    if command == "check":
        for path in stale:
            print(f"{path.name} differs from the source; run `python -m fighting.rom build`")
        if not stale:
            print(f"{ROM_PATH.name}, {SYMBOL_PATH.name} and {SHA1_PATH.name} match the source")
        return int(bool(stale))
    for path in stale:
        temporary = path.with_name(path.name + ".new")
        temporary.write_bytes(outputs(program)[path])
        temporary.replace(path)
    used = sum(item.size for item in program.items)
    print(
        f"{used} bytes of code and data, {len(program.labels)} labels, {len(stale)} files written"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
