"""Networks over a mine seen from above, column by column, and a pointer over blocks."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from frugal_rl.learn.actions import mask_logits
from frugal_rl.learn.networks import Fields, Network, Output
from mine_rl_npv.rules.features import VIEW
from mine_rl_npv.spec import TABLE

if TYPE_CHECKING:
    from frugal_rl.observation.encoding import Encoding
    from mine_rl_npv.networks.agents import Column2dAgent, PointerAgent


def orthogonal(module: nn.Module, gain: float) -> None:
    """Orthogonal weights and zero biases."""
    for layer in module.modules():
        if isinstance(layer, nn.Linear | nn.Conv2d | nn.Conv3d):
            nn.init.orthogonal_(layer.weight, gain)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)


class ValueHead(nn.Linear):
    """A value that begins with 0 and follows its targets in tens of steps, not in thousands.

    A mine's rewards are tiny, so a first guess of order one would drown them in every advantage.
    Scaled to a deviation of one, they still add up to several units, and what tells states apart is
    a tenth of one: `GAIN` lets Adam's equal steps cover that distance first.
    """

    GAIN = 4.0

    def __init__(self, features: int) -> None:
        super().__init__(features, 1)

    def reset_parameters(self) -> None:
        """All zero."""
        nn.init.zeros_(self.weight)
        nn.init.zeros_(self.bias)

    def forward(self, features: Tensor) -> Tensor:
        """[B, features] -> [B, 1]."""
        return self.GAIN * super().forward(features)


def chances(logits: Tensor, mask: Tensor, columns: int) -> Tensor:
    """The policy's chance [B, columns] of each column, over its destinations; without gradient.

    One block of a hundred thousand moves no mean over all columns: a critic that reads only those
    sees a constant. What the policy digs next is what its value depends on.

    Args:
        logits: [B, A] of columns times destinations, and perhaps of a closing action.
        mask: [B, A] bool, which actions are allowed.
        columns: how many there are.
    """
    chance = torch.softmax(mask_logits(logits.detach().float(), mask), dim=1)
    return chance[:, : chance.shape[1] // columns * columns].unflatten(1, (columns, -1)).sum(2)


def expected(maps: Tensor, chance: Tensor) -> Tensor:
    """Mean [B, C] of column features [B, C, nx, ny] under chances [B, nx * ny]."""
    return torch.einsum("bcn,bn->bc", maps.flatten(2), chance.to(maps.dtype))


class ColumnNetwork(Network):
    """2D convolutions over column features; one logit per column and destination."""

    def __init__(self, agent: Column2dAgent, encoding: Encoding, actions: int) -> None:
        super().__init__()
        view, nx, ny = encoding.spec.by_name["columns"].shape
        self.columns = nx * ny
        self.closing = actions % self.columns
        width, self.channels_last = agent.width, agent.channels_last
        seen = view + width
        self.enter = nn.Conv2d(view, width, 1)
        self.layers = nn.ModuleList(
            nn.Conv2d(width, width, 3, padding=1) for _ in range(agent.layers)
        )
        self.out = nn.Conv2d(width, actions // self.columns, 1)
        self.value = nn.Sequential(
            nn.LayerNorm(2 * seen), nn.Linear(2 * seen, 2 * width), nn.Tanh(), ValueHead(2 * width)
        )
        self.close = nn.Linear(2 * width, self.closing) if self.closing else None
        orthogonal(self, math.sqrt(2))
        orthogonal(self.out, 0.01)
        self.value[-1].reset_parameters()

    def maps(self, fields: Fields) -> Tensor:
        """[B, width, nx, ny]."""
        maps = F.relu(self.enter(self._columns(fields)))
        for layer in self.layers:
            maps = maps + F.relu(self.run(layer, maps))
        return maps

    def _columns(self, fields: Fields) -> Tensor:
        """[B, view, nx, ny] in one layout, whatever the observation's: else sums round apart."""
        layout = torch.channels_last if self.channels_last else torch.contiguous_format
        return fields["columns"].contiguous(memory_format=layout)

    def actor(self, fields: Fields) -> Tensor:
        """Logits [B, actions]."""
        return self._act(self.maps(fields))

    def critic(self, fields: Fields) -> Tensor:
        """Values [B, 1]."""
        return self.forward(fields).value

    def forward(self, fields: Fields) -> Output:
        """Both from one map; the critic looks at the columns that the actor is about to dig."""
        maps = self.maps(fields)
        logits = self._act(maps)
        chance = chances(logits, fields["action_mask"], self.columns)
        seen = [self._columns(fields), maps]
        seen = [m.mean(dim=(2, 3)) for m in seen] + [expected(m, chance) for m in seen]
        return Output(logits, self.value(torch.cat(seen, dim=1)))

    def _act(self, maps: Tensor) -> Tensor:
        logits = self.out(maps).flatten(2).transpose(1, 2).flatten(1)
        if self.close is None:
            return logits
        return torch.cat((logits, self.close(_summary(maps))), dim=1)


def _summary(maps: Tensor) -> Tensor:
    """[B, C, x, y] -> [B, 2 C]: mean and maximum."""
    return torch.cat((maps.mean(dim=(2, 3)), maps.amax(dim=(2, 3))), dim=1)


class PointerNetwork(Network):
    """Scores every block by its features and the state of the frontier; for block actions."""

    def __init__(self, agent: PointerAgent, actions: int) -> None:
        super().__init__()
        self.actions = actions
        self.block = nn.Linear(len(VIEW) + 1, agent.width)
        self.context = nn.Linear(2 * agent.width, agent.width)
        self.out = nn.Linear(agent.width, 1)
        self.value = nn.Sequential(
            nn.Linear(2 * agent.width, agent.width), nn.Tanh(), ValueHead(agent.width)
        )
        orthogonal(self, math.sqrt(2))
        orthogonal(self.out, 0.01)
        self.value[-1].reset_parameters()

    def _encode(self, fields: Any) -> tuple[Tensor, Tensor]:
        view = fields.tables[TABLE].ragged("view", fields[f"{TABLE}_id"]).padded(self.actions)
        opened = fields["action_mask"].float().unsqueeze(-1)
        blocks = torch.tanh(self.block(torch.cat((view, opened), dim=-1)))
        frontier = (blocks * opened).sum(dim=1) / opened.sum(dim=1).clamp(min=1)
        return blocks, torch.cat((frontier, blocks.mean(dim=1)), dim=-1)

    def actor(self, fields: Fields) -> Tensor:
        """Logits [B, blocks]."""
        return self._act(*self._encode(fields))

    def critic(self, fields: Fields) -> Tensor:
        """Values [B, 1]."""
        return self.value(self._encode(fields)[1])

    def forward(self, fields: Fields) -> Output:
        """Both from one encoding."""
        blocks, summary = self._encode(fields)
        return Output(self._act(blocks, summary), self.value(summary))

    def _act(self, blocks: Tensor, summary: Tensor) -> Tensor:
        return self.out(torch.tanh(blocks + self.context(summary)[:, None])).squeeze(-1)
