"""The torch half of `half`: equal to the codec's own `decode` bit for bit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

if TYPE_CHECKING:
    from frugal_rl.observation.codecs.half import HalfCodec


def decode(codec: HalfCodec, stored: Tensor) -> Tensor:
    """[...] float16 -> [...] float32."""
    return stored.float()
