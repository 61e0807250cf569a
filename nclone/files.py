"""Files that are complete or not there at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from frugal_rl.errors import FrugalError


class WriteError(FrugalError, OSError):
    """A file could not be written; nothing was left behind."""


@contextmanager
def finished_or_absent(path: Path) -> Iterator[Path]:
    """A temporary name beside `path` (same suffix), renamed on success, removed on failure.

    Raises:
        WriteError: the disk is full, the folder cannot be made, or anything else of that kind.
    """
    part = path.with_name(f".{path.stem}.part{path.suffix}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield part
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except WriteError:
        raise
    except OSError as error:
        raise WriteError(
            f"{path} cannot be written: {error.strerror or error}. Nothing was left there; free "
            "some space or choose another place."
        ) from error


def write_whole(path: Path, data: bytes) -> None:
    """Write bytes to a file, or raise `WriteError` and leave what was there."""
    with finished_or_absent(path) as part:
        part.write_bytes(data)


def file_stem(words: str) -> str:
    """A name for a file: letters and digits stay, everything else becomes an underscore."""
    return "".join(c if c.isalnum() else "_" for c in words)
