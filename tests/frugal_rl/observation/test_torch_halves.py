"""Torch decoders give the bits that the codecs' own decoders give."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from frugal_rl.observation.codecs.bits import BitCodec
from frugal_rl.observation.codecs.bits_torch import decode_by_shifts
from frugal_rl.observation.codecs.codec import DenseCodec
from frugal_rl.observation.codecs.half import HalfCodec
from frugal_rl.observation.codecs.packed import PackedCodec
from frugal_rl.observation.codecs.packed_torch import decode_by_table
from frugal_rl.observation.codecs.pooled import DeltaCodec, RaggedCodec
from frugal_rl.observation.codecs.quantised import NarrowCodec
from frugal_rl.observation.decoder import decode_row
from frugal_rl.testing.codec import assert_same_bits

RNG = np.random.default_rng(0)


def whole(low, high, shape, dtype):
    return RNG.integers(low, high + 1, shape).astype(dtype)


STORED = [
    (PackedCodec((5, 7), bits), whole(0, 255, (3, 2, -(-35 * bits // 8)), np.uint8))
    for bits in (1, 2, 4)
]
STORED += [
    (DenseCodec(), RNG.standard_normal((4, 3))),
    (HalfCodec(), RNG.standard_normal((4, 3)).astype(np.float16)),
    (BitCodec(11), whole(0, 255, (4, 2), np.uint8)),
    (NarrowCodec(-9, 300, "float32"), whole(-9, 300, (4, 3), np.int16)),
    (DeltaCodec(PackedCodec((4, 4))), whole(0, 255, (3, 4), np.uint8)),
    (RaggedCodec(HalfCodec()), RNG.standard_normal((4, 3)).astype(np.float16)),
]


@pytest.mark.parametrize(("codec", "stored"), STORED, ids=lambda x: type(x).__name__)
def test_a_torch_decoder_equals_the_codecs_own(codec, stored):
    decoded = decode_row(codec, torch.from_numpy(stored)).numpy()
    expected = codec.decode(stored)
    assert decoded.dtype == expected.dtype
    assert_same_bits(decoded, expected)


@pytest.mark.parametrize(("codec", "stored"), STORED[:3], ids=lambda x: type(x).__name__)
def test_pixels_unpacked_by_torch_alone_are_the_same(codec, stored):
    decoded = decode_by_table(codec, torch.from_numpy(stored)).numpy()
    np.testing.assert_array_equal(decoded, codec.decode(stored))


@pytest.mark.parametrize("length", [1, 8, 11, 16])
def test_flags_unpacked_by_torch_alone_are_the_same(length):
    codec, stored = BitCodec(length), whole(0, 255, (3, 2, -(-length // 8)), np.uint8)
    decoded = decode_by_shifts(codec, torch.from_numpy(stored)).numpy()
    assert_same_bits(decoded, codec.decode(stored))
