"""Torch twins of the toy environment's derived fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor


def picture(sources: Mapping[str, Tensor], tables: Any) -> Tensor:
    """`walls` [B, 5, 5] and `position` [B, 2] -> [B, 5, 5] uint8: walls 1, the walker 2."""
    drawn = sources["walls"].clone()
    x, y = sources["position"].long().unbind(-1)
    drawn[torch.arange(len(drawn), device=drawn.device), y, x] = 2
    return drawn


def turns(sources: Mapping[str, Tensor], tables: Any) -> Tensor:
    """`moves` [B, S, 1] (action + 1, zero pads) -> [B, 4] int16: how often each was taken."""
    moves = sources["moves"]
    actions = torch.arange(1, 5, dtype=moves.dtype, device=moves.device)
    return (moves == actions).sum(dim=-2).to(torch.int16)
