"""A network of its own, and the torch half of the derived field."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from frugal_rl.learn.networks import Network
from lantern.game import WINDOWS


def glow(fields: Mapping[str, Tensor], tables: Any) -> Tensor:
    """`flames` [B, 8] -> [B, 1] float32."""
    return fields["flames"].sum(dim=-1, keepdim=True).float()


class LanternNetwork(Network):
    """One layer over flames and glow."""

    def __init__(self, units: int) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(WINDOWS + 1, units), nn.Tanh())
        self.pi, self.v = nn.Linear(units, WINDOWS), nn.Linear(units, 1)

    def features(self, fields: Mapping[str, Tensor]) -> Tensor:
        """Fields -> [B, units]."""
        return self.body(torch.cat([fields["flames"].float() / 15, fields["glow"] / 120], dim=1))

    def actor(self, fields: Mapping[str, Tensor]) -> Tensor:
        """Logits [B, 8]."""
        return self.pi(self.features(fields))

    def critic(self, fields: Mapping[str, Tensor]) -> Tensor:
        """Values [B, 1]."""
        return self.v(self.features(fields))


@dataclass(frozen=True)
class LanternAgent:
    """The network as values."""

    name: str = "lantern"
    units: int = 16

    def build(self, encoding: Any, tables: Any, action_space: Any) -> Network:
        """The network."""
        return LanternNetwork(self.units)
