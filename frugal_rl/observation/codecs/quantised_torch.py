"""The torch half of `quantised`: equal to the codec's own `decode` bit for bit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from frugal_rl.observation.codecs.quantised import NarrowCodec


def decode(codec: NarrowCodec, stored: Tensor) -> Tensor:
    """Whole numbers in the field's type."""
    values: torch.dtype = getattr(torch, codec.values)
    return stored.to(values)
