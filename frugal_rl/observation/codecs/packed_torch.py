"""The torch half of `packed`: equal to the codec's own `decode` bit for bit."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from frugal_rl.observation.codecs.packed import PackedCodec


def decode(codec: PackedCodec, stored: Tensor) -> Tensor:
    """Packed pixels [..., bytes] uint8 -> [..., *shape] uint8, by a table of 256 entries.

    On the CPU by the compiled loop, 30 times as fast: 5 instead of 161 ms for 1,024 frames.
    """
    if stored.device.type == "cpu":
        return torch.from_numpy(codec.decode(stored.numpy()))
    return decode_by_table(codec, stored)


def decode_by_table(codec: PackedCodec, stored: Tensor) -> Tensor:
    """As `decode`, in torch operations alone."""
    each = 8 // codec.bits
    byte = torch.arange(256, dtype=torch.int32, device=stored.device)
    shifts = codec.bits * torch.arange(each, dtype=torch.int32, device=stored.device)
    table = ((byte[:, None] >> shifts) & ((1 << codec.bits) - 1)).to(torch.uint8)
    pixels = table[stored.int()].flatten(-2)[..., : math.prod(codec.shape)]
    return pixels.reshape(*stored.shape[:-1], *codec.shape)
