"""Torch twins of the derived fields, for decoding where the network computes.

Voxel planes are scattered on the device. Depths, masks and column features are a few kilobytes
per sample and run through the same compiled kernels as in the environment, so they agree to the
bit on every device.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mine_rl_npv.rules.features import VIEW
from mine_rl_npv.rules.steps import NOWHERE
from mine_rl_npv.rules.volumes import column_depths, column_features, open_columns
from mine_rl_npv.spec import TABLE


def _host(values: Tensor) -> np.ndarray:
    return np.ascontiguousarray(values.detach().cpu().numpy())


def _ids(fields: Mapping[str, Tensor]) -> np.ndarray:
    return _host(fields[f"{TABLE}_id"]).reshape(-1).astype(np.int64)


def _offsets(tables: Any, name: str) -> np.ndarray:
    return tables[TABLE].table.offsets(name)


def _items(tables: Any, name: str) -> np.ndarray:
    return tables[TABLE].table[name]


def depth(fields: Mapping[str, Tensor], tables: Any) -> Tensor:
    """`entry` [B, S + 1] int32, `day` uint16 -> [B, C] uint8; see `volumes.column_depths`."""
    entry, day = _host(fields["entry"]), _host(fields["day"])
    out = np.empty((len(entry), _items(tables, "column_first").shape[1] - 1), np.uint8)
    column_depths(entry, day, _ids(fields), _items(tables, "owner"), _offsets(tables, "owner"), out)
    return torch.from_numpy(out).to(fields["entry"].device)


def pit(fields: Mapping[str, Tensor], tables: Any) -> Tensor:
    """`entry` [B, S + 1] int32, `day` uint16 -> [B, 2, nx, ny, nz] float32."""
    entry, mine = fields["entry"].long(), fields[f"{TABLE}_id"].reshape(-1)
    day = fields["day"].to(torch.int32)
    grid = _items(tables, "geology").shape[2:]
    cells = int(np.prod(grid))
    offsets = torch.as_tensor(_offsets(tables, "cell")).to(entry.device)
    real = (entry > 0) & (day != NOWHERE)
    sample, step = real.nonzero(as_tuple=True)
    cell = tables[TABLE].values("cell", entry.device)
    at = cell[offsets[mine[sample]] + entry[sample, step] - 1].long() + sample * (2 * cells)
    planes = torch.zeros(len(entry) * 2 * cells, dtype=torch.float32, device=entry.device)
    planes[at] = 1.0
    planes[at + cells] = day[sample, step].float()
    return planes.view(-1, 2, *grid)


def _masks(depths: np.ndarray, mine: np.ndarray, tables: Any, per_column: int) -> np.ndarray:
    mask = np.zeros((len(depths), depths.shape[1] * per_column), np.bool_)
    open_columns(
        depths,
        mine,
        _items(tables, "column_first"),
        _items(tables, "owner"),
        _offsets(tables, "owner"),
        _items(tables, "pointer"),
        _offsets(tables, "pointer"),
        _items(tables, "index"),
        _offsets(tables, "index"),
        per_column,
        mask,
    )
    return mask


def action_mask(fields: Mapping[str, Tensor], tables: Any) -> Tensor:
    """`depth` [B, C] uint8 -> [B, C * D] bool, D destinations."""
    depths = _host(fields["depth"])
    mask = _masks(depths, _ids(fields), tables, int(_items(tables, "destinations")[0]))
    return torch.from_numpy(mask).to(fields["depth"].device)


def columns(fields: Mapping[str, Tensor], tables: Any) -> Tensor:
    """`depth` [B, C] uint8 -> [B, len(VIEW) + 2, nx, ny] float32."""
    depths, mine = _host(fields["depth"]), _ids(fields)
    mask = fields["action_mask"]  # says the same, unless destinations or a closing action do
    alike = mask.shape[1] == depths.shape[1]
    opened = _host(mask) if alike else _masks(depths, mine, tables, 1)
    out = np.empty((*depths.shape, len(VIEW) + 2), np.float32)
    column_features(
        depths,
        opened,
        mine,
        _items(tables, "column_first"),
        _items(tables, "view"),
        _offsets(tables, "view"),
        out,
    )
    grid = _items(tables, "geology").shape[2:4]
    seen = torch.from_numpy(out).view(len(depths), *grid, -1).to(fields["depth"].device)
    return seen.permute(0, 3, 1, 2)  # features stay innermost in memory
