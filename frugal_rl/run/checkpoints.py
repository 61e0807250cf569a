"""Checkpoints: written beside, read back, then renamed. `keeping` says which ones stay.

A name is given to a file only after its bytes were read back and compared; nothing in a file is
executed when it is read. `checkpoint_file` describes the form.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from frugal_rl.run.checkpoint_file import pieces_of, read_file, verify_file
from frugal_rl.run.disk import write_whole
from frugal_rl.run.manifest import find_checkpoint, read_manifest


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
    return read_file(read_manifest(find_checkpoint(path)))
