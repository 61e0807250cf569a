"""Attract files, which the game records: a level and a demo (specification, section 3.2)."""

from __future__ import annotations

import struct
from pathlib import Path

from nclone.errors import ReplayError
from nclone.replay.inputs import Replay, read_bytes, read_demo, unsigned, write_demo

HEADER_BYTES = 8


def read_attract(source: bytes | str | Path) -> Replay:
    """Read an attract file.

    Raises:
        ReplayError: a length does not fit the data.
    """
    data, name = read_bytes(source)
    map_end = HEADER_BYTES + unsigned(data, 0, name, "map length")
    demo_length = unsigned(data, 4, name, "demo length")
    if map_end + demo_length != len(data):
        raise ReplayError(
            f"{name} states a map up to byte {map_end} and a demo of {demo_length} bytes, but has "
            f"{len(data)} bytes. Is it an attract file?"
        )
    demo = read_demo(data, map_end, len(data), name)
    return Replay(demo.inputs, data[:map_end], None, demo.level_id, demo.game_mode)


def write_attract(replay: Replay) -> bytes:
    """The bytes of an attract file; the first 8 bytes of the level become the two lengths."""
    if replay.map_data is None:
        raise ReplayError("An attract file holds its level; give the replay map_data.")
    demo = write_demo(replay)
    lengths = struct.pack("<II", len(replay.map_data) - HEADER_BYTES, len(demo))
    return lengths + replay.map_data[HEADER_BYTES:] + demo
