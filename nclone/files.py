"""Names of files, and bytes that are written whole or not at all."""

from __future__ import annotations

from pathlib import Path

from frugal_rl.run.disk import finished_or_absent


def write_whole(path: Path, data: bytes) -> None:
    """Write bytes to a file, or raise `DiskError` and leave what was there."""
    with finished_or_absent(path) as part:
        part.write_bytes(data)


def file_stem(words: str) -> str:
    """A name for a file: letters and digits stay, everything else becomes an underscore."""
    return "".join(c if c.isalnum() else "_" for c in words)
