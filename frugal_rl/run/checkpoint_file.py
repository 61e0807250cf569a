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
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from frugal_rl.errors import CheckpointError, DataError
from frugal_rl.run.values import Blobs, as_bytes, from_json, to_json
from frugal_rl.untrusted.limits import LIMITS, Limits
from frugal_rl.untrusted.nested import parse_json
from frugal_rl.untrusted.printing import printable, shown

FORMAT = 2
"""Raised when files of an older form can no longer be read."""
MAGIC = b"FRUGAL2\n"
HEAD_BYTES = len(MAGIC) + 8 + 32
CHUNK_BYTES = 1 << 20
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
        raise CheckpointError(
            f"{shown(path)} has checkpoint format 1, this version reads {FORMAT}. Resume it with "
            "the version that wrote it."
        )
    if len(head) < HEAD_BYTES or not head.startswith(MAGIC):
        raise CheckpointError(
            f"{shown(path)} is no checkpoint of this program, or its first bytes are damaged; give "
            "a run folder of it."
        )
    length, size = int.from_bytes(head[8:16], "little"), os.fstat(file.fileno()).st_size
    if length > min(size - HEAD_BYTES, limits.text_bytes):
        raise DataError("its manifest is longer than the file, or than any should be.")
    raw = file.read(length)
    if hashlib.sha256(raw).digest() != head[16:48]:
        raise DataError("its manifest has another checksum than it was written with.")
    return _checked(parse_json(raw, limits), path, HEAD_BYTES + length, size, limits)


def _checked(raw: Any, path: Path, at: int, size: int, limits: Limits) -> Manifest:
    if not isinstance(raw, dict) or raw.get("format") != FORMAT:
        raise DataError(f"its manifest is not of format {FORMAT}.")
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
    """
    try:
        with manifest.path.open("rb") as file:
            unread = dict(manifest.entries)

            def fetch(name: str) -> np.ndarray:
                entry = unread.pop(name)  # once: else one entry could fill the memory many times
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


def damaged(path: Path, why: object) -> CheckpointError:
    """The error of a file that cannot be read."""
    words = printable(str(why)).rstrip(".")
    return CheckpointError(
        f"{shown(path)} is damaged or cut off: {words}. Use an older one of the same folder."
    )
