"""Incremental inference while acting: one block changes, so only a crop of each map changes.

A convolution's output depends on a neighbourhood of its input. `ConvolutionCache` keeps the maps of
a stack of convolutions for N environments, and after a few cells changed recomputes only the boxes
that they reach. It looks at what it is shown, not at who shows it: whoever plays next, trainer or
evaluation, gets the maps of the observation at hand. Needs a network without normalisation over
the whole map (`agent.norm=none`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from frugal_rl.errors import ConfigError

Box = tuple[tuple[int, int], ...]
"""Half-open ranges along x, y and z."""
Ground = Callable[[int], Tensor]
"""Row of the batch -> its static channels [C, nx, ny, nz]."""
MOST_CELLS = 16
"""A row in which more cells changed is computed anew: its episode has begun."""


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


def slices(box: Box) -> tuple[slice, ...]:
    """A box as an index."""
    return tuple(slice(low, high) for low, high in box)


class ConvolutionCache:
    """Maps of a ReLU stack of 3D convolutions for N environments, updated where cells change.

    Args:
        convolutions: in order.
        norms: one per convolution; identities only.
        max_pool: whether maps are halved by maximum between two layers.
    """

    def __init__(
        self,
        convolutions: Sequence[nn.Conv3d],
        norms: Sequence[nn.Module] = (),
        max_pool: bool = False,
    ) -> None:
        if any(not isinstance(norm, nn.Identity) for norm in norms):
            raise ConfigError(
                "Incremental inference needs agent.norm=none: a norm reads the whole map."
            )
        self.convolutions = list(convolutions)
        last = len(self.convolutions) - 1
        self.pooled = [max_pool and i < last for i in range(last + 1)]
        self.forget()

    def forget(self) -> None:
        """The weights have changed: nothing that is kept holds any longer."""
        self.seen = torch.empty(0)
        self.ids = torch.empty(0, dtype=torch.int64)
        self.maps: list[Tensor] = []

    @torch.no_grad()
    def read(self, changing: Tensor, ids: Tensor, ground: Ground) -> Tensor:
        """The last map [B, C, x, y, z] of an observation.

        Args:
            changing: [B, 2, nx, ny, nz] the channels that change.
            ids: [B] which static channels a row has.
            ground: row -> static channels; read for rows that are new, and where cells changed.
        """
        if len(self.seen) != len(changing) or not self.maps:
            self.forget()
            fresh = torch.ones(len(changing), dtype=torch.bool)
            cells = torch.empty((0, 4), dtype=torch.int64)
        else:
            cells = (changing != self.seen).any(dim=1).nonzero()
            count = torch.bincount(cells[:, 0], minlength=len(changing))
            fresh = (ids != self.ids) | (count > MOST_CELLS)
        self.seen, self.ids = changing.clone(), ids.clone()
        for row in fresh.nonzero().flatten().tolist():
            self._restart(row, ground(row))
        for row, *cell in cells.tolist():
            if not fresh[row]:
                self._update(row, tuple((c, c + 1) for c in cell), ground(row))
        return self.maps[-1]

    def _restart(self, row: int, ground: Tensor) -> None:
        """All maps of one row."""
        volume = torch.cat((ground, self.seen[row]))[None]
        for i, conv in enumerate(self.convolutions):
            volume = self._pool(F.relu(conv(volume)), i)
            if len(self.maps) == i:
                self.maps.append(volume.new_zeros((len(self.seen), *volume.shape[1:])))
            self.maps[i][row] = volume[0]

    def _pool(self, volume: Tensor, i: int) -> Tensor:
        return F.max_pool3d(volume, 2) if self.pooled[i] else volume

    def _update(self, row: int, box: Box, ground: Tensor) -> None:
        """The boxes of one row's maps that a box of its input reaches."""
        for i, (conv, kept) in enumerate(zip(self.convolutions, self.maps, strict=True)):
            twice = 2 if self.pooled[i] else 1
            size = [n * twice for n in kept.shape[2:]]  # what a pool drops is never read
            box = reached(box, conv, size)
            box = tuple((low // twice, -(-high // twice)) for low, high in box)
            wanted = needed(tuple((low * twice, high * twice) for low, high in box), conv)
            if i == 0:
                piece = torch.cat((crop(ground, wanted), crop(self.seen[row], wanted)))
            else:
                piece = crop(self.maps[i - 1][row], wanted)
            fresh = F.conv3d(piece[None], conv.weight, conv.bias, conv.stride)
            kept[(row, slice(None), *slices(box))] = self._pool(F.relu(fresh), i)[0]

    @property
    def nbytes(self) -> int:
        """Bytes of inputs and maps."""
        return self.seen.nbytes + sum(m.nbytes for m in self.maps)
