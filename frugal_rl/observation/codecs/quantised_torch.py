"""The torch half of `quantised`: equal to the codec's own `decode` bit for bit."""

from __future__ import annotations

import torch
from torch import Tensor

from frugal_rl.observation.codecs.quantised import NarrowCodec


def decode(codec: NarrowCodec, stored: Tensor) -> Tensor:
    """Whole numbers in the field's type."""
    values: torch.dtype = getattr(torch, codec.values)
    return stored.to(values)
