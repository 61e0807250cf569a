"""3D convolutions over a mine's voxels, the first one split into static and changing channels."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from frugal_rl.learn.networks import Fields, Network, Output
from frugal_rl.observation.distinct import by_first_sight, content_ids, rows_at
from mine_rl_npv.networks.agents import Cnn3dAgent, Head, Norm
from mine_rl_npv.networks.columns import ValueHead, chances, expected, orthogonal
from mine_rl_npv.networks.incremental import ConvolutionCache
from mine_rl_npv.spec import TABLE

if TYPE_CHECKING:
    from frugal_rl.observation.encoding import Encoding

DAYS_PER_UNIT = 365.0
"""Extraction days are read in years."""
COLUMN_FEATURES = 32
"""Features per column in front of `head=columns`."""


class VoxelTrunk(nn.Module):
    """Convolutions over [B, channels, nx, ny, nz], the first one split into static and changing.

    conv(W, [S; D]) = conv(W_S, S) + conv(W_D, D): with `factored`, the static part is computed
    once per distinct mine of a minibatch, which is told by its id or else by its content, so that
    dense rows train to the same bits.
    """

    def __init__(self, static: int, agent: Cnn3dAgent) -> None:
        super().__init__()
        self.static, self.agent = static, agent
        layers: list[nn.Module] = []
        width = static + 2
        for out, stride in zip(agent.channels, agent.strides, strict=True):
            layers.append(nn.Conv3d(width, out, agent.kernel, stride, agent.kernel // 2))
            width = out
        self.convolutions = nn.ModuleList(layers)
        groups = [math.gcd(8, c) for c in agent.channels]
        self.norms = nn.ModuleList(
            nn.GroupNorm(g, c) if agent.norm is Norm.group else nn.Identity()
            for g, c in zip(groups, agent.channels, strict=True)
        )

    def first(self, fields: Fields) -> Tensor:
        """Output of the first convolution, before its normalisation."""
        conv = self.convolutions[0]
        pit = self.changing(fields)
        if not self.agent.factored:
            return conv(self._layout(torch.cat((fields["geology"], pit), dim=1)))
        grounds, inverse = self.grounds(fields)
        ground = self._layout(grounds)
        stride, padding = conv.stride, conv.padding
        fixed = F.conv3d(ground, conv.weight[:, : self.static], conv.bias, stride, padding)
        moving = F.conv3d(self._layout(pit), conv.weight[:, self.static :], None, stride, padding)
        return moving + (fixed if len(ground) == 1 else rows_at(fixed, inverse))

    def grounds(self, fields: Fields) -> tuple[Tensor, Tensor]:
        """Static channels of the minibatch's distinct mines [D, ...], and each sample's [B]."""
        if f"{TABLE}_id" not in getattr(fields, "rows", {}):
            geology = fields["geology"]
            firsts, inverse = by_first_sight(content_ids(geology))
            return geology[firsts], inverse
        ids = fields[f"{TABLE}_id"]
        firsts, inverse = by_first_sight(ids)
        return fields.tables[TABLE].rows("geology", ids[firsts]), inverse

    def ground(self, fields: Fields) -> tuple[Tensor, Callable[[int], Tensor]]:
        """Ids [B] of the static channels, and row -> its channels [static, nx, ny, nz]."""
        rows = getattr(fields, "rows", {})
        if f"{TABLE}_id" not in rows:
            return torch.zeros(len(fields["pit"]), dtype=torch.int64), lambda b: fields["geology"][
                b
            ]
        ids = fields[f"{TABLE}_id"]
        kept = fields.tables[TABLE].values("geology", ids.device)
        return ids, lambda b: kept[ids[b]]

    def changing(self, fields: Fields) -> Tensor:
        """The pit's planes [B, 2, nx, ny, nz], days in years."""
        scale = torch.tensor([1.0, 1.0 / DAYS_PER_UNIT], device=fields["pit"].device)
        return fields["pit"] * scale.view(1, 2, 1, 1, 1)

    def _layout(self, volume: Tensor) -> Tensor:
        last = self.agent.channels_last
        layout = torch.channels_last_3d if last else torch.contiguous_format
        return volume.contiguous(memory_format=layout)

    def rest(self, volume: Tensor) -> Tensor:
        """From the first convolution's output to the last map [B, C, x, y, z]."""
        for i, norm in enumerate(self.norms):
            if i > 0:
                volume = self.convolutions[i](volume)
            volume = F.relu(norm(volume))
            if self.agent.max_pool and i + 1 < len(self.norms):
                volume = F.max_pool3d(volume, 2)
        return volume


