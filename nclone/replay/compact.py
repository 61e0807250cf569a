"""Compact human replays, `.replay` (specification, section 3.4)."""

from __future__ import annotations

import struct
from pathlib import Path

from nclone.errors import ReplayError
from nclone.replay.inputs import Replay, read_bytes, unsigned

VERSION = 1
LAST_VERSION = 100
"""A first word above it is a map length: version 0 has no version word."""


def read_compact(source: bytes | str | Path) -> Replay:
    """Read a `.replay` file of version 0 or 1; in version 0 success is implied.

    Raises:
        ReplayError: an unknown version, or lengths that do not fit the data.
    """
    data, name = read_bytes(source)
    first = unsigned(data, 0, name, "first word")
    if first > LAST_VERSION:
        at, success = 0, True
    elif first == VERSION:
        at = 4
    else:
        raise ReplayError(f"{name} has version {first}; known are 0 and {VERSION}.")
    map_length = unsigned(data, at, name, "map length")
    input_length = unsigned(data, at + 4, name, "input length")
    start = at + 8
    if first == VERSION:
        if start >= len(data):
            raise ReplayError(f"{name} ends at byte {len(data)}, before its success flag.")
        success = data[start] != 0
        start += 1
    if start + map_length + input_length != len(data):
        raise ReplayError(
            f"{name} states {map_length} map bytes and {input_length} inputs from byte {start}, "
            f"but has {len(data)} bytes. Is it truncated?"
        )
    inputs = data[start + map_length :]
    return Replay(inputs, data[start : start + map_length], success)


def write_compact(replay: Replay) -> bytes:
    """The bytes of a `.replay` file, version 1; an unknown success is written as completed."""
    if replay.map_data is None:
        raise ReplayError("A compact replay holds its level; give the replay map_data.")
    success = replay.success is not False
    head = struct.pack("<IIIB", VERSION, len(replay.map_data), len(replay.inputs), success)
    return head + replay.map_data + replay.inputs
