"""`bits`: flags, eight to the byte."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from frugal_rl.observation.codecs.codec import Codec


@dataclass(frozen=True)
class BitCodec(Codec):
    """Eight flags to the byte, over the last axis. Lossless."""

    length: int
    name: ClassVar[str] = "bits"
    twin: ClassVar[str] = "frugal_rl.observation.codecs.bits_torch:decode"

    def stored(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[tuple[int, ...], Any]:
        """Flags [..., length] become [..., ceil(length / 8)] uint8."""
        return (*shape[:-1], -(-self.length // 8)), np.dtype(np.uint8)

    def encode(self, values: np.ndarray) -> np.ndarray:
        """[..., length] bool or 0/1 -> [..., ceil(length / 8)] uint8."""
        return np.packbits(values.astype(bool, copy=False), axis=-1)

    def decode(self, stored: np.ndarray) -> np.ndarray:
        """[..., ceil(length / 8)] uint8 -> [..., length] int8."""
        return np.unpackbits(stored, axis=-1, count=self.length).view(np.int8)
