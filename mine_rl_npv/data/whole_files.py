"""Text files written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path


def write_whole(path: Path, lines: Iterable[str], encoding: str = "ascii") -> None:
    """Writes lines under a temporary name and renames, so that no half file remains."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(path.name + ".part")
    with draft.open("w", encoding=encoding, newline="\n") as file:
        file.writelines(line + "\n" for line in lines)
    os.replace(draft, path)
