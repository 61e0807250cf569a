"""Whole files, and what was packed with zlib, within a number of bytes."""

from __future__ import annotations

import os
import zlib
from pathlib import Path

from frugal_rl.errors import DataError
from frugal_rl.untrusted.limits import LIMITS, MIB, Limits, irregular, lack_of_room
from frugal_rl.untrusted.printing import shown


def refuse_irregular(path: Path) -> os.stat_result:
    """Refuse pipes and devices, which may never end, and folders.

    Raises:
        DataError: it is one of those.
        OSError: it is missing, or cannot be reached.
    """
    about = path.stat()
    if why := irregular(about):
        raise DataError(f"{shown(path)} cannot be read: {why}")
    return about


def read_bytes(path: Path, at_most: int = LIMITS.file_bytes, held_per_byte: float = 1) -> bytes:
    """A regular file as it is.

    Args:
        path: the file.
        at_most: its length.
        held_per_byte: what is held of each byte at least until all of it is understood.

    Raises:
        DataError: it is missing, no regular file, or longer than `at_most` bytes or what is free.
    """
    try:
        about = refuse_irregular(path)
        if about.st_size <= at_most and (lack := lack_of_room(held_per_byte * about.st_size)):
            raise DataError(f"{shown(path)} is not read: {lack}")  # a file's holes take no disk
        with path.open("rb") as file:
            raw = file.read(min(about.st_size, at_most) + 1)  # takes as much as it is asked for
    except (OSError, ValueError) as error:  # a name with a NUL in it is a ValueError
        if isinstance(error, DataError):
            raise
        words = getattr(error, "strerror", None) or error
        raise DataError(f"{shown(path)} cannot be read: {words}.") from error
    if len(raw) > at_most:
        raise DataError(f"{shown(path)} is longer than {_size(at_most)}, which is the most.")
    return raw


def read_text(path: Path, limits: Limits = LIMITS) -> str:
    """A text file in UTF-8, refused above `text_bytes`.

    Raises:
        DataError: the file is missing, too long, or not UTF-8.
    """
    raw = read_bytes(path, limits.text_bytes)
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise DataError(
            f"{shown(path)} is no UTF-8 text: {error.reason} at byte {error.start}."
        ) from error


def inflate(packed: bytes, at_most: int) -> bytes:
    """What zlib packed, complete and of at most so many bytes.

    Raises:
        DataError: the stream is damaged, cut, or unpacks to more.
    """
    decoder = zlib.decompressobj()
    try:
        raw = decoder.decompress(packed, at_most + 1)
    except zlib.error as error:
        raise DataError(f"its packed part is damaged ({error})") from error
    if len(raw) > at_most:
        raise DataError(f"its packed part holds more than {_size(at_most)}")
    if not decoder.eof:
        raise DataError("its packed part is not complete")
    return raw


def _size(num_bytes: int) -> str:
    return f"{num_bytes / MIB:g} MiB" if num_bytes >= MIB else f"{num_bytes:,} bytes"
