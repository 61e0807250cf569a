"""The most that a file may ask for."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass

MIB = 1 << 20


@dataclass(frozen=True)
class Limits:
    """The most that a file may ask for."""

    file_bytes: int = 1 << 40
    text_bytes: int = 64 * MIB
    """JSON, or any other text."""
    yaml_bytes: int = 4 * MIB
    """YAML, which takes about a second for each MiB."""
    entries: int = 200_000
    depth: int = 100
    """Lists and mappings inside each other."""
    array_bytes: int = 16384 * MIB
    """All arrays of an archive together, unpacked."""
    ratio: float = 400.0
    """Unpacked bytes per byte on disk."""


LIMITS = Limits()


def irregular(about: os.stat_result) -> str:
    """Why a pipe, a device or a folder is not read: it may never end; nothing for a file."""
    return "" if stat.S_ISREG(about.st_mode) else "it is no regular file."


def lack_of_room(num_bytes: float) -> str:
    """Why what unpacks to so much is refused on this machine; nothing where it has room."""
    if num_bytes <= MIB:
        return ""
    import psutil  # for large files only: no help is written with it

    free = psutil.virtual_memory().available
    if num_bytes <= free:
        return ""
    return f"it unpacks to {num_bytes / MIB:,.0f} MiB; {free / MIB:,.0f} are free."
