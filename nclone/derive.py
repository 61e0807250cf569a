"""Torch twins of the derived fields, for decoding where the network computes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from nclone.geometry import COLUMNS, ROWS, TILE_TYPES
from nclone.spec import SOLID, SOLID_MAX, WINDOW


@lru_cache(maxsize=8)
def _solid(device: torch.device) -> Tensor:
    """[256, 2, 2] uint8: solid pixels per tile type and sub-cell; unknown types are empty."""
    table = torch.zeros((256, 2, 2), dtype=torch.uint8)
    table[:TILE_TYPES] = torch.from_numpy(SOLID.copy())
    return table.to(device)


def tile_window(fields: Mapping[str, Tensor], tables: Any) -> Tensor:
    """`tiles` [B, 25, 44] and `cell` [B, 2] uint8 -> [B, 15, 15] uint8; see `spec.tile_window`."""
    tiles, cell = fields["tiles"], fields["cell"].long()
    reach = torch.arange(-(WINDOW // 2), WINDOW // 2 + 1, device=cell.device)
    columns, rows = cell[:, :1] + reach, cell[:, 1:] + reach  # [B, WINDOW]
    inside_x, inside_y = (columns >= 0) & (columns < 2 * COLUMNS), (rows >= 0) & (rows < 2 * ROWS)
    columns, rows = columns.clamp(0, 2 * COLUMNS - 1), rows.clamp(0, 2 * ROWS - 1)
    place = (rows // 2)[:, :, None] * COLUMNS + (columns // 2)[:, None, :]
    tile = tiles.flatten(1).gather(1, place.flatten(1)).view(place.shape).long()
    corner = (rows % 2)[:, :, None] * 2 + (columns % 2)[:, None, :]
    solid = _solid(cell.device).view(-1)[tile * 4 + corner]
    return solid.masked_fill(~(inside_y[:, :, None] & inside_x[:, None, :]), SOLID_MAX)
