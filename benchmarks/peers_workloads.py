"""The four workloads of the comparison of rollout stores: what is stored, and what it looks like.

gb          4,096 transitions of the Duel cartridge (two computer players), 144 x 160 in four
            shades, stacks of four
graph       1,024 transitions on 16 levels: padded graph of 4,500 nodes and 18,500 edges, of which
            450 and 1,800 are there, and 189 floats of state
mine        64 transitions of 17 x 49 x 71 x 58 float32: 12 planes of the deposit, 5 of the pit
mine_small  4,096 transitions of 17 x 10 x 10 x 5
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces
from numba import njit

from frugal_rl.observation.choices import Storage
from frugal_rl.observation.encoding import Encoding
from frugal_rl.observation.packed import PackedCodec
from frugal_rl.observation.pooled import DeltaCodec
from frugal_rl.observation.spec import Derived, ObservationSpec, Static, Stored
from frugal_rl.observation.tables import StaticTable, TableField, Tables


@dataclass
class Workload(ABC):
    """Observations of T steps of N environments, dense and as stored rows."""

    steps: int
    num_envs: int
    batch: int
    space: spaces.Dict
    encoding: Encoding

    @abstractmethod
    def dense(self, t: int) -> dict[str, np.ndarray]:
        """What a plain environment gives at step t, [N, ...] by name."""

    @abstractmethod
    def raw(self, t: int) -> dict[str, np.ndarray]:
        """The same as an environment of this project gives it: newest rows and ids."""

    def encode(self, raw: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Raw fields as rows; its time counts as time to add."""
        return raw

    @abstractmethod
    def rebuild(self, drawn: dict[str, Any], out: dict[str, np.ndarray]) -> None:
        """The dense minibatch from a drawn one, into arrays that are kept."""


