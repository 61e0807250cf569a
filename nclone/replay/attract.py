"""Attract files, which the game records: a level and a demo (specification, section 3.2)."""

from __future__ import annotations

import struct
from pathlib import Path

from nclone.errors import ReplayError
from nclone.replay.inputs import Replay, read_bytes, unsigned

HEADER_BYTES = 8
_DEMO = struct.Struct("<BIIIIIIB4s")
"""0, section length, 1, frames, level id, game mode, 0, 1, four bytes 0xff."""


def read_demo(data: bytes, start: int, end: int, name: str) -> Replay:
    """The demo section data[start:end]: its header, then one input byte per frame."""
    if end - start < _DEMO.size or end > len(data):
        raise ReplayError(
            f"The demo of {name} at byte {start} needs {max(end - start, _DEMO.size)} bytes, but "
            f"the data end at byte {len(data)}. Is it truncated?"
        )
    _, length, _, frames, level_id, mode, *_ = _DEMO.unpack_from(data, start)
    if length != end - start or frames != length - _DEMO.size:
        raise ReplayError(
            f"The demo of {name} at byte {start} states {length} bytes and {frames} frames; a "
            f"section of {end - start} bytes has {end - start - _DEMO.size} frames."
        )
    return Replay(data[start + _DEMO.size : end], level_id=level_id, game_mode=mode)


def demo_bytes(replay: Replay) -> bytes:
    """A demo section."""
    frames = len(replay.inputs)
    length = _DEMO.size + frames
    return (
        _DEMO.pack(
            0, length, 1, frames, replay.level_id, replay.game_mode, 0, 1, b"\xff\xff\xff\xff"
        )
        + replay.inputs
    )


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
    demo = demo_bytes(replay)
    lengths = struct.pack("<II", len(replay.map_data) - HEADER_BYTES, len(demo))
    return lengths + replay.map_data[HEADER_BYTES:] + demo
