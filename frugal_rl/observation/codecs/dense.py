"""`dense`: as the space declares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from frugal_rl.observation.codecs.codec import Codec


@dataclass(frozen=True)
class DenseCodec(Codec):
    """The dtype and shape that the space declares. Lossless."""

    name: ClassVar[str] = "dense"
    twin: ClassVar[str] = "frugal_rl.observation.codecs.dense_torch:decode"

    def stored(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[tuple[int, ...], Any]:
        """The same shape and dtype."""
        return shape, dtype

    def encode(self, values: np.ndarray) -> np.ndarray:
        """Unchanged."""
        return values

    def decode(self, stored: np.ndarray) -> np.ndarray:
        """Unchanged."""
        return stored
