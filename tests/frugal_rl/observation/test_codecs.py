"""Every codec gives back what it was given, within the bound that it states."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from numpy.testing import assert_array_equal

from frugal_rl.errors import EncodingError
from frugal_rl.observation.codecs.bits import BitCodec
from frugal_rl.observation.codecs.codec import DenseCodec
from frugal_rl.observation.codecs.half import HalfCodec
from frugal_rl.observation.codecs.packed import PackedCodec
from frugal_rl.observation.codecs.pooled import DeltaCodec, RaggedCodec
from frugal_rl.observation.codecs.quantised import NarrowCodec
from frugal_rl.observation.integers import smallest_integer
from frugal_rl.testing.codec import check_codec

BATCHED = array_shapes(min_dims=2, max_dims=4, max_side=7)


@given(arrays(np.float32, BATCHED))
def test_dense_is_the_identity(values):
    check_codec(DenseCodec(), values, values.shape[1:])


@given(arrays(np.float32, BATCHED, elements=st.floats(-65504, 65504, width=32)))
def test_half_rounds_by_at_most_its_bound(values):
    check_codec(
        HalfCodec(), values, values.shape[1:], lambda x: np.maximum(np.abs(x) * 2**-11, 2**-25)
    )


@pytest.mark.parametrize("value", [65505.0, 1e9, np.inf, np.nan])
def test_half_refuses_what_float16_cannot_hold(value):
    with pytest.raises(EncodingError, match="Keep this field dense"):
        HalfCodec().encode(np.array([value], np.float32))


@given(arrays(np.bool_, BATCHED))
def test_bits_keep_every_flag(flags):
    check_codec(BitCodec(flags.shape[-1]), flags, flags.shape[1:])


@given(
    arrays(np.int64, BATCHED, elements=st.integers(-40_000, 70_000)),
    st.sampled_from([np.int64, np.int32, np.float64]),
)
def test_whole_numbers_survive_in_the_smallest_type(values, dtype):
    codec = NarrowCodec(-40_000, 70_000, np.dtype(dtype).name)
    check_codec(codec, values.astype(dtype), values.shape[1:])
    assert codec.encode(values).dtype == np.int32


@pytest.mark.parametrize("value", [0.5, -0.0, 300.0, -1.0, np.nan])
def test_numbers_that_a_narrow_type_would_change_are_refused(value):
    with pytest.raises(EncodingError):
        NarrowCodec(0, 255, "float32").encode(np.array([value], np.float32))


@given(st.integers(-(2**31), 2**31), st.integers(0, 2**31))
def test_the_smallest_type_holds_the_range(low, width):
    info = np.iinfo(smallest_integer(low, low + width))
    assert info.min <= min(low, 0)
    assert max(low + width, 0) <= info.max


@given(st.data(), st.sampled_from([1, 2, 4]), BATCHED)
def test_pixels_pack_and_unpack(data, bits, shape):
    elements = st.integers(0, (1 << bits) - 1)
    pixels = data.draw(arrays(np.uint8, shape, elements=elements))
    codec = PackedCodec(shape[1:], bits)
    check_codec(codec, pixels, shape[1:])
    assert_array_equal(slow_pack(pixels.reshape(shape[0], -1), bits), codec.encode(pixels))


def slow_pack(pixels, bits):
    """Pixels [M, P] packed by their definition: the first in the lowest bits."""
    each = 8 // bits
    padded = np.pad(pixels, ((0, 0), (0, -pixels.shape[1] % each)))
    groups = padded.reshape(len(pixels), -1, each).astype(int)
    return (groups << (np.arange(each) * bits)).sum(axis=-1).astype(np.uint8)


def test_a_shade_too_bright_is_refused():
    with pytest.raises(EncodingError, match="at most 3"):
        PackedCodec((4, 4)).encode(np.full((1, 4, 4), 4, np.uint8))


@given(
    arrays(
        np.uint8, st.tuples(st.integers(1, 4), st.just(4), st.just(8)), elements=st.integers(0, 3)
    )
)
def test_pooled_codecs_show_the_inner_codecs_rows(pixels):
    for kind in (RaggedCodec, DeltaCodec):
        check_codec(kind(PackedCodec((4, 8))), pixels, (4, 8))
