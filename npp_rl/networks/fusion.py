"""Fusion: the vectors of all branches become the features of one sample."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from npp_rl.choices import FusionKind


class Concat(nn.Module):
    """Side by side, then linear, ReLU, linear."""

    def __init__(self, widths: Sequence[int], out: int) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(sum(widths), out), nn.ReLU(), nn.Linear(out, out))

    def forward(self, branches: Sequence[Tensor]) -> Tensor:
        """Branches [B, width of each] -> [B, out]."""
        features: Tensor = self.body(torch.cat(list(branches), dim=1))
        return features


class SelfAttention(nn.Module):
    """Each branch is a token; one transformer layer, the mean over tokens, linear.

    Shapes: B samples, M branches, D token size.
    """

    def __init__(self, widths: Sequence[int], token: int, heads: int, out: int) -> None:
        super().__init__()
        if token % heads:
            raise ValueError(
                f"agent.token={token} is not a multiple of agent.fusion_heads={heads}; "
                "choose one that is."
            )
        self.heads = heads
        self.project = nn.ModuleList(nn.Linear(w, token) for w in widths)
        self.branch = nn.Parameter(torch.randn(len(widths), token) * 0.02)
        self.qkv = nn.Linear(token, 3 * token)
        self.mix = nn.Linear(token, token)
        self.norm = nn.LayerNorm(token)
        self.feed_forward = nn.Sequential(
            nn.Linear(token, 4 * token), nn.ReLU(), nn.Linear(4 * token, token)
        )
        self.last_norm = nn.LayerNorm(token)
        self.output = nn.Linear(token, out)

    def forward(self, branches: Sequence[Tensor]) -> Tensor:
        """Branches [B, width of each] -> [B, out]."""
        projected = [p(b) for p, b in zip(self.project, branches, strict=True)]
        tokens = torch.stack(projected, dim=1) + self.branch  # [B, M, D]
        q, k, v = self.qkv(tokens).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(-2)
        tokens = self.norm(tokens + self.mix(mixed))
        tokens = self.last_norm(tokens + self.feed_forward(tokens))
        features: Tensor = self.output(tokens.mean(dim=1))
        return features


class Adaptive(nn.Module):
    """Branches of one size, weighted by gates that all branches decide together."""

    def __init__(self, widths: Sequence[int], token: int, out: int) -> None:
        super().__init__()
        self.project = nn.ModuleList(nn.Linear(w, token) for w in widths)
        self.gate = nn.Linear(sum(widths), len(widths))
        self.output = nn.Sequential(nn.ReLU(), nn.Linear(token, out))

    def forward(self, branches: Sequence[Tensor]) -> Tensor:
        """Branches [B, width of each] -> [B, out]."""
        gates = torch.softmax(self.gate(torch.cat(list(branches), dim=1)), dim=1)
        projected = [p(b) for p, b in zip(self.project, branches, strict=True)]
        mixed = (torch.stack(projected, dim=1) * gates[..., None]).sum(dim=1)
        features: Tensor = self.output(mixed)
        return features


def build_fusion(
    kind: FusionKind, widths: Sequence[int], token: int, heads: int, out: int
) -> nn.Module:
    """The fusion of branches of these widths."""
    if kind is FusionKind.concat:
        return Concat(widths, out)
    if kind is FusionKind.adaptive:
        return Adaptive(widths, token, out)
    return SelfAttention(widths, token, 1 if kind is FusionKind.single_head else heads, out)
