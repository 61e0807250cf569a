"""The torch half of `bits`: equal to the codec's own `decode` bit for bit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from frugal_rl.observation.codecs.bits import BitCodec


def decode(codec: BitCodec, stored: Tensor) -> Tensor:
    """[..., ceil(length / 8)] uint8 -> [..., length] int8.

    On the CPU by NumPy's one call instead of seven of torch, which small rows consist of.
    """
    if stored.device.type == "cpu" and not torch.compiler.is_compiling():
        return torch.from_numpy(codec.decode(stored.numpy()))
    return decode_by_shifts(codec, stored)


def decode_by_shifts(codec: BitCodec, stored: Tensor) -> Tensor:
    """As `decode`, in torch operations alone."""
    shifts = torch.arange(7, -1, -1, dtype=torch.uint8, device=stored.device)
    bits = (stored.unsqueeze(-1) >> shifts) & 1
    return bits.flatten(-2)[..., : codec.length].view(torch.int8)
