"""Replays as the game downloads them: ids and a zlib stream (specification, section 3.3)."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from pathlib import Path

from nclone.errors import ReplayError
from nclone.replay.inputs import (
    MAX_FRAMES,
    Replay,
    read_bytes,
    read_demo,
    unsigned,
    write_demo,
)

HEADER_BYTES = 16
LEVEL_SEPARATOR = 0x26
"""Separates the levels of an episode where the stream holds bare input bytes."""


@dataclass(frozen=True)
class Download:
    """A downloaded replay: one level, or the levels of an episode."""

    replay_id: int
    level_id: int
    user_id: int
    levels: tuple[Replay, ...]


def read_downloaded(source: bytes | str | Path) -> Download:
    """Read a downloaded replay; its stream holds demo sections, or bare input bytes.

    Raises:
        ReplayError: the header or the stream is damaged.
    """
    data, name = read_bytes(source)
    unsigned(data, HEADER_BYTES - 4, name, "user id")
    _, replay_id, level_id, user_id = struct.unpack_from("<IIII", data)
    stream = _inflate(data[HEADER_BYTES:], name)
    return Download(replay_id, level_id, user_id, _read_levels(stream, name))


def write_downloaded(download: Download) -> bytes:
    """The bytes of a downloaded replay, with a demo section per level."""
    sections = b"".join(write_demo(level) for level in download.levels)
    head = struct.pack("<IIII", 0, download.replay_id, download.level_id, download.user_id)
    return head + zlib.compress(sections)


def _inflate(packed: bytes, name: str) -> bytes:
    decoder = zlib.decompressobj()
    try:
        stream = decoder.decompress(packed, MAX_FRAMES)
    except zlib.error as error:
        raise ReplayError(
            f"The zlib stream of {name} at byte {HEADER_BYTES} is damaged: {error}."
        ) from error
    if decoder.unconsumed_tail:
        raise ReplayError(f"The zlib stream of {name} holds more than {MAX_FRAMES} bytes.")
    if not decoder.eof:
        raise ReplayError(f"The zlib stream of {name} is not complete. Is it truncated?")
    return stream


def _read_levels(stream: bytes, name: str) -> tuple[Replay, ...]:
    starts_as_demo = len(stream) >= 5 and stream[0] == 0
    if not (starts_as_demo and 30 <= int.from_bytes(stream[1:5], "little") <= len(stream)):
        bare = stream.split(bytes([LEVEL_SEPARATOR]))
        return tuple(Replay(part) for part in bare)
    levels = []
    at = 0
    while at < len(stream):
        end = at + unsigned(stream, at + 1, f"the stream of {name}", "demo length")
        levels.append(read_demo(stream, at, end, f"the stream of {name}"))
        at = end
    return tuple(levels)
