"""`quantised`: whole numbers in the smallest type that holds them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from frugal_rl.errors import EncodingError
from frugal_rl.observation.codecs.codec import Codec
from frugal_rl.observation.integers import smallest_integer


@dataclass(frozen=True)
class NarrowCodec(Codec):
    """Whole numbers in [low, high], of whatever type, in the smallest integer type. Lossless."""

    low: float
    high: float
    values: str = "int64"
    """Type of the field: what is decoded."""
    name: ClassVar[str] = "quantised"
    twin: ClassVar[str] = "frugal_rl.observation.codecs.quantised_torch:decode"

    def stored(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[tuple[int, ...], Any]:
        """The same shape in the smallest type."""
        return shape, smallest_integer(self.low, self.high)

    def encode(self, values: np.ndarray) -> np.ndarray:
        """Whole numbers [...]; refuses fractions, negative zeros and numbers out of range."""
        dtype = smallest_integer(self.low, self.high)
        if values.size and not self.low <= values.min() <= values.max() <= self.high:
            raise EncodingError(
                f"Values from {values.min()} to {values.max()} are outside [{self.low:g}, "
                f"{self.high:g}]. Widen the range of this field, or keep it dense."
            )
        stored = values.astype(dtype)
        exact = stored.astype(values.dtype)
        if values.dtype.kind == "f" and not (
            np.array_equal(exact, values) and np.array_equal(np.signbit(exact), np.signbit(values))
        ):
            raise EncodingError(
                "A field that is stored as whole numbers has fractions or negative zeros. "
                "Keep it dense, or give it a grid."
            )
        return stored

    def decode(self, stored: np.ndarray) -> np.ndarray:
        """The same numbers in the field's type."""
        return stored.astype(self.values)
