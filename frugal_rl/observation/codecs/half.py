"""`half`: floats in 16 bits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from frugal_rl.errors import EncodingError
from frugal_rl.observation.choices import Label
from frugal_rl.observation.codecs.codec import Codec

HALF_MAX = 65504.0
"""The largest finite float16 (IEEE 754 binary16)."""


@dataclass(frozen=True)
class HalfCodec(Codec):
    """IEEE float16: relative error at most 2^-11 (2^-25 absolute below 2^-14)."""

    name: ClassVar[str] = "half"
    twin: ClassVar[str] = "frugal_rl.observation.codecs.half_torch:decode"

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
