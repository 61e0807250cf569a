"""Torch twins of the fields that are looked up in the navigation graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from nclone.graph.fields import AROUND, GOAL_NODES, GRAPH_ID, GRAPH_TABLE, NODE_INDEX
from nclone.graph.lattice import HEIGHT, WIDTH


def player_node(fields: Mapping[str, Tensor], tables: Any) -> Tensor:
    """`graph_id` [B], `cell` [B, 2] -> [B, 1] int16; see `nclone.graph.fields.player_node`."""
    cell, ids = fields["cell"].long(), fields[GRAPH_ID]
    around = cell[:, None] + torch.tensor(AROUND, device=cell.device)
    column, row = around.unbind(2)
    inside = (column >= 0) & (column < WIDTH) & (row >= 0) & (row < HEIGHT)
    place = torch.where(inside, row * WIDTH + column, 0)
    graph_row = tables[GRAPH_TABLE].places(ids)
    index = tables[GRAPH_TABLE].values(NODE_INDEX, cell.device)
    nodes = index[graph_row[:, None], place].masked_fill(~inside, -1)
    first = (nodes >= 0).int().argmax(dim=1, keepdim=True)
    return nodes.gather(1, first)


def goal_nodes(fields: Mapping[str, Tensor], tables: Any) -> Tensor:
    """`graph_id` [B] -> [B, 34] int16."""
    rows: Tensor = tables[GRAPH_TABLE].rows(GOAL_NODES, fields[GRAPH_ID])
    return rows
