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
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from gymnasium import spaces
from numba import njit

from frugal_rl.observation.choices import Storage
from frugal_rl.observation.codecs.packed import PackedCodec
from frugal_rl.observation.codecs.pooled import DeltaCodec
from frugal_rl.observation.encoding import Encoding
from frugal_rl.observation.spec import Derived, ObservationSpec, Static, Stored
from frugal_rl.observation.tables import StaticTable, TableField, Tables
from frugal_rl.store.dense import samples_of


@dataclass
class Workload(ABC):
    """Observations of T steps of N environments, dense and as stored rows."""

    steps: int
    num_envs: int
    batch: int
    space: spaces.Dict
    encoding: Encoding
    tables: Tables

    @abstractmethod
    def dense(self, t: int) -> dict[str, np.ndarray]:
        """What a plain environment gives at step t, [N, ...] by name."""

    @abstractmethod
    def raw(self, t: int) -> dict[str, np.ndarray]:
        """The same as an environment of this project gives it: newest rows and ids."""

    def encode(self, raw: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Raw fields as rows; its time counts as time to add."""
        return raw

    def dense_arrays(self) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """Arrays of a dense minibatch as the peers deliver it, and the fields that lie in them."""
        return {}, {}


class GameBoy(Workload):
    """Frames of a running cartridge, kept packed."""

    def __init__(self) -> None:
        codec = DeltaCodec(PackedCodec((144, 160)))
        spec = ObservationSpec(
            (Stored("frame", (144, 160), np.uint8, 0, 3, codecs=(codec,), window=4),)
        )
        box = spaces.Box(0, 3, (4, 144, 160), np.uint8)
        encoding = Encoding.choose(spec, Storage.lossless)
        super().__init__(512, 8, 256, spaces.Dict({"frame": box}), encoding, Tables())
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


def duel_frames(num_envs: int, steps: int) -> Iterator[np.ndarray]:
    """Shades [N, 144, 160] uint8 of each step, four frames apart, from the bundled cartridge."""
    from fighting.machine.console import boot
    from fighting.machine.duel import CPU_CPU, MatchSettings, start_match

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
            Static(n, shape, np.float32, -9, 9, table="level", ragged=True)
            for n, (shape, _) in GRAPH.items()
        ]
        spec = ObservationSpec((Stored("state", (189,), np.float32, -9, 9), *fields))
        encoding = Encoding.choose(spec, Storage.lossless)
        rng = np.random.default_rng(0)
        columns = tuple(TableField(f.name, f.shape, f.dtype, ragged=True) for f in fields)
        table = StaticTable("level", columns)
        for level in range(LEVELS):
            table.intern(level, lambda: {n: there(rng, *GRAPH[n]) for n in GRAPH})
        tables = Tables({"level": table})
        super().__init__(128, 8, 256, spec.observation_space, encoding, tables)
        self.level = rng.integers(0, LEVELS, (self.steps // 16, 8)).repeat(16, 0).astype(np.int32)
        self.state = rng.standard_normal((self.steps, 8, 189)).astype(np.float32)

    def dense(self, t: int) -> dict[str, np.ndarray]:
        """The dense observation."""
        rows = {n: np.zeros((8, *shape), np.float32) for n, (shape, _) in GRAPH.items()}
        for n, level in enumerate(self.level[t]):
            for name, items in self.tables["level"].row(level).items():
                rows[name][n, : len(items)] = items
        return {"state": self.state[t]} | rows

    def raw(self, t: int) -> dict[str, np.ndarray]:
        """Level ids and states."""
        return {"level_id": self.level[t], "state": self.state[t]}


def there(rng: np.random.Generator, shape: tuple[int, ...], count: int) -> np.ndarray:
    """Random items, few distinct values; the padding behind them is not kept."""
    values = rng.integers(-400, 400, (count, *shape[1:])) / np.float32(100)
    return values.astype(np.float32)


PLANES, PIT = 12, 5


class Mine(Workload):
    """A pit that deepens; 12 constant planes, 5 that follow from the depths."""

    def __init__(self, shape: tuple[int, int, int], steps: int, num_envs: int, batch: int) -> None:
        z, columns = shape[0], shape[1] * shape[2]
        planes = Static("planes", (PLANES, *shape), np.float32, -9, 9, table="mine")
        spec = ObservationSpec(
            (
                Stored("depth", (columns,), np.uint8, 0, z, observed=False),
                planes,
                Derived(
                    "pit", (PIT, *shape), np.float32, -9, 99, sources=("planes", "depth"),
                    derive_into=pit_into,
                ),
            )
        )  # fmt: skip
        box = spaces.Box(-9, 99, (PLANES + PIT, *shape), np.float32)
        encoding = Encoding.choose(spec, Storage.lossless)
        rng = np.random.default_rng(0)
        table = StaticTable("mine", (TableField("planes", planes.shape, np.float32),))
        geology = rng.standard_normal((PLANES, *shape)).astype(np.float32)
        table.intern(0, lambda: {"planes": geology})
        tables = Tables({"mine": table})
        super().__init__(steps, num_envs, batch, spaces.Dict({"grid": box}), encoding, tables)
        self.shape = shape
        self.ids = np.zeros(num_envs, np.int32)
        grown = np.zeros((steps, num_envs, columns), np.int64)
        dug = rng.integers(0, columns, (steps - 1, num_envs, 1))
        np.put_along_axis(grown[1:], dug, 1, -1)
        self.depth = np.minimum(grown.cumsum(0), z).astype(np.uint8)

    def dense(self, t: int) -> dict[str, np.ndarray]:
        """The dense observation."""
        grid = np.empty((self.num_envs, PLANES + PIT, *self.shape), np.float32)
        grid[:, :PLANES] = self.tables["mine"]["planes"]
        pit_into({"planes": grid, "depth": self.depth[t]}, self.tables, grid[:, PLANES:])
        return {"grid": grid}

    def raw(self, t: int) -> dict[str, np.ndarray]:
        """Depths of all columns."""
        return {"mine_id": self.ids, "depth": self.depth[t]}

    def dense_arrays(self) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """One grid; planes and pit lie in it."""
        grid = np.zeros((self.batch, PLANES + PIT, *self.shape), np.float32)
        return {"grid": grid}, {"planes": grid[:, :PLANES], "pit": grid[:, PLANES:]}


def pit_into(sources: Mapping[str, np.ndarray], tables: Tables, out: np.ndarray) -> None:
    """`planes` [B, P, *shape] and `depth` [B, C] -> out [B, 5, *shape]; see `draw_pit`."""
    value, value_stride = samples_of(sources["planes"])
    pit, stride = samples_of(out)
    draw_pit(value, value_stride, sources["depth"].astype(np.float32), out.shape[2], pit, stride)


@njit(cache=True)
def draw_pit(value, value_stride, depth, top, out, stride):
    """Value at b * value_stride [Z, C] and depth [B, C] into out at b * stride [5, Z, C].

    Dug, on the surface, value left, depth, blocks left in the column; all float32, Z = top.
    """
    columns = depth.shape[1]
    plane = top * columns
    bench = np.empty(plane, np.float32)
    for i in range(plane):
        bench[i] = np.float32(i // columns)
    for b in range(depth.shape[0]):
        planes = out[b * stride : b * stride + 5 * plane]
        deep = planes[3 * plane : 4 * plane]
        for z in range(top):
            deep[z * columns : (z + 1) * columns] = depth[b]
        worth = value[b * value_stride : b * value_stride + plane]
        dig(bench, deep, worth, np.float32(top), planes[: 3 * plane], planes[4 * plane :])


@njit(cache=True)
def dig(bench, depth, value, top, planes, left):
    """Bench, depth, value [P] into planes [3 P] (dug, surface, value left) and left [P]."""
    zero, one = np.float32(0), np.float32(1)
    plane = len(bench)
    dug, surface, worth = planes[:plane], planes[plane : 2 * plane], planes[2 * plane :]
    for i in range(plane):
        dug[i] = one if bench[i] < depth[i] else zero
    for i in range(plane):
        surface[i] = one if bench[i] == depth[i] else zero
    for i in range(plane):
        worth[i] = zero if bench[i] < depth[i] else value[i]
    for i in range(plane):
        left[i] = top - depth[i]


def make(name: str) -> Workload:
    """A workload by name."""
    if name == "gb":
        return GameBoy()
    if name == "graph":
        return Graph()
    if name == "mine":
        return Mine((49, 71, 58), 16, 4, 16)
    return Mine((10, 10, 5), 512, 8, 256)
