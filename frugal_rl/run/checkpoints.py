"""Checkpoints: written beside, read back, then renamed. `keeping` says which ones stay.

A name is given to a file only after its bytes were read back and compared; nothing in a file is
executed when it is read. `checkpoint_file` describes the form.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from frugal_rl.errors import CheckpointError
from frugal_rl.run.checkpoint_file import pieces_of, read_file, verify_file
from frugal_rl.run.disk import write_whole
from frugal_rl.run.manifest import find_checkpoint, read_manifest

T = TypeVar("T")
MOST_REPLACED = 5
"""Times that a file may be replaced while it is read, before what is wrong with it counts."""


def save_checkpoint(path: str | Path, content: Mapping[str, Any]) -> Path:
    """Write nested values, arrays and tensors; an older file at `path` stays until the end.

    The new file is forced to the disk, read back and compared with its checksums before it takes
    the older one's name.
    """
    path = Path(path)
    write_whole(path, pieces_of(content), verify_file)
    return path


def load_checkpoint(path: str | Path) -> dict[str, Any]:
    """Read what `save_checkpoint` wrote; `path` is a file, a run folder or its `checkpoints/`.

    Raises:
        CheckpointError: in one line, what is wrong with the file.
    """
    file = find_checkpoint(path)
    return as_it_stands(file, lambda: read_file(read_manifest(file)))


def as_it_stands(file: Path, read: Callable[[], T]) -> T:
    """What is read of a file that a run may replace at any moment: of one and the same file.

    Raises:
        CheckpointError: what is wrong with a file that stayed.
    """
    for _ in range(MOST_REPLACED):
        before = _identity(file)
        try:
            return read()
        except CheckpointError:
            if _identity(file) == before:
                raise
    return read()


def _identity(file: Path) -> tuple[int, ...]:
    """What tells a file from the one that takes its name; nothing where there is none."""
    try:
        about = file.stat()
    except OSError:
        return ()
    return about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns
