"""Objective attention: what the agent wants (exit, doors, switches) weighed by what it knows.

Only tokens that exist are computed: a level without locked doors has one or two, not 33. Padding
rows cannot have influence because they are never read.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from frugal_rl.observation.distinct import rows_at
from npp_rl.graphs.encoders.messages import segment_softmax

if TYPE_CHECKING:
    from npp_rl.choices import ObjectiveValues

MAX_DOORS = 16
EXIT_VALUES, DOOR_VALUES = 7, 4


@dataclass(frozen=True)
class Tokens:
    """The objectives that exist in B samples.

    values  [V, token], samples [V] int64, places [V] int64: exit tokens first (place 0, or 0 and
    1), then doors, then switches, as in the padded layout
    """

    values: Tensor
    samples: Tensor
    places: Tensor


@dataclass(frozen=True)
class Attended:
    """What attention gives: mixed [B, width], weights [V, heads] of the tokens, entropy scalar."""

    mixed: Tensor
    weights: Tensor
    entropy: Tensor
    tokens: Tokens


def _encoder(inputs: int, values: ObjectiveValues) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(inputs, values.hidden),
        nn.LayerNorm(values.hidden),
        nn.SiLU(),
        nn.Linear(values.hidden, values.token),
        nn.LayerNorm(values.token),
    )


class ObjectiveTokens(nn.Module):
    """Encodes exit, doors and switches; `node_width` > 0 adds the embedding of each one's node."""

    def __init__(self, values: ObjectiveValues, node_width: int = 0) -> None:
        super().__init__()
        self.split = values.split_exit
        self.exit = nn.ModuleList(
            _encoder(n, values) for n in ((4, 4) if self.split else (EXIT_VALUES,))
        )
        self.door, self.switch = _encoder(DOOR_VALUES, values), _encoder(DOOR_VALUES, values)
        self.node = nn.Linear(node_width, values.token, bias=False) if node_width else None

    def forward(
        self,
        exit_features: Tensor,
        doors: Tensor | None,
        num_doors: Tensor | None,
        nodes: Tensor | None = None,
    ) -> Tokens:
        """Exit [B, 7], doors [B, 16, 8], num_doors [B], nodes [B, 34, node width] -> tokens."""
        samples = torch.arange(len(exit_features), device=exit_features.device)
        values, owners, places, goals = [], [], [], []
        for place, part in enumerate(self._exit_parts(exit_features)):
            values.append(self.exit[place](part))
            owners.append(samples)
            places.append(torch.full_like(samples, place))
            goals.append(torch.full_like(samples, place) if self.split else self._goal(part))
        if doors is not None and num_doors is not None:
            row = torch.arange(MAX_DOORS, device=doors.device)
            sample, door = torch.nonzero(row < num_doors.reshape(-1, 1), as_tuple=True)
            real, first = doors[sample, door], len(self.exit)
            values += [self.door(real[:, DOOR_VALUES:]), self.switch(real[:, :DOOR_VALUES])]
            owners += [sample, sample]
            places += [first + door, first + MAX_DOORS + door]
            goals += [3 + 2 * door, 2 + 2 * door]
        tokens, owner, goal = torch.cat(values), torch.cat(owners), torch.cat(goals)
        if self.node is not None and nodes is not None:
            tokens = tokens + self.node(rows_at(nodes.flatten(0, 1), nodes.shape[1] * owner + goal))
        return Tokens(tokens, owner, torch.cat(places))

    def _exit_parts(self, exit_features: Tensor) -> list[Tensor]:
        if not self.split:
            return [exit_features]
        hit = exit_features[:, 2:3]
        return [exit_features[:, :4], torch.cat((exit_features[:, 4:], hit), dim=1)]

    @staticmethod
    def _goal(exit_features: Tensor) -> Tensor:
        return (exit_features[:, 2] > 0.5).long()


class ObjectiveAttention(nn.Module):
    """The latent asks, the objectives answer, 8 heads."""

    def __init__(self, latent: int, values: ObjectiveValues) -> None:
        super().__init__()
        self.heads = values.heads
        self.normalise = values.normalise_entropy
        self.query = nn.Linear(latent, values.width)
        self.key = nn.Linear(values.token, values.width)
        self.value = nn.Linear(values.token, values.width)
        self.mix = nn.Linear(values.width, values.width)

    def forward(self, latent: Tensor, tokens: Tokens) -> Attended:
        """Latent [B, D] and tokens -> mixed [B, width], weights and entropy of this very pass."""
        batch = len(latent)
        query = self.query(latent).unflatten(1, (self.heads, -1))
        key = self.key(tokens.values).unflatten(1, (self.heads, -1))
        value = self.value(tokens.values).unflatten(1, (self.heads, -1))
        scores = (rows_at(query, tokens.samples) * key).sum(-1).float() / math.sqrt(key.shape[-1])
        weights = segment_softmax(scores, tokens.samples, batch)
        weighted = value * weights[..., None].to(value.dtype)
        mixed = torch.zeros_like(query).index_add(0, tokens.samples, weighted)
        return Attended(
            self.mix(mixed.flatten(1)), weights, self._entropy(weights, tokens, batch), tokens
        )

    def _entropy(self, weights: Tensor, tokens: Tokens, batch: int) -> Tensor:
        terms = -(weights * weights.clamp(min=1e-12).log()).mean(dim=1)  # over heads
        per_sample = torch.zeros(batch, device=terms.device).index_add(0, tokens.samples, terms)
        if self.normalise:
            counts = torch.bincount(tokens.samples, minlength=batch)
            per_sample = per_sample / counts.clamp(min=2).float().log()
        return per_sample.mean()


class ObjectivePolicy(nn.Module):
    """Latent and attended objectives -> logits."""

    def __init__(self, latent: int, values: ObjectiveValues, actions: int, nodes: int = 0) -> None:
        super().__init__()
        self.tokens = ObjectiveTokens(values, nodes)
        self.attention = ObjectiveAttention(latent, values)
        self.body = nn.Sequential(
            nn.Linear(latent + values.width, values.out), nn.LayerNorm(values.out), nn.SiLU()
        )
        self.logits = nn.Linear(values.out, actions)
        for layer in self.modules():
            if isinstance(layer, nn.Linear):
                nn.init.xavier_uniform_(layer.weight, 0.5)
                if layer.bias is not None:
                    nn.init.zeros_(layer.bias)
        nn.init.orthogonal_(self.logits.weight, 0.01)

    def forward(self, latent: Tensor, tokens: Tokens) -> tuple[Tensor, Attended]:
        """Latent [B, D] and tokens -> logits [B, actions], and the attention behind them."""
        attended = self.attention(latent, tokens)
        return self.logits(self.body(torch.cat((latent, attended.mixed), dim=1))), attended
