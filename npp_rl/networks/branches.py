"""Branches: one group of fields each, in, a vector per sample out."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from frugal_rl.learn.networks import channels_first, scale_pixels

STATE_GROUPS = (3, 5, 2, 3, 6, 10)
"""Sizes of the groups of `game_state`: velocity, movement, input, buffers, contact, forces."""
GROUP_WIDTHS = (32, 32, 16, 16, 32, 64)


class Picture(nn.Module):
    """A CNN over an 8-bit picture; pixels are scaled here and nowhere else."""

    def __init__(self, body: nn.Sequential, shape: tuple[int, ...], features: int) -> None:
        """`shape` is that of one picture as observed, its window included."""
        super().__init__()
        self.body = body
        with torch.no_grad():
            width = body.eval()(self._prepared(torch.zeros(1, *shape, dtype=torch.uint8))).shape[1]
        body.train()
        self.output = nn.Sequential(nn.Linear(width, features), nn.ReLU())

    def forward(self, images: Tensor) -> Tensor:
        """[B, (stack,) H, W, 1] uint8 -> [B, features]."""
        features: Tensor = self.output(self.body(self._prepared(images)))
        return features

    @staticmethod
    def _prepared(images: Tensor) -> Tensor:
        return scale_pixels(channels_first(images))


def _convolutions(
    plan: list[tuple[int, int, int, int]], channels: int, batch_norm: bool, dropout: float
) -> list[nn.Module]:
    """Layers (out, kernel, stride, padding) with ReLU; norm and dropout only where asked for."""
    layers: list[nn.Module] = []
    for out, kernel, stride, padding in plan:
        layers.append(nn.Conv2d(channels, out, kernel, stride, padding))
        if batch_norm:
            layers.append(nn.BatchNorm2d(out))
        layers.append(nn.ReLU())
        if dropout:
            layers.append(nn.Dropout2d(dropout))
        channels = out
    return layers


def player_cnn(
    shape: tuple[int, ...], features: int, batch_norm: bool = False, dropout: float = 0.0
) -> Picture:
    """The crop around the player: 8/4 -> 32, 4/2 -> 64, 3/1 -> 128."""
    channels = channels_first(torch.zeros(1, *shape, dtype=torch.uint8)).shape[1]
    plan = [(32, 8, 4, 0), (64, 4, 2, 0), (128, 3, 1, 0)]
    layers = _convolutions(plan, channels, batch_norm, dropout)
    return Picture(nn.Sequential(*layers, nn.Flatten()), shape, features)


def global_cnn(
    shape: tuple[int, ...], features: int, batch_norm: bool = False, dropout: float = 0.0
) -> Picture:
    """The whole level: three 3x3 stride-2 layers 32/64/128, averaged to 4 x 4."""
    channels = channels_first(torch.zeros(1, *shape, dtype=torch.uint8)).shape[1]
    plan = [(32, 3, 2, 1), (64, 3, 2, 1), (128, 3, 2, 1)]
    layers = _convolutions(plan, channels, batch_norm, dropout)
    body = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(4), nn.Flatten())
    return Picture(body, shape, features)


def vector_mlp(inputs: int, features: int) -> nn.Sequential:
    """Two linear layers with ReLU."""
    return nn.Sequential(
        nn.Linear(inputs, features), nn.ReLU(), nn.Linear(features, features), nn.ReLU()
    )


class StateMlp(nn.Module):
    """Physics of the ninja, all rows of its window side by side, and the time that remains."""

    def __init__(self, state_size: int, window: int, extra: int, features: int) -> None:
        super().__init__()
        self.body = vector_mlp(state_size * window + extra, features)

    def forward(self, state: Tensor, extra: Tensor) -> Tensor:
        """State [B, (K,) S], extra [B, X] -> [B, features]."""
        features: Tensor = self.body(torch.cat((state.flatten(1), extra), dim=1))
        return features


class AttentiveStateMlp(nn.Module):
    """Six groups of the state attend to each other; each row of a window brings its own tokens."""

    def __init__(self, state_size: int, window: int, extra: int, features: int) -> None:
        super().__init__()
        self.groups = _groups(state_size)
        widths = (*GROUP_WIDTHS, *[32] * (len(self.groups) - len(GROUP_WIDTHS)))
        self.encode = nn.ModuleList(
            nn.Sequential(nn.Linear(size, width), nn.ReLU(), nn.Linear(width, 64))
            for size, width in zip(self.groups, widths, strict=True)
        )
        self.row = nn.Parameter(torch.zeros(window, 1, 64))
        self.attention = nn.MultiheadAttention(64, 4, batch_first=True)
        self.norm = nn.LayerNorm(64)
        self.output = nn.Sequential(nn.Linear(64 + extra, features), nn.ReLU())

    def forward(self, state: Tensor, extra: Tensor) -> Tensor:
        """State [B, (K,) S], extra [B, X] -> [B, features]."""
        rows = state if state.ndim == 3 else state[:, None]
        parts = rows.split(self.groups, dim=-1)
        tokens = torch.stack([e(p) for e, p in zip(self.encode, parts, strict=True)], dim=2)
        flat = (tokens + self.row).flatten(1, 2)  # [B, K * groups, 64]
        mixed = self.norm(flat + self.attention(flat, flat, flat, need_weights=False)[0])
        features: Tensor = self.output(torch.cat((mixed.mean(dim=1), extra), dim=1))
        return features


def _groups(state_size: int) -> list[int]:
    rest = state_size - sum(STATE_GROUPS)
    if rest < 0:
        raise ValueError(
            f"agent.state=attentive needs the {sum(STATE_GROUPS)} values of game_state, "
            f"got {state_size}; choose agent.state=mlp."
        )
    return [*STATE_GROUPS, *([rest] if rest else [])]


class Surroundings(nn.Module):
    """The tiles around the ninja, centred: what is where matters, so nothing is averaged.

    Two small convolutions come first, or, with `flat`, nothing: four times as fast on a CPU.
    """

    def __init__(self, shape: tuple[int, ...], features: int, high: float, flat: bool) -> None:
        super().__init__()
        self.scale = 1.0 / high
        layers: list[nn.Module] = (
            [] if flat else [nn.Conv2d(1, 8, 3, 1), nn.ReLU(), nn.Conv2d(8, 16, 3, 2), nn.ReLU()]
        )
        self.body = nn.Sequential(*layers, nn.Flatten())
        with torch.no_grad():
            width = self.body(torch.zeros(1, 1, *shape)).shape[1]
        self.output = nn.Sequential(nn.Linear(width, features), nn.ReLU())

    def forward(self, window: Tensor) -> Tensor:
        """[B, H, W] uint8 -> [B, features]."""
        features: Tensor = self.output(self.body(window[:, None].float() * self.scale))
        return features


class Hazards(nn.Module):
    """A set of dangers: one network for all rows, the greatest value of each feature."""

    def __init__(self, values: int, features: int) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(values, features), nn.ReLU())
        self.output = nn.Sequential(nn.Linear(features, features), nn.ReLU())

    def forward(self, rows: Tensor) -> Tensor:
        """[B, R, values], zero rows pad -> [B, features]."""
        real = (rows != 0).any(dim=-1, keepdim=True)
        features: Tensor = self.output((self.body(rows) * real).amax(dim=1))
        return features
