"""Residual trunks of actor and critic, and the value heads on top."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from npp_rl.choices import ValueKind


class TrunkLayer(nn.Module):
    """Linear, layer norm, SiLU, with a skip connection where asked for."""

    def __init__(self, inputs: int, outputs: int, skip: bool) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(inputs, outputs), nn.LayerNorm(outputs), nn.SiLU())
        self.skip: nn.Module | None = None
        if skip:
            same = inputs == outputs
            self.skip = nn.Identity() if same else nn.Linear(inputs, outputs, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """X [B, inputs] -> [B, outputs]."""
        y: Tensor = self.body(x)
        return y if self.skip is None else y + self.skip(x)


def residual_trunk(inputs: int, sizes: Sequence[int]) -> nn.Sequential:
    """Layers of these sizes; every second one, and each that changes the width, is residual."""
    layers = []
    for i, size in enumerate(sizes):
        layers.append(TrunkLayer(inputs, size, skip=bool(i % 2) or inputs != size))
        inputs = size
    return nn.Sequential(*layers)


class ValueHead(nn.Module):
    """One number per sample."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.value = nn.Linear(inputs, 1)
        nn.init.orthogonal_(self.value.weight, 1.0)
        nn.init.zeros_(self.value.bias)

    def forward(self, latent: Tensor, probabilities: Tensor | None = None) -> Tensor:
        """Latent [B, D] -> [B, 1]."""
        value: Tensor = self.value(latent)
        return value


class DuelingHead(ValueHead):
    """V = U + sum_a pi(a) (A(a) - mean A), pi detached.

    With the plain mean the advantages would cancel out of a state's value and never learn; under
    the policy's own probabilities they do not.
    """

    def __init__(self, inputs: int, actions: int) -> None:
        super().__init__(inputs)
        self.advantages = nn.Linear(inputs, actions)
        nn.init.orthogonal_(self.advantages.weight, 0.1)
        nn.init.zeros_(self.advantages.bias)

    def forward(self, latent: Tensor, probabilities: Tensor | None = None) -> Tensor:
        """Latent [B, D], probabilities [B, A] -> [B, 1]."""
        if probabilities is None:
            raise ValueError("A dueling value needs the policy's probabilities.")
        advantages = self.advantages(latent)
        centred = advantages - advantages.mean(dim=1, keepdim=True)
        expected = (probabilities.detach() * centred).sum(dim=1, keepdim=True)
        value: Tensor = self.value(latent) + expected
        return value


def build_value_head(kind: ValueKind, inputs: int, actions: int) -> ValueHead:
    """The value head of this kind."""
    return DuelingHead(inputs, actions) if kind is ValueKind.dueling else ValueHead(inputs)


def masked_probabilities(logits: Tensor, mask: Tensor | None) -> Tensor:
    """Softmax over allowed actions: logits [B, A], mask [B, A] 0/1 or None."""
    allowed = logits.float()
    if mask is not None:
        allowed = torch.where(mask.bool(), allowed, torch.finfo(allowed.dtype).min)
    return torch.softmax(allowed, dim=1)
