"""Numbers in a cartridge's memory: where they lie and how they are written."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np


class Status(Enum):
    """How sure an address is."""

    verified = "verified"
    documented = "documented"
    guess = "guess"
    unknown = "unknown"


class Kind(Enum):
    """How a number is written in memory."""

    binary = "binary"
    bcd = "bcd"
    """Two decimal digits per byte, the highest first."""
    digits = "digits"
    """One decimal digit per byte (often a tile's number), the highest first."""


@dataclass(frozen=True)
class Address:
    """Where a value lies and how it reads."""

    addr: int | None
    size: int = 1
    kind: Kind = Kind.binary
    max: int = 255
    status: Status = Status.unknown
    source: str = ""
    over: tuple[int, ...] = ()
    match_over: tuple[int, ...] = ()
    signed: bool = False
    big: bool = False
    """The highest byte comes first; decimal numbers always do that."""
    zero: int = 0
    """Digits: the byte that shows 0. Bytes that show no digit, such as blanks, count as 0."""

    def value(self, data: list[int]) -> int:
        """The number in `size` bytes."""
        return int(self.numbers(np.array([data], np.uint8))[0])

    def numbers(self, data: np.ndarray) -> np.ndarray:
        """Bytes (N, size) uint8 -> [N] float64."""
        if self.kind is Kind.bcd:
            pairs = np.stack([data >> 4, data & 15], axis=-1)
            return _decimal(np.minimum(pairs.reshape(len(data), -1), 9))
        if self.kind is Kind.digits:
            digits = data - np.uint8(self.zero)
            return _decimal(np.where(digits > 9, 0, digits))
        data = data[:, ::-1] if self.big else data
        found: np.ndarray = data @ 256.0 ** np.arange(data.shape[1])
        if self.signed:
            found = np.where(found >= 256.0**self.size / 2, found - 256.0**self.size, found)
        return found


def _decimal(digits: np.ndarray) -> np.ndarray:
    """Digits (N, D), the highest first -> [N] float64."""
    found: np.ndarray = digits @ 10.0 ** np.arange(digits.shape[1])[::-1]
    return found
