"""The contract of codecs: what is decoded is what was encoded, within the bound that is stated."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.testing import assert_array_equal

from frugal_rl.observation.choices import Label

if TYPE_CHECKING:
    from frugal_rl.observation.codecs.codec import Codec


def check_codec(
    codec: Codec,
    values: np.ndarray,
    shape: tuple[int, ...],
    error: Callable[[np.ndarray], np.ndarray] | None = None,
) -> None:
    """Assert that a codec keeps its contract on `values` [..., *shape].

    Args:
        codec: with `window` 1 (a codec that needs past rows is checked as a history).
        values: to encode.
        shape: of one value; the axes before are batch axes.
        error: the largest absolute error that a lossy codec states for each value.
    """
    batch = values.shape[: values.ndim - len(shape)]
    stored_shape, stored_dtype = codec.stored(shape, values.dtype)
    stored = codec.encode(values)
    assert stored.shape == (*batch, *stored_shape)
    assert stored.dtype == stored_dtype
    out = np.full_like(stored, 1)
    codec.encode_into(values, out)
    assert_array_equal(out, stored)
    decoded = codec.decode(stored)
    assert decoded.shape == values.shape
    if codec.label is Label.lossless:
        assert_same_bits(decoded.astype(values.dtype), values)
    else:
        assert error is not None, "a lossy codec states its error bound"
        gap = np.abs(decoded.astype(np.float64) - values.astype(np.float64))
        assert (gap <= error(values)).all(), gap.max()
    assert_same_bits(codec.encode(decoded.astype(values.dtype)), stored)
    zeros = np.zeros(shape, values.dtype)
    assert not codec.encode(zeros).view(np.uint8).any(), "zeros are stored as zero bytes"


def assert_same_bits(a: np.ndarray, b: np.ndarray) -> None:
    """Equal shapes, dtypes and bytes, signed zeros and NaNs included."""
    assert a.dtype == b.dtype
    assert a.shape == b.shape
    kind: Any = np.dtype(f"V{a.itemsize}") if a.itemsize not in (1, 2, 4, 8) else f"u{a.itemsize}"
    assert_array_equal(np.ascontiguousarray(a).view(kind), np.ascontiguousarray(b).view(kind))