class GameBoy(Workload):
    """Frames of a running cartridge, kept packed."""

    def __init__(self) -> None:
        codec = DeltaCodec(PackedCodec((144, 160)))
        spec = ObservationSpec(
            (Stored("frame", (144, 160), np.uint8, 0, 3, codecs=(codec,), window=4),)
        )
        box = spaces.Box(0, 3, (4, 144, 160), np.uint8)
        encoding = Encoding.choose(spec, Storage.lossless)
        super().__init__(512, 8, 256, spaces.Dict({"frame": box}), encoding)
        self.codec = codec.inner
        self.newest = np.empty((8, self.codec.packed_bytes), np.uint8)
        self.packed = np.stack([self.codec.encode(f) for f in duel_frames(8, self.steps)])

    def dense(self, t: int) -> dict[str, np.ndarray]:
        """The dense observation."""
        stack = np.zeros((8, 4, 144, 160), np.uint8)
        for lag in range(min(4, t + 1)):
            stack[:, 3 - lag] = self.codec.decode(self.packed[t - lag])
        return {"frame": stack}

    def raw(self, t: int) -> dict[str, np.ndarray]:
        """Frames, not packed."""
        return {"frame": self.codec.decode(self.packed[t])}

    def encode(self, raw: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Packed frames."""
        self.codec.encode_into(raw["frame"], self.newest)
        return {"frame": self.newest}

    def rebuild(self, drawn: dict[str, Any], out: dict[str, np.ndarray]) -> None:
        """Rebuild the dense minibatch."""
        self.codec.decode_into(drawn["frame"].numpy(), out["frame"])


def duel_frames(num_envs: int, steps: int) -> Iterator[np.ndarray]:
    """Shades [N, 144, 160] uint8 of each step, four frames apart, from the bundled cartridge."""
    from fighting.duel import CPU_CPU, MatchSettings, boot, start_match

    games = [boot() for _ in range(num_envs)]
    for seed, game in enumerate(games):
        start_match(game, MatchSettings(mode=CPU_CPU, level=seed % 4, level1=2, seed=seed + 1))
    for _ in range(steps):
        for game in games:
            game.tick(4, render=True)
        yield np.stack([3 - game.screen[..., 0] // 85 for game in games])
    for game in games:
        game.close()


NODES, EDGES, LEVELS = 4500, 18500, 16
GRAPH = {
    "nodes": ((NODES, 21), 450),
    "edge_index": ((EDGES, 2), 1800),
    "edges": ((EDGES, 14), 1800),
    "node_types": ((NODES,), 450),
    "node_mask": ((NODES,), 450),
    "edge_types": ((EDGES,), 1800),
    "edge_mask": ((EDGES,), 1800),
}
"""Shape and items that are there, of each array; all float32, as the padded dictionary is."""


class Graph(Workload):
    """Padded graphs of 16 levels; stored by id."""

    def __init__(self) -> None:
        fields = [
            Static(n, shape, np.float32, -9, 9, table="level") for n, (shape, _) in GRAPH.items()
        ]
        spec = ObservationSpec((Stored("state", (189,), np.float32, -9, 9), *fields))
        encoding = Encoding.choose(spec, Storage.lossless)
        super().__init__(128, 8, 256, spec.observation_space, encoding)
        rng = np.random.default_rng(0)
        table = StaticTable("level", tuple(TableField(f.name, f.shape, f.dtype) for f in fields))
        for level in range(LEVELS):
            table.intern(level, lambda: {n: padded(rng, *GRAPH[n]) for n in GRAPH})
        self.tables = Tables({"level": table})
        self.level = rng.integers(0, LEVELS, (self.steps // 16, 8)).repeat(16, 0).astype(np.int32)
        self.state = rng.standard_normal((self.steps, 8, 189)).astype(np.float32)

    def dense(self, t: int) -> dict[str, np.ndarray]:
        """The dense observation."""
        table = self.tables["level"]
        return {"state": self.state[t]} | {n: table[n][self.level[t]] for n in GRAPH}

    def raw(self, t: int) -> dict[str, np.ndarray]:
        """Level ids and states."""
        return {"level_id": self.level[t], "state": self.state[t]}

    def rebuild(self, drawn: dict[str, Any], out: dict[str, np.ndarray]) -> None:
        """Rebuild the dense minibatch."""
        ids = drawn["level_id"].numpy()
        out["state"][:] = drawn["state"].numpy()
        for name in GRAPH:
            np.take(self.tables["level"][name], ids, axis=0, out=out[name], mode="clip")


def padded(rng: np.random.Generator, shape: tuple[int, ...], there: int) -> np.ndarray:
    """Random items, few distinct values, then zeros."""
    values = np.zeros(shape, np.float32)
    values[:there] = rng.integers(-400, 400, (there, *shape[1:])) / np.float32(100)
    return values


PLANES = 12


class Mine(Workload):
    """A pit that deepens; 12 constant planes, 5 that follow from the depths."""

    def __init__(self, shape: tuple[int, int, int], steps: int, num_envs: int, batch: int) -> None:
        z, columns = shape[0], shape[1] * shape[2]
        spec = ObservationSpec(
            (
                Stored("depth", (columns,), np.uint8, 0, z, observed=False),
                Static("planes", (PLANES, *shape), np.float32, -9, 9, observed=False, table="mine"),
                Derived("grid", (17, *shape), np.float32, -9, 9, sources=("planes", "depth")),
            )
        )
        box = spaces.Box(-9, 9, (17, *shape), np.float32)
        encoding = Encoding.choose(spec, Storage.lossless)
        super().__init__(steps, num_envs, batch, spaces.Dict({"grid": box}), encoding)
        rng = np.random.default_rng(0)
        self.shape = shape
        self.planes = rng.standard_normal((1, PLANES, z, columns)).astype(np.float32)
        self.ids = np.zeros(num_envs, np.int32)
        grown = np.zeros((steps, num_envs, columns), np.int64)
        dug = rng.integers(0, columns, (steps - 1, num_envs, 1))
        np.put_along_axis(grown[1:], dug, 1, -1)
        self.depth = np.minimum(grown.cumsum(0), z).astype(np.uint8)

    def _draw(self, ids: np.ndarray, depth: np.ndarray, grid: np.ndarray) -> None:
        flat = grid.reshape(*grid.shape[:3], -1)
        draw_mine(self.planes, ids, depth.astype(np.int32), flat)

    def dense(self, t: int) -> dict[str, np.ndarray]:
        """The dense observation."""
        out = np.empty((self.num_envs, 17, *self.shape), np.float32)
        self._draw(self.ids, self.depth[t], out)
        return {"grid": out}

    def raw(self, t: int) -> dict[str, np.ndarray]:
        """Depths of all columns."""
        return {"mine_id": self.ids, "depth": self.depth[t]}

    def rebuild(self, drawn: dict[str, Any], out: dict[str, np.ndarray]) -> None:
        """Rebuild the dense minibatch."""
        self._draw(drawn["mine_id"].numpy(), drawn["depth"].numpy(), out["grid"])


@njit(cache=True)
def draw_mine(planes, ids, depth, out):
    """Draw planes [M, 12, Z, C] of ids [B] and depth [B, C] int32 into out [B, 17, Z, C].

    Behind the planes: dug, on the surface, value left, depth, blocks left in the column.
    """
    top, columns = out.shape[2], out.shape[3]
    zero, one = np.float32(0), np.float32(1)
    for b in range(out.shape[0]):
        out[b, :12] = planes[ids[b]]
        for level in range(top):
            z = np.int32(level)
            value = planes[ids[b], 0, z]
            for c in range(columns):
                d = depth[b, c]
                out[b, 12, z, c] = one if z < d else zero
                out[b, 13, z, c] = one if z == d else zero
                out[b, 14, z, c] = value[c] if z >= d else zero
                out[b, 15, z, c] = np.float32(d)
                out[b, 16, z, c] = np.float32(np.int32(top) - d)


def make(name: str) -> Workload:
    """A workload by name."""
    if name == "gb":
        return GameBoy()
    if name == "graph":
        return Graph()
    if name == "mine":
        return Mine((49, 71, 58), 16, 4, 16)
    return Mine((10, 10, 5), 512, 8, 256)
