"""`nibbles`: numbers below 16, two to the byte."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from frugal_rl.observation.codecs.codec import Codec


@dataclass(frozen=True)
class NibbleCodec(Codec):
    """An even number of numbers in [0, 15], the first in the upper half of its byte. Lossless."""

    name: ClassVar[str] = "nibbles"
    twin: ClassVar[str] = "lantern.codec_torch:decode"

    def stored(self, shape: tuple[int, ...], dtype: Any) -> tuple[tuple[int, ...], Any]:
        """[..., n] becomes [..., n / 2] uint8."""
        return (*shape[:-1], shape[-1] // 2), np.dtype(np.uint8)

    def encode(self, values: np.ndarray) -> np.ndarray:
        """[..., n] -> [..., n / 2] uint8."""
        return (values[..., ::2] << 4 | values[..., 1::2]).astype(np.uint8)

    def decode(self, stored: np.ndarray) -> np.ndarray:
        """[..., n / 2] uint8 -> [..., n] uint8."""
        return np.stack((stored >> 4, stored & 15), axis=-1).reshape(*stored.shape[:-1], -1)
