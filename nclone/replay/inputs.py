"""Input bytes, one per frame: bit 0 jump, 1 right, 2 left, 3 reset (specification, section 3.1)."""

from __future__ import annotations

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
