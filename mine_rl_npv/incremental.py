"""Incremental inference while collecting: one block changes, so only a crop of each map changes.

A convolution's output depends on a neighbourhood of its input. `ConvolutionCache` keeps the maps of
a stack of convolutions for N environments, and after a few cells changed recomputes only the boxes
that they reach. Needs a network without normalisation over the whole map (`agent.norm=none`).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from frugal_rl.errors import ConfigError

Box = tuple[tuple[int, int], tuple[int, int], tuple[int, int]]
"""Half-open ranges along x, y and z."""


def reached(box: Box, conv: nn.Conv3d, size: Sequence[int]) -> Box:
    """The box of a convolution's output that a box of its input can change."""
    ranges = []
    for (low, high), k, s, p, n in zip(
        box, conv.kernel_size, conv.stride, conv.padding, size, strict=True
    ):
        first = max(0, -(-(low + p - k + 1) // s))
        last = min(n - 1, (high - 1 + p) // s)
        ranges.append((first, max(first, last + 1)))
    return tuple(ranges)


def needed(box: Box, conv: nn.Conv3d) -> Box:
    """The box of the input, padding included, that a box of the output reads."""
    return tuple(
        (low * s - p, (high - 1) * s - p + k)
        for (low, high), k, s, p in zip(
            box, conv.kernel_size, conv.stride, conv.padding, strict=True
        )
    )


def crop(volume: Tensor, box: Box) -> Tensor:
    """[C, x, y, z] -> [C, *box], zeros outside the volume."""
    pad: list[int] = []
    part = [slice(None)]
    for (low, high), n in zip(box, volume.shape[1:], strict=True):
        part.append(slice(max(low, 0), min(high, n)))
        pad = [max(-low, 0), max(high - n, 0), *pad]
    inside = volume[tuple(part)]
    return F.pad(inside, pad) if any(pad) else inside


class ConvolutionCache:
    """Maps of a ReLU stack of 3D convolutions for N environments, updated where cells change."""

    def __init__(self, convolutions: Sequence[nn.Conv3d], norms: Sequence[nn.Module] = ()) -> None:
        if any(not isinstance(norm, nn.Identity) for norm in norms):
            raise ConfigError(
                "Incremental inference needs agent.norm=none: a norm reads the whole map."
            )
        self.convolutions = list(convolutions)
        self.inputs: Tensor | None = None
        self.maps: list[Tensor] = []

    @torch.no_grad()
    def restart(self, volume: Tensor) -> Tensor:
        """Computes all maps of volumes [N, C, nx, ny, nz]; returns the last."""
        self.inputs = volume.clone()
        self.maps = []
        for conv in self.convolutions:
            volume = F.relu(conv(volume))
            self.maps.append(volume)
        return volume

    @torch.no_grad()
    def update(self, env: int, cell: tuple[int, int, int], values: Tensor) -> Tensor:
        """Sets the channels [C] of one cell of one environment; returns its last map [1, ...]."""
        assert self.inputs is not None
        self.inputs[(env, slice(None), *cell)] = values
        box: Box = tuple((c, c + 1) for c in cell)
        below = self.inputs
        for conv, kept in zip(self.convolutions, self.maps, strict=True):
            box = reached(box, conv, kept.shape[2:])
            piece = crop(below[env], needed(box, conv))
            fresh = F.relu(F.conv3d(piece[None], conv.weight, conv.bias, conv.stride))
            kept[(env, slice(None), *(slice(low, high) for low, high in box))] = fresh[0]
            below = kept
        return self.maps[-1][env : env + 1]

    @property
    def nbytes(self) -> int:
        """Bytes of inputs and maps."""
        kept = sum(m.nbytes for m in self.maps)
        return kept + (self.inputs.nbytes if self.inputs is not None else 0)
