"""The form of a checkpoint file: a manifest with a checksum per entry, then the entries' bytes.

    8 bytes    FRUGAL2 and a newline
    8 bytes    length of the manifest, little endian
    32 bytes   SHA-256 of the manifest
    manifest   JSON: format, the nested values, and for each entry its name, bytes and SHA-256
    entries    one after the other, nothing between them and nothing behind the last

Every byte is covered, so that no flipped bit and no missing end goes unnoticed; nothing is packed,
so that a file can never ask for more memory than it has bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from frugal_rl.errors import DataError, MemoryBudgetError
from frugal_rl.run.manifest import FORMAT, MAGIC, Entry, Manifest, damaged, read_manifest
from frugal_rl.run.values import Blobs, as_bytes, from_json, to_json
from frugal_rl.untrusted.limits import LIMITS, Limits, lack_of_room
from frugal_rl.untrusted.printing import printable, shown

CHUNK_BYTES = 1 << 20


def pieces_of(content: Mapping[str, Any]) -> Iterator[bytes | memoryview]:
    """The bytes of a file that holds nested values, piece by piece."""
    blobs: Blobs = {}
    values = to_json(dict(content), blobs, "content")
    entries = [[name, *_described(as_bytes(blob))] for name, blob in blobs.items()]
    manifest = json.dumps({"format": FORMAT, "values": values, "entries": entries}).encode()
    yield MAGIC + len(manifest).to_bytes(8, "little") + hashlib.sha256(manifest).digest()
    yield manifest
    for blob in blobs.values():
        yield as_bytes(blob).data


def _described(raw: np.ndarray) -> tuple[int, str]:
    return raw.nbytes, hashlib.sha256(raw.data).hexdigest()


def verify_file(path: Path, limits: Limits = LIMITS) -> Manifest:
    """Compare every checksum, without holding more than a piece of the file.

    Raises:
        CheckpointError: in one line, what is wrong with the file.
    """
    manifest = read_manifest(path, limits)
    try:
        with path.open("rb", buffering=0) as file:
            for name, entry in manifest.entries.items():
                file.seek(entry.at)
                _compare(name, entry, _hash_of(file, entry.num_bytes))
    except (DataError, OSError) as error:
        raise damaged(path, error) from error
    return manifest


def _hash_of(file: Any, num_bytes: int) -> str:
    digest, left = hashlib.sha256(), num_bytes
    while left and (piece := file.read(min(CHUNK_BYTES, left))):
        digest.update(piece)
        left -= len(piece)
    return digest.hexdigest()


def _compare(name: str, entry: Entry, sha256: str) -> None:
    if sha256 != entry.sha256:
        raise DataError(f"'{printable(name)}' has another checksum than it was written with.")


def read_file(manifest: Manifest) -> dict[str, Any]:
    """The nested values; each entry is compared with its checksum as it is read.

    Raises:
        CheckpointError: in one line, what is wrong with the file.
        MemoryBudgetError: an entry is larger than what is free.
    """
    try:
        with manifest.path.open("rb") as file:
            unread = dict(manifest.entries)

            def fetch(name: str) -> np.ndarray:
                entry = unread.pop(name)  # once: else one entry could fill the memory many times
                if lack := lack_of_room(entry.num_bytes):  # a file's holes take no disk
                    raise MemoryBudgetError(f"{shown(manifest.path)} does not fit here: {lack}")
                raw = np.empty(entry.num_bytes, np.uint8)
                file.seek(entry.at)
                file.readinto(raw.data)
                _compare(name, entry, hashlib.sha256(raw.data).hexdigest())
                return raw

            content = from_json(manifest.values, fetch)
    except (DataError, OSError) as error:
        raise damaged(manifest.path, error) from error
    if not isinstance(content, dict):
        raise damaged(manifest.path, "it holds no values by name.")
    return content
