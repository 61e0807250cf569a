"""Input bytes, one per frame: bit 0 jump, 1 right, 2 left, 3 reset (specification, section 3.1).

A demo section is a header and such bytes; attract files and downloads hold some (section 3.2).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from frugal_rl.errors import DataError
from frugal_rl.untrusted import files as untrusted
from nclone.errors import ReplayError

JUMP, RIGHT, LEFT, RESET = 1, 2, 4, 8
MAX_FRAMES = 1 << 24
"""More frames (3 days) than any recording; above it a file is refused."""
MOST_BYTES = MAX_FRAMES + (1 << 20)
"""A recording and its level."""
_BYTE_OF_ACTION = np.array([0, LEFT, RIGHT, JUMP, JUMP | LEFT, JUMP | RIGHT], np.uint8)

_DEMO = struct.Struct("<BIIIIIIB4s")
"""Of a demo section: 0, section length, 1, frames, level id, game mode, 0, 1, four bytes 0xff."""


@dataclass(frozen=True)
class Replay:
    """Inputs of one level, and what the file says about them."""

    inputs: bytes
    """One byte per frame, as stored."""
    map_data: bytes | None = None
    """Level bytes, if the file holds them."""
    success: bool | None = None
    """Whether the level was completed, if the file says so."""
    level_id: int = 0
    game_mode: int = 0

    @property
    def actions(self) -> NDArray[np.uint8]:
        """[T] actions 0..5 up to the first reset."""
        return actions_of_inputs(self.inputs)

    @property
    def hor(self) -> NDArray[np.int8]:
        """[T] horizontal input -1, 0, 1."""
        return np.array([0, -1, 1, 0, -1, 1], np.int8)[self.actions]

    @property
    def jump(self) -> NDArray[np.int8]:
        """[T] jump input 0, 1."""
        return (self.actions > 2).astype(np.int8)


def actions_of_inputs(inputs: bytes) -> NDArray[np.uint8]:
    """Input bytes -> [T] actions 0..5, cut before a reset; left wins over right."""
    held = np.frombuffer(inputs, np.uint8)
    resets = np.nonzero(held & RESET)[0]
    held = held[: resets[0]] if len(resets) else held
    side = np.where(held & LEFT, 1, np.where(held & RIGHT, 2, 0))
    return (side + 3 * (held & JUMP)).astype(np.uint8)


def inputs_of_actions(actions: ArrayLike) -> bytes:
    """[T] actions 0..5 -> input bytes."""
    played = np.asarray(actions)
    if played.size and not 0 <= played.min() <= played.max() <= 5:
        raise ReplayError(f"Actions reach from {played.min()} to {played.max()}; use 0..5.")
    return _BYTE_OF_ACTION[played.astype(np.int64)].tobytes()


def read_bytes(source: bytes | str | Path) -> tuple[bytes, str]:
    """The bytes of a file or of themselves, and how a message names them."""
    if isinstance(source, bytes | bytearray | memoryview):
        return bytes(source), "the replay"
    try:
        return untrusted.read_bytes(Path(source), MOST_BYTES), str(source)
    except DataError as error:
        raise ReplayError(f"The replay {error}") from error


def unsigned(data: bytes, at: int, name: str, what: str) -> int:
    """Little-endian u32 at an offset."""
    if at + 4 > len(data):
        raise ReplayError(
            f"{name} ends at byte {len(data)}, before its {what} at byte {at}. Is it truncated?"
        )
    return int.from_bytes(data[at : at + 4], "little")


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


def write_demo(replay: Replay) -> bytes:
    """A demo section."""
    frames = len(replay.inputs)
    length = _DEMO.size + frames
    return (
        _DEMO.pack(
            0, length, 1, frames, replay.level_id, replay.game_mode, 0, 1, b"\xff\xff\xff\xff"
        )
        + replay.inputs
    )
