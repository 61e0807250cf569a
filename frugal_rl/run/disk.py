"""Bytes that reach the disk: short writes go on, a file has its name only when it is whole."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

Bytes = bytes | memoryview


def write_all(number: int, data: Bytes) -> None:
    """Write all bytes to an open file; the system may take fewer at once."""
    left = memoryview(data).cast("B")
    while len(left):
        left = left[os.write(number, left) :]


def write_pieces(path: Path, pieces: Iterable[Bytes]) -> None:
    """Write a file in pieces and force it to the disk."""
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        for piece in pieces:
            write_all(number, piece)
        os.fsync(number)
    finally:
        os.close(number)


def write_whole(
    path: Path, pieces: Iterable[Bytes], check: Callable[[Path], object] | None = None
) -> None:
    """Write beside `path`, let `check` read it back, then give it the name; or leave no trace."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        write_pieces(part, pieces)
        if check is not None:
            check(part)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
    flush_folder(path.parent)


def flush_folder(folder: Path) -> None:
    """Force a folder's names to the disk, where the system can."""
    try:
        number = os.open(folder, os.O_RDONLY)
    except OSError:
        return  # a system that opens no folders flushes their names itself
    try:
        os.fsync(number)
    finally:
        os.close(number)
