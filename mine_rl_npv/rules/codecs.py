"""Further representations of the pit's two planes: a stamp per cell, mined bits, column depths."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from frugal_rl.errors import EncodingError
from frugal_rl.observation.choices import Label
from frugal_rl.observation.codecs.bits import BitCodec
from frugal_rl.observation.codecs.codec import Codec


@dataclass(frozen=True)
class StampCodec(Codec):
    """Day + 1 of each mined cell, 0 elsewhere, in 16 bits. Lossless for days below 65,535."""

    name: ClassVar[str] = "stamp"

    def stored(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[tuple[int, ...], Any]:
        """(2, nx, ny, nz) -> (nx, ny, nz) uint16."""
        return shape[1:], np.dtype(np.uint16)

    def encode(self, values: np.ndarray) -> np.ndarray:
        """[..., 2, nx, ny, nz] float32 -> [..., nx, ny, nz] uint16."""
        mined, day = values[..., 0, :, :, :], values[..., 1, :, :, :]
        if day.size and day.max() >= np.iinfo(np.uint16).max:
            raise EncodingError(
                f"Day {day.max():g} does not fit a 16-bit stamp; use env.fields.pit=derived."
            )
        return np.where(mined > 0, day + 1, 0).astype(np.uint16)

    def decode(self, stored: np.ndarray) -> np.ndarray:
        """[..., nx, ny, nz] uint16 -> [..., 2, nx, ny, nz] float32."""
        mined = (stored > 0).astype(np.float32)
        return np.stack((mined, np.where(stored > 0, stored - np.float32(1), 0)), axis=-4).astype(
            np.float32
        )


@dataclass(frozen=True)
class MinedBitsCodec(Codec):
    """One bit per cell, mined or not; the extraction day is dropped (decoded as 0)."""

    cells: int
    shape: tuple[int, int, int]
    name: ClassVar[str] = "bits"
    label: ClassVar[Label] = Label.precision

    def stored(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[tuple[int, ...], Any]:
        """(2, nx, ny, nz) -> (ceil(cells / 8),) uint8."""
        return (-(-self.cells // 8),), np.dtype(np.uint8)

    def encode(self, values: np.ndarray) -> np.ndarray:
        """[..., 2, nx, ny, nz] float32 -> [..., bytes] uint8."""
        mined = values[..., 0, :, :, :]
        return BitCodec(self.cells).encode(mined.reshape(*mined.shape[:-3], self.cells) > 0)

    def decode(self, stored: np.ndarray) -> np.ndarray:
        """[..., bytes] uint8 -> [..., 2, nx, ny, nz] float32."""
        mined = BitCodec(self.cells).decode(stored).astype(np.float32)
        mined = mined.reshape(*stored.shape[:-1], *self.shape)
        return np.stack((mined, np.zeros_like(mined)), axis=-4)


@dataclass(frozen=True)
class SpanCodec(Codec):
    """Per column the uppermost mined level and the count; the extraction day is dropped.

    Exact for the mined flag where the mined cells of a column touch one another; refuses others.
    """

    name: ClassVar[str] = "depth"
    label: ClassVar[Label] = Label.precision
    levels: int = 0

    def stored(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[tuple[int, ...], Any]:
        """(2, nx, ny, nz) -> (nx, ny, 2) uint8."""
        if shape[-1] > 255:
            raise EncodingError(f"{shape[-1]} levels do not fit 8 bits; use env.fields.pit=bits.")
        return (*shape[1:3], 2), np.dtype(np.uint8)

    def encode(self, values: np.ndarray) -> np.ndarray:
        """[..., 2, nx, ny, nz] float32 -> [..., nx, ny, 2] uint8."""
        mined = values[..., 0, :, :, :] > 0
        count = mined.sum(axis=-1)
        top = np.where(count > 0, mined.shape[-1] - mined[..., ::-1].argmax(axis=-1), 0)
        spans = np.stack((top, count), axis=-1).astype(np.uint8)
        if not np.array_equal(self._mined(spans), mined):
            raise EncodingError(
                "A column has been mined with gaps; use env.fields.pit=bits or derived."
            )
        return spans

    def decode(self, stored: np.ndarray) -> np.ndarray:
        """[..., nx, ny, 2] uint8 -> [..., 2, nx, ny, nz] float32."""
        mined = self._mined(stored).astype(np.float32)
        return np.stack((mined, np.zeros_like(mined)), axis=-4)

    def _mined(self, spans: np.ndarray) -> np.ndarray:
        """[..., nx, ny, 2] -> [..., nx, ny, nz] bool: below the top, and not below what is left."""
        top, count = spans[..., :1].astype(np.int16), spans[..., 1:].astype(np.int16)
        level = np.arange(self.levels)
        return (level < top) & (level >= top - count)
