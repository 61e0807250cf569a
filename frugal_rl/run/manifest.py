"""Where a run's checkpoint lies and what it says of itself; read without torch.

`checkpoint_file` describes the form and reads the rest.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from frugal_rl.errors import (
    CheckpointError,
    DataError,
    FolderInUseError,
    OtherFormatError,
    OutOfReachError,
)
from frugal_rl.invocation import override
from frugal_rl.untrusted.limits import LIMITS, Limits
from frugal_rl.untrusted.nested import parse_json
from frugal_rl.untrusted.printing import printable, shown

LAST = "last.pt"
"""Name of the newest checkpoint in a run's `checkpoints/`."""
BEST = "best.pt"
"""Name of the one with the best evaluation."""
OLDER = "step_{:012d}.pt"
"""Name of an older checkpoint, by the environment steps it was saved at."""
OLDER_NAME = re.compile(r"step_\d{12,}\.pt")
FORMAT = 2
"""Raised when files of an older form can no longer be read."""
MAGIC = b"FRUGAL2\n"
NAMED = re.compile(rb"FRUGAL(\d)\n")
"""How a file of any format since 2 begins."""
HEAD_BYTES = len(MAGIC) + 8 + 32
FORMAT_1 = b"PK\x03\x04"
"""How a file of format 1 begins: a zip of torch's."""


@dataclass(frozen=True)
class Entry:
    """One array's bytes: where they lie in the file, and what they must hash to."""

    at: int
    num_bytes: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """What a file says of itself, checked as far as that goes without reading the entries."""

    path: Path
    values: Any
    entries: Mapping[str, Entry]


def find_checkpoint(path: str | Path) -> Path:
    """The newest checkpoint file meant by a file, a run folder or its `checkpoints/`.

    Raises:
        CheckpointError: there is none.
    """
    path = Path(path)
    if path.is_file():
        return path
    for folder in (path, path / "checkpoints"):
        for file in checkpoints_in(folder):
            return file
    raise CheckpointError(
        f"There is no checkpoint at {shown(path)}: neither a file, nor {LAST} in it or in its "
        "checkpoints/ folder. Give the folder of a run that has saved one."
    )


def older_in(folder: Path) -> list[Path]:
    """The older checkpoints in a folder, newest first."""
    named = (p for p in folder.glob("step_*.pt") if OLDER_NAME.fullmatch(p.name) and p.is_file())
    return sorted(named, reverse=True)


def checkpoints_in(folder: Path) -> list[Path]:
    """All checkpoints in a folder, newest first: the last, older ones by their steps, the best."""
    files = (folder / LAST, *older_in(folder), folder / BEST)
    return [file for file in files if file.is_file()]


def refuse_begun(folder: Path, resume: str | None) -> None:
    """Refuse to begin a run where another one has left checkpoints: they would be mixed.

    Args:
        folder: the run's own.
        resume: where it goes on from; the same folder is no other run.

    Raises:
        FolderInUseError: naming both ways on.
    """
    theirs = checkpoints_in(folder / "checkpoints")
    if theirs and not (resume and Path(resume).resolve().is_relative_to(folder.resolve())):
        raise FolderInUseError(
            f"{shown(folder)} holds the checkpoints of a run. Go on with it: "
            f"{override('resume', folder)}; or choose another folder with hydra.run.dir=..."
        )


def read_manifest(path: Path, limits: Limits = LIMITS) -> Manifest:
    """What the file holds, without its entries.

    Raises:
        CheckpointError: in one line, what is wrong with the file.
    """
    try:
        with path.open("rb") as file:
            return _manifest(file, path, limits)
    except (DataError, OSError) as error:
        raise damaged(path, error) from error


def _manifest(file: BinaryIO, path: Path, limits: Limits) -> Manifest:
    head = file.read(HEAD_BYTES)
    if head.startswith(FORMAT_1):
        raise _other_format(path, 1)
    named = NAMED.match(head)
    if len(head) < HEAD_BYTES or named is None:
        raise CheckpointError(
            f"{shown(path)} is no checkpoint of this program, or its first bytes are damaged; give "
            "a run folder of it."
        )
    length, size = int.from_bytes(head[8:16], "little"), os.fstat(file.fileno()).st_size
    whole = length <= min(size - HEAD_BYTES, limits.text_bytes)
    raw = file.read(length) if whole else b""
    sound = whole and hashlib.sha256(raw).digest() == head[16:48]
    if int(named[1]) != FORMAT:
        if sound and _format_of(parse_json(raw, limits)) == FORMAT:
            raise DataError("its first bytes are damaged.")  # else a bit would change its version
        raise _other_format(path, int(named[1]))
    if not whole:
        raise DataError("its manifest is longer than the file, or than any should be.")
    if not sound:
        raise DataError("its manifest has another checksum than it was written with.")
    return _checked(parse_json(raw, limits), path, HEAD_BYTES + length, size, limits)


def _format_of(raw: Any) -> Any:
    return raw.get("format") if isinstance(raw, dict) else None


def _other_format(path: Path, number: int) -> OtherFormatError:
    return OtherFormatError(
        f"{shown(path)} has checkpoint format {number}, this version reads {FORMAT}. Resume it "
        "with the version that wrote it."
    )


def _checked(raw: Any, path: Path, at: int, size: int, limits: Limits) -> Manifest:
    number = _format_of(raw)
    if type(number) is not int:
        raise DataError("its manifest names no format.")
    if number != FORMAT:
        raise _other_format(path, number)
    described = raw.get("entries")
    if not isinstance(described, list) or len(described) > limits.entries:
        raise DataError("its manifest lists no entries, or too many.")
    entries = {}
    for entry in described:
        name, num_bytes, sha256 = _entry(entry)
        entries[name] = Entry(at, num_bytes, sha256)
        at += num_bytes
    if at != size or len(entries) != len(described):
        raise DataError(f"it has {size:,} bytes where its manifest counts {at:,}.")
    return Manifest(path, raw.get("values"), entries)


def _entry(entry: Any) -> tuple[str, int, str]:
    if isinstance(entry, list) and len(entry) == 3:
        name, num_bytes, sha256 = entry
        if isinstance(name, str) and type(num_bytes) is int and isinstance(sha256, str):
            if num_bytes >= 0:
                return name, num_bytes, sha256
    raise DataError("an entry of its manifest is described wrongly.")


def damaged(path: Path, why: object) -> CheckpointError:
    """The error of a file that cannot be read."""
    if isinstance(why, PermissionError):
        return OutOfReachError(
            f"{shown(path)} cannot be opened: {why.strerror}. Its owner may allow it."
        )
    words = printable(str(why)).rstrip(".")
    return CheckpointError(
        f"{shown(path)} is damaged or cut off: {words}. Use an older one of the same folder."
    )
