"""Torch twins: packed frames and feature lookups on the network's device."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from fighting.machine.frames import UNPACKED
from fighting.signals import EVERY, SOURCE, TABLE


@lru_cache(maxsize=8)
def _constants(device: torch.device) -> tuple[Tensor, ...]:
    arrays = (UNPACKED, SOURCE, EVERY, TABLE)
    return tuple(torch.from_numpy(a.copy()).to(device) for a in arrays)


def unpack(codec: Any, stored: Tensor) -> Tensor:
    """[..., W / 4] uint8 -> [..., W] uint8: 0, 85, 170 or 255 per pixel."""
    shades = _constants(stored.device)[0]
    # Four bytes are one word: a gather of words instead of a gather of rows of four.
    words = shades.view(torch.int32).reshape(-1)
    return words[stored.int()].unsqueeze(-1).view(torch.uint8).flatten(-2)


def features(fields: Mapping[str, Tensor], tables: Any) -> Tensor:
    """`signals` [B, 24] uint8 -> [B, 48] float32."""
    _, source, every, table = _constants(fields["signals"].device)
    return table[every, fields["signals"][..., source].long()]
