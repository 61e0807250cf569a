"""Torch twins of the flat places; see `nclone.observation.places`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from nclone.observation.places import DOOR_PLACES, FLAT_DOORS, GOAL_PLACES, PLAYER_PLACE


def entity_positions(fields: Mapping[str, Tensor], tables: Any) -> Tensor:
    """`player_place` [B, 2], `goal_places` [B, 4] -> [B, 6]."""
    return torch.cat([fields[PLAYER_PLACE], fields[GOAL_PLACES]], dim=1)


def switch_states(fields: Mapping[str, Tensor], tables: Any) -> Tensor:
    """`door_places` [B, 5, 4], `locked_door_features` [B, 16, 8] -> [B, 25]."""
    used = fields["locked_door_features"][:, :FLAT_DOORS, 2:3]
    return torch.cat([fields[DOOR_PLACES], used], dim=2).flatten(1)
