"""Representations of one field: small classes with an `encode` and a `decode`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from frugal_rl.errors import EncodingError
from frugal_rl.observation.choices import Label

HALF_MAX = 65504.0
"""The largest finite float16 (IEEE 754 binary16)."""


@dataclass(frozen=True)
class Codec(ABC):
    """How one field is represented in a stored row.

    Leading axes are batch axes: `encode` maps [..., *shape] to [..., *stored shape]. Zeros are
    stored as zero bytes, so that the zeros before an episode's first row decode to zeros.

    With a `window` other than 1 the decoder needs past rows: it maps [..., k, *stored shape] to
    [..., *shape], and the environment itself gives the newest stored row, as `<field>_<codec>`.
    `pool` says how the rollout keeps rows whose stored length varies ("ragged" or "delta").
    `twin` may name the torch decoder as "package.module:function", called with codec and tensor.
    """

    name: ClassVar[str]
    window: ClassVar[int] = 1
    pool: ClassVar[str] = ""
    twin: ClassVar[str] = ""

    @property
    def label(self) -> Label:
        """What the codec costs."""
        return Label.lossless

    @abstractmethod
    def stored(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[tuple[int, ...], Any]:
        """Shape and dtype of the stored row of a field with this shape and dtype."""

    @abstractmethod
    def encode(self, values: np.ndarray) -> np.ndarray:
        """Values to their stored form; raises `EncodingError` for what it cannot hold."""

    @abstractmethod
    def decode(self, stored: np.ndarray) -> np.ndarray:
        """The stored form back to values."""

    def encode_into(self, values: np.ndarray, out: np.ndarray) -> None:
        """As `encode`, written into `out`."""
        out[...] = self.encode(values)

    def decode_into(self, stored: np.ndarray, out: np.ndarray) -> None:
        """As `decode`, written into `out`."""
        out[...] = self.decode(stored)

    def bounds(
        self, low: float, high: float, dtype: np.dtype[Any], stored: np.dtype[Any]
    ) -> tuple[float, float]:
        """The range of stored values: the field's own for numbers kept as they are."""
        if np.issubdtype(stored, np.integer) and stored != dtype:
            return float(np.iinfo(stored).min), float(np.iinfo(stored).max)
        return low, high


@dataclass(frozen=True)
class DenseCodec(Codec):
    """The dtype and shape that the space declares. Lossless."""

    name: ClassVar[str] = "dense"

    def stored(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[tuple[int, ...], Any]:
        """The same shape and dtype."""
        return shape, dtype

    def encode(self, values: np.ndarray) -> np.ndarray:
        """Unchanged."""
        return values

    def decode(self, stored: np.ndarray) -> np.ndarray:
        """Unchanged."""
        return stored


@dataclass(frozen=True)
class HalfCodec(Codec):
    """IEEE float16: relative error at most 2^-11 (2^-25 absolute below 2^-14)."""

    name: ClassVar[str] = "half"

    @property
    def label(self) -> Label:
        """Rounds."""
        return Label.precision

    def stored(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[tuple[int, ...], Any]:
        """The same shape in float16."""
        return shape, np.dtype(np.float16)

    def encode(self, values: np.ndarray) -> np.ndarray:
        """[...] float32 -> [...] float16; refuses magnitudes above 65,504."""
        if values.size and not np.abs(values).max() <= HALF_MAX:
            raise EncodingError(
                f"A value of {float(np.abs(values).max()):g} does not fit float16 "
                f"(largest {HALF_MAX:g}). Keep this field dense, or scale it."
            )
        return values.astype(np.float16)

    def bounds(
        self, low: float, high: float, dtype: np.dtype[Any], stored: np.dtype[Any]
    ) -> tuple[float, float]:
        """The field's own range, as far as float16 reaches; `encode` refuses what lies beyond."""
        return max(low, -HALF_MAX), min(high, HALF_MAX)

    def decode(self, stored: np.ndarray) -> np.ndarray:
        """[...] float16 -> [...] float32."""
        return stored.astype(np.float32)


@dataclass(frozen=True)
class BitCodec(Codec):
    """Eight flags to the byte, over the last axis. Lossless."""

    length: int
    name: ClassVar[str] = "bits"

    def stored(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[tuple[int, ...], Any]:
        """Flags [..., length] become [..., ceil(length / 8)] uint8."""
        return (*shape[:-1], -(-self.length // 8)), np.dtype(np.uint8)

    def encode(self, values: np.ndarray) -> np.ndarray:
        """[..., length] bool or 0/1 -> [..., ceil(length / 8)] uint8."""
        return np.packbits(values.astype(bool, copy=False), axis=-1)

    def decode(self, stored: np.ndarray) -> np.ndarray:
        """[..., ceil(length / 8)] uint8 -> [..., length] int8."""
        return np.unpackbits(stored, axis=-1, count=self.length).view(np.int8)
