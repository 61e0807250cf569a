"""Text of files that may be anything."""

from __future__ import annotations

import stat
from pathlib import Path

MOST_BYTES = 1 << 30
LONGEST = 500


def text_of(path: str | Path, encoding: str) -> str:
    """A regular file's text: pipes and devices never end, and holes take no disk.

    Raises:
        ValueError: it is no text of at most `MOST_BYTES`.
    """
    about = Path(path).stat()
    if not stat.S_ISREG(about.st_mode):
        raise ValueError(f"{path} is no regular file")
    if about.st_size > MOST_BYTES:
        raise ValueError(f"{path} has {about.st_size:,} bytes, above {MOST_BYTES:,}")
    with Path(path).open(encoding=encoding, newline="") as file:
        return file.read()


def plain(words: str) -> str:
    """Words without what moves a terminal's cursor, of a length that somebody reads."""
    whole = words if len(words) <= LONGEST else f"{words[:LONGEST]}..."
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in whole)
