"""Demonstrations split over the processes of a run: together they clone what one process would.

Each rank records and keeps the levels of its own. The order of samples, and so every minibatch, is
that of one process; a rank computes the gradient of those samples of a minibatch that it holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from npp_rl.teaching.demonstrations import record

if TYPE_CHECKING:
    from frugal_rl.learn.ranks import Ranks
    from frugal_rl.memory.profile import MemoryProfile
    from frugal_rl.observation.encoding import Encoding
    from nclone.config import NppConfig
    from npp_rl.teaching.demonstrations import Demonstrations


def own_levels(count: int, ranks: Ranks) -> np.ndarray:
    """Numbers of the levels that one rank records: blocks in order, as even as can be."""
    return np.array_split(np.arange(count), ranks.size)[ranks.rank]


def recorded(
    config: NppConfig,
    encoding: Encoding,
    inputs: Sequence[np.ndarray],
    gamma: float,
    memory: MemoryProfile,
    ranks: Ranks,
) -> Demonstrations:
    """What this rank keeps of the demonstrations; `inputs` are those of all training levels."""
    own = own_levels(len(inputs), ranks)
    played = own if len(own) else np.zeros(1, np.int64)  # the tables are needed in any case
    demos = record(config, encoding, [inputs[n] for n in played], gamma, memory, played)
    lost = tuple(int(played[n]) for n in demos.lost)
    demos = replace(demos, level=played[demos.level], lost=lost)
    return demos if len(own) else _none_of(demos)


def _none_of(demos: Demonstrations) -> Demonstrations:
    rows = {name: row[:0] for name, row in demos.rows.items()}
    none = demos.actions[:0], demos.returns[:0], demos.level[:0]
    return replace(
        demos, rows=rows, actions=none[0], returns=none[1], level=none[2], lost=(), forbidden=0
    )


@dataclass(frozen=True)
class Samples:
    """The samples of all ranks in one order, and which of them lie here.

    level  [M] of every sample
    first  number of this rank's first sample
    own    how many it has
    scale  deviation of all returns
    """

    ranks: Ranks
    level: np.ndarray
    first: int
    own: int
    scale: float

    @classmethod
    def of(cls, demos: Demonstrations, ranks: Ranks) -> Samples:
        """Count the samples of all ranks, in the order of the ranks."""
        scale = float(demos.returns.std()) if ranks.size == 1 else deviation(demos.returns, ranks)
        levels = ranks.gathered(demos.level.astype(np.int32))
        first = sum(len(level) for level in levels[: ranks.rank])
        return cls(ranks, np.concatenate(levels), first, len(demos), scale or 1.0)

    def here(self, index: np.ndarray) -> np.ndarray:
        """Those of some samples that lie here, as places in this rank's arrays."""
        places = index - self.first
        return np.asarray(places[(places >= 0) & (places < self.own)])

    def sum_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        """Replace gradients by their sum over the ranks; what nobody computed stays without."""
        if self.ranks.size == 1:
            return
        found = [p.grad if p.grad is not None else torch.zeros_like(p) for p in parameters]
        known = [float(p.grad is not None) for p in parameters]
        flat = torch.cat([*(g.flatten() for g in found), found[0].new_tensor(known)])
        self.ranks.average(flat)
        flat *= self.ranks.size
        sizes = [p.numel() for p in parameters]
        *sums, anybody = flat.split([*sizes, len(sizes)])
        for p, gradient, wanted in zip(parameters, sums, anybody.tolist(), strict=True):
            p.grad = gradient.view_as(p) if wanted else None


def deviation(values: np.ndarray, ranks: Ranks) -> float:
    """Standard deviation of numbers that lie on all ranks."""
    wide = values.astype(np.float64)
    count, total, squares = ranks.summed(np.array([len(wide), wide.sum(), np.square(wide).sum()]))
    mean = total / max(count, 1)
    return float(np.sqrt(max(squares / max(count, 1) - mean**2, 0.0)))