class VoxelNetwork(Network):
    """A 3D CNN, pooled to a feature vector; separate trunks for actor and critic."""

    def __init__(self, agent: Cnn3dAgent, encoding: Encoding, actions: int) -> None:
        super().__init__()
        by_name = encoding.spec.by_name
        self.agent = agent
        self.trunk = VoxelTrunk(by_name["geology"].shape[0], agent)
        pooled = agent.channels[-1] * agent.pooled**3
        dense: list[nn.Module] = []
        for width in agent.dense:
            dense += [nn.Linear(pooled, width), nn.ReLU()]
            pooled = width
        self.dense = nn.Sequential(*dense)
        self.actor_trunk = _perceptron(pooled, agent.hidden)
        self.critic_trunk = _perceptron(pooled, agent.hidden)
        width = agent.hidden[-1] if agent.hidden else pooled
        meant = 0
        if agent.head is Head.columns:
            meant = by_name["columns"].shape[0] + COLUMN_FEATURES
        self.value = ValueHead(width + meant)
        for module in (self.trunk, self.dense, self.actor_trunk, self.critic_trunk):
            orthogonal(module, math.sqrt(2))
        if agent.head is Head.columns:
            self.logits = _ColumnHead(agent.channels[-1], width, by_name, actions)
        else:
            self.logits = nn.Linear(width, actions)
            orthogonal(self.logits, 0.01)
        self.cache: ConvolutionCache | None = None
        if agent.incremental:
            trunk = self.trunk
            self.cache = ConvolutionCache(trunk.convolutions, trunk.norms, agent.max_pool)
            self.register_load_state_dict_post_hook(lambda module, keys: module.cache.forget())

    def train(self, mode: bool = True) -> VoxelNetwork:
        """Learning changes the weights, so it ends what acting has kept."""
        if self.cache is not None and mode:
            self.cache.forget()
        return super().train(mode)

    def maps(self, fields: Fields) -> Tensor:
        """The last voxel map; while acting, updated where the pit changed."""
        if self.cache is not None and not self.training and not torch.is_grad_enabled():
            return self.cache.read(self.trunk.changing(fields), *self.trunk.ground(fields))
        return self.run(_Rest(self.trunk), self.trunk.first(fields))

    def features(self, maps: Tensor) -> Tensor:
        """[B, features] of the pooled map."""
        pooled = F.adaptive_avg_pool3d(maps, self.agent.pooled)
        return self.dense(pooled.flatten(1))

    def actor(self, fields: Fields) -> Tensor:
        """Logits [B, actions]."""
        return self.forward(fields).logits

    def critic(self, fields: Fields) -> Tensor:
        """Values [B, 1]."""
        return self.forward(fields).value

    def forward(self, fields: Fields) -> Output:
        """Both from one pass over the voxels."""
        maps = self.maps(fields)
        features = self.features(maps)
        hidden, judged = self.actor_trunk(features), self.critic_trunk(features)
        if self.agent.head is Head.flat:
            return Output(self.logits(hidden), self.value(judged))
        columns = fields["columns"]
        mixed = self.logits.mixed(columns, maps, hidden)
        logits = self.logits(mixed)
        chance = chances(logits, fields["action_mask"], columns.shape[2] * columns.shape[3])
        meant = (expected(columns, chance), expected(mixed, chance))
        return Output(logits, self.value(torch.cat((judged, *meant), dim=1)))


class _Rest(nn.Module):
    """The part of a trunk behind its first convolution, as one block to recompute."""

    def __init__(self, trunk: VoxelTrunk) -> None:
        super().__init__()
        self.trunk = trunk

    def forward(self, volume: Tensor) -> Tensor:
        return self.trunk.rest(volume)


class _ColumnHead(nn.Module):
    """Logits per column from voxel features above it, its next block and the whole mine."""

    def __init__(self, channels: int, context: int, by_name: Any, actions: int) -> None:
        super().__init__()
        view, nx, ny = by_name["columns"].shape
        self.mix = nn.Conv2d(view + channels, COLUMN_FEATURES, 1)
        self.context = nn.Linear(context, COLUMN_FEATURES)
        self.out = nn.Conv2d(COLUMN_FEATURES, actions // (nx * ny), 1)
        orthogonal(self, 0.01)  # small throughout: the head learns its features, it keeps no chance

    def mixed(self, columns: Tensor, maps: Tensor, hidden: Tensor) -> Tensor:
        """Features [B, 32, nx, ny] of every column."""
        above = F.interpolate(maps.mean(dim=-1), columns.shape[2:], mode="nearest")
        seen = torch.cat((columns, above), dim=1)
        mixed = self.mix(seen.contiguous(memory_format=torch.channels_last))
        return torch.tanh(mixed + self.context(hidden)[:, :, None, None])

    def forward(self, mixed: Tensor) -> Tensor:
        """Logits [B, actions] of column features."""
        return self.out(mixed).flatten(2).transpose(1, 2).flatten(1)


def _perceptron(width: int, hidden: Sequence[int]) -> nn.Sequential:
    layers: list[nn.Module] = []
    for out in hidden:
        layers += [nn.Linear(width, out), nn.Tanh()]
        width = out
    return nn.Sequential(*layers)
