"""The mine's agents as values. Imports no torch: the networks lie in `columns` and `voxels`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from frugal_rl.errors import ConfigError
from frugal_rl.late import Late
from frugal_rl.memory.part import Part
from mine_rl_npv.spec import TABLE

if TYPE_CHECKING:
    from frugal_rl.learn.networks import Network
    from frugal_rl.observation.encoding import Encoding
    from frugal_rl.observation.tables import Tables
    from frugal_rl.run.config import RunConfig

columns, voxels = Late("mine_rl_npv.networks.columns"), Late("mine_rl_npv.networks.voxels")


class Norm(Enum):
    """Normalisation after each convolution; never with batch statistics."""

    group = "group"
    none = "none"


class Head(Enum):
    """How logits are made of voxel features."""

    flat = "flat"
    """One dense layer over all actions, as the guide has it."""
    columns = "columns"
    """One logit per column, from the features above it and its next block."""


@dataclass(frozen=True)
class Column2dAgent:
    """The light network: the mine seen from above, a few 2D convolutions."""

    name: str = "column2d"
    width: int = 16
    layers: int = 1
    channels_last: bool = True
    """Features innermost in memory: 2.5 times as fast on a CPU with AVX-512; rounds differently."""

    def check(self, encoding: Encoding, action_space: Any) -> None:
        """Refuse an observation without columns."""
        if "columns" not in encoding.spec.by_name:
            raise ConfigError(
                f"agent={self.name} reads the columns of a mine; choose env=mine with "
                "env.actions=column, or agent=mlp here."
            )
        encoding.check_readable("columns")

    def build(self, encoding: Encoding, tables: Tables, action_space: Any) -> Network:
        """The network for this observation and these actions."""
        self.check(encoding, action_space)
        network: Network = columns.ColumnNetwork(self, encoding, int(action_space.n))
        return network


@dataclass(frozen=True)
class PointerAgent:
    """Points at one of the blocks of the frontier."""

    name: str = "pointer"
    width: int = 32

    def check(self, encoding: Encoding, action_space: Any) -> None:
        """Refuse actions that are no blocks."""
        f = encoding.spec.by_name.get("columns")
        if f is not None or "depth" not in encoding.spec.by_name:
            raise ConfigError("agent=pointer points at blocks; choose env=mine env.actions=block.")
        if f"{TABLE}_id" not in encoding.by_name:
            raise ConfigError(
                "agent=pointer looks blocks up by the number of their mine, which this storage "
                "leaves out. Add env.fields.geology=interned, or choose memory=lossless."
            )

    def build(self, encoding: Encoding, tables: Tables, action_space: Any) -> Network:
        """The network for this observation and these actions."""
        self.check(encoding, action_space)
        network: Network = columns.PointerNetwork(self, int(action_space.n))
        return network


@dataclass(frozen=True)
class Cnn3dAgent:
    """3D CNN over the voxels; full, small and tiny are values of this class (specification A7)."""

    name: str = "cnn3d"
    channels: tuple[int, ...] = (32, 64, 128)
    strides: tuple[int, ...] = (1, 2, 2)
    kernel: int = 3
    max_pool: bool = False
    """Halve the map between layers by maximum instead of stride."""
    pooled: int = 4
    """Cells per axis of the last, averaged map."""
    dense: tuple[int, ...] = (1024, 512)
    hidden: tuple[int, ...] = (256, 256)
    """Layers of actor and critic, each with its own."""
    norm: Norm = Norm.group
    head: Head = Head.flat
    factored: bool = True
    """Convolve the static channels once per distinct mine instead of once per sample."""
    channels_last: bool = False
    """Memory layout of voxel maps; faster on many CPUs, rounds differently."""
    incremental: bool = False
    """While acting, compute maps only where a block was dug; needs norm=none."""

    def __post_init__(self) -> None:
        if len(self.channels) != len(self.strides):
            raise ConfigError(
                f"agent.channels has {len(self.channels)} layers, agent.strides "
                f"{len(self.strides)}; they must be equally many."
            )

    def parts(self, run: RunConfig) -> list[Part]:
        """The maps that acting keeps between two steps."""
        if not self.incremental:
            return []
        grid = run.env.spec().by_name["pit"].shape[1:]
        each = cache_bytes(grid, self.channels, self.strides, self.kernel, self.max_pool)
        envs = max(run.algo.num_envs, min(run.evaluation.num_envs, run.evaluation.episodes))
        return [Part("convolution maps", f"{envs} envs x {each:,} B", envs * each)]

    def check(self, encoding: Encoding, action_space: Any) -> None:
        """Refuse an observation without voxels, or one whose columns the head cannot read."""
        by_name = encoding.spec.by_name
        if "geology" not in by_name or "pit" not in by_name:
            raise ConfigError(f"agent={self.name} reads voxels; choose env=mine.")
        encoding.check_readable("pit")
        if self.head is not Head.columns:
            return
        f = by_name.get("columns")
        if f is None or int(action_space.n) % (f.shape[1] * f.shape[2]):
            raise ConfigError("agent.head=columns needs env.actions=column and no period clock.")
        encoding.check_readable("columns")

    def build(self, encoding: Encoding, tables: Tables, action_space: Any) -> Network:
        """The network for this observation and these actions."""
        self.check(encoding, action_space)
        network: Network = voxels.VoxelNetwork(self, encoding, int(action_space.n))
        return network


def cache_bytes(
    grid: Sequence[int], channels: Sequence[int], strides: Sequence[int], kernel: int, pool: bool
) -> int:
    """Bytes that a cache keeps for one environment: the changing channels and every map."""
    total = 2 * grid[0] * grid[1] * grid[2]
    size = list(grid)
    for i, (width, stride) in enumerate(zip(channels, strides, strict=True)):
        size = [(n + 2 * (kernel // 2) - kernel) // stride + 1 for n in size]
        if pool and i + 1 < len(channels):
            size = [n // 2 for n in size]
        total += width * size[0] * size[1] * size[2]
    return 4 * total
