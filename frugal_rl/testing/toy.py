"""The smallest environment with every kind of field: a walker on a map of 5 x 5 cells.

It reaches the goal by moving left, right, up or down. `ToyGame` knows the rules for N worlds at
once; `ToyEnv` is one of them for Gymnasium, `ToyBatch` all of them for the trainer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from gymnasium import spaces

from frugal_rl.memory.part import Part
from frugal_rl.observation.spec import EPISODE, Derived, ObservationSpec, Private, Static, Stored
from frugal_rl.observation.tables import StaticTable, TableField, Tables
from frugal_rl.ranges import at_least
from frugal_rl.vec_env.game import Advance, Game, generator_states, restored
from frugal_rl.vec_env.game_env import GameEnv, GameVecEnv

if TYPE_CHECKING:
    from frugal_rl.memory.profile import MemoryProfile
    from frugal_rl.observation.encoding import Encoding
    from frugal_rl.vec_env.interface import VectorEnv

SIZE = 5
MOVES = np.array([[-1, 0], [1, 0], [0, -1], [0, 1]])
"""Steps in x and y of the four actions."""
MOST_DOORS = 4
TABLE = "map"


def picture(sources: Mapping[str, np.ndarray], tables: Tables) -> np.ndarray:
    """`walls` [N, 5, 5] and `position` [N, 2] -> [N, 5, 5] uint8: walls 1, the walker 2."""
    drawn: np.ndarray = sources["walls"].copy()
    x, y = sources["position"].T
    drawn[np.arange(len(drawn)), y, x] = 2
    return drawn


def turns(sources: Mapping[str, np.ndarray], tables: Tables) -> np.ndarray:
    """`moves` [N, S, 1] (action + 1, zero pads) -> [N, 4] int16: how often each was taken."""
    taken: np.ndarray = sources["moves"] == np.arange(1, len(MOVES) + 1)
    return np.asarray(taken.sum(axis=-2), np.int16)


TOY_SPEC = ObservationSpec(
    (
        Stored("action_mask", (4,), np.bool_, doc="moves that lead to a free cell"),
        Stored("position", (2,), np.uint8, 0, SIZE - 1, "x and y"),
        Stored("speed", (2,), np.float32, -1, 1, "the last move's share of the way to the goal"),
        Stored("trail", (SIZE, SIZE), np.uint8, 0, 3, "visits of each cell, at most 3", window=3),
        Stored("moves", (1,), np.int8, 0, 4, "action + 1", window=EPISODE, observed=False),
        Static("walls", (SIZE, SIZE), np.uint8, 0, 1, "1 where no one walks", table=TABLE),
        Static("doors", (MOST_DOORS, 2), np.float32, 0, 1, "x and y", table=TABLE, ragged=True),
        Derived(
            "picture",
            (SIZE, SIZE),
            np.uint8,
            0,
            2,
            "walls and walker",
            sources=("walls", "position"),
            derive=picture,
            twin="frugal_rl.testing.toy_twins:picture",
        ),
        Derived(
            "turns",
            (4,),
            np.int16,
            0,
            10_000,
            "moves taken, by action",
            sources=("moves",),
            derive=turns,
            twin="frugal_rl.testing.toy_twins:turns",
        ),
        Private("distance", (1,), np.float32, 0, 2 * SIZE, "cells to the goal"),
    ),
    action_mask="action_mask",
)


def toy_tables() -> Tables:
    """The table of maps, empty."""
    fields = (
        TableField("walls", (SIZE, SIZE), np.uint8),
        TableField("doors", (MOST_DOORS, 2), np.float32, ragged=True),
    )
    return Tables({TABLE: StaticTable(TABLE, fields)})


def map_rows(level: int) -> dict[str, np.ndarray]:
    """The content of a map: border free, some walls inside, up to four doors."""
    rng = np.random.default_rng(level)
    walls = np.zeros((SIZE, SIZE), np.uint8)
    walls[1:-1, 1:-1] = rng.random((SIZE - 2, SIZE - 2)) < 0.4
    doors = rng.random((rng.integers(MOST_DOORS + 1), 2)).astype(np.float32)
    return {"walls": walls, "doors": doors}


class ToyGame(Game):
    """The rules, for N worlds side by side."""

    def __init__(self, num_worlds: int, levels: int, episode_steps: int) -> None:
        self.num_worlds = num_worlds
        self.action_space = spaces.Discrete(len(MOVES))
        self.levels = levels
        self.episode_steps = episode_steps
        self.tables = toy_tables()
        self.map_id = np.zeros(num_worlds, np.int32)
        self.position = np.zeros((num_worlds, 2), np.uint8)
        self.speed = np.zeros((num_worlds, 2), np.float32)
        self.trail = np.zeros((num_worlds, SIZE, SIZE), np.uint8)
        self.moves = np.zeros((num_worlds, 1), np.int8)
        self.turns = np.zeros((num_worlds, len(MOVES)), np.int16)
        self.steps = np.zeros(num_worlds, np.int64)
        self.reached = np.zeros(num_worlds, np.bool_)
        self.rngs: list[np.random.Generator] = []

    def seed(self, rngs: Sequence[np.random.Generator]) -> None:
        """One source of randomness per world."""
        self.rngs = list(rngs)

    def begin(self, which: np.ndarray) -> None:
        """Start episodes in corners of random maps."""
        for world in which.tolist():
            self._begin(world, self.rngs[world])

    def _begin(self, world: int, rng: np.random.Generator) -> None:
        level = int(rng.integers(self.levels))
        self.map_id[world] = self.tables[TABLE].intern(level, partial(map_rows, level))
        self.position[world] = rng.integers(0, 2, 2) * (SIZE - 1)
        for values in (self.speed, self.trail, self.moves, self.turns, self.steps):
            values[world] = 0
        self.trail[world, self.position[world, 1], self.position[world, 0]] = 1

    def advance(self, actions: np.ndarray) -> Advance:
        """One action each: closer is better; at the goal it ends."""
        every = np.arange(len(actions))
        before = self._distance()
        free = self._mask()[every, actions]
        self.position[:] = self.position + MOVES[actions] * free[:, None]
        x, y = self.position.T
        self.trail[every, y, x] = np.minimum(self.trail[every, y, x] + 1, 3)
        self.moves[:, 0] = actions + 1
        self.turns[every, actions] += 1
        self.steps += 1
        reward = (before - self._distance()).astype(np.float32) / np.float32(SIZE)
        self.speed[:, 0] = reward
        self.reached[:] = self._distance() == 0
        return Advance(reward, self.reached, (self.steps >= self.episode_steps) & ~self.reached)

    def _distance(self) -> np.ndarray:
        """Cells [N] to the goal in the middle of the right edge."""
        x, y = self.position.T.astype(np.int64)
        return np.asarray((SIZE - 1 - x) + np.abs(y - SIZE // 2))

    def _mask(self) -> np.ndarray:
        """[N, 4] bool: moves that stay on the map and off its walls."""
        to = self.position[:, None].astype(np.int64) + MOVES
        inside = ((to >= 0) & (to < SIZE)).all(axis=-1)
        x, y = np.clip(to, 0, SIZE - 1).transpose(2, 0, 1)
        walls = self.tables[TABLE]["walls"]
        return np.asarray(inside & (walls[self.map_id[:, None], y, x] == 0))

    def observe(self, which: np.ndarray | None = None) -> dict[str, np.ndarray]:
        """Raw fields [N, *shape], those of all worlds without copies."""
        raw = {
            "action_mask": self._mask(),
            "position": self.position,
            "speed": self.speed,
            "trail": self.trail,
            "moves": self.moves,
            "turns": self.turns,
            "map_id": self.map_id,
            "distance": self._distance()[:, None].astype(np.float32),
        }
        return raw if which is None else {name: values[which] for name, values in raw.items()}

    def outcomes(self, which: np.ndarray) -> dict[str, np.ndarray]:
        """Length and success; `turns` is the length again."""
        length, success = (
            self.steps[which].astype(np.float64),
            self.reached[which].astype(np.float64),
        )
        return {"length": length, "success": success, "turns": length}

    def parts(self) -> dict[str, int]:
        """Bytes of worlds and tables."""
        worlds = sum(values.nbytes for values in self._arrays().values())
        return {"simulators": worlds, "static tables": self.tables.nbytes}

    def _arrays(self) -> dict[str, np.ndarray]:
        return {name: v for name, v in vars(self).items() if isinstance(v, np.ndarray)}

    def state(self) -> dict[str, Any]:
        """Worlds, random states and map keys."""
        return {
            "worlds": {name: values.copy() for name, values in self._arrays().items()},
            "rngs": generator_states(self.rngs),
            "maps": self.tables[TABLE].keys,
        }

    def load(self, state: dict[str, Any]) -> None:
        """Continue from `state()`."""
        self.tables[TABLE].clear()  # a reset may have met other maps first
        for level in state["maps"]:
            self.tables[TABLE].intern(level, partial(map_rows, level))
        for name, values in state["worlds"].items():
            getattr(self, name)[...] = values
        self.rngs = restored(state["rngs"])


class ToyEnv(GameEnv):
    """One world for Gymnasium, with the full observation."""

    def __init__(self, levels: int = 4, episode_steps: int = 20) -> None:
        super().__init__(ToyGame(1, levels, episode_steps), TOY_SPEC, episode_steps)


class ToyBatch(GameVecEnv):
    """N worlds for the trainer, without Python per world but at episode starts."""

    def __init__(
        self, num_envs: int, encoding: Encoding, levels: int, episode_steps: int, reuse: bool = True
    ) -> None:
        super().__init__(ToyGame(num_envs, levels, episode_steps), encoding, reuse)


@dataclass(frozen=True)
class Toy:
    """The toy problem as a configuration."""

    name: str = "toy"
    fields: Mapping[str, str] = field(default_factory=dict)
    episode_steps: Annotated[int, at_least(1)] = 20
    levels: Annotated[int, at_least(1)] = 4

    def spec(self) -> ObservationSpec:
        """The observation, declared."""
        return TOY_SPEC

    def action_space(self) -> spaces.Space[Any]:
        """Left, right, up, down."""
        return spaces.Discrete(len(MOVES))

    def make(self, seed: int | None = None) -> ToyEnv:
        """One plain environment."""
        env = ToyEnv(self.levels, self.episode_steps)
        if seed is not None:
            env.reset(seed=seed)
        return env

    def make_vec(
        self, num_envs: int, encoding: Encoding, memory: MemoryProfile, vec: Any, split: str
    ) -> VectorEnv:
        """The native batch, or whatever `vec` builds from single environments."""
        if vec is None or vec.native:
            reuse = memory.buffers.value == "reused"
            return ToyBatch(num_envs, encoding, self.levels, self.episode_steps, reuse)
        built: VectorEnv = vec.build(self, num_envs, encoding, memory)
        return built

    def parts(
        self, num_envs: int, encoding: Encoding, memory: MemoryProfile, vec: Any
    ) -> list[Part]:
        """Worlds by arithmetic; the tables hold `levels` maps."""
        world = 4 + 2 + 8 + SIZE * SIZE + 1 + 8 + 8
        return [
            Part("simulators", f"{num_envs} worlds x {world} B", num_envs * world),
            Part(
                "static tables",
                f"{self.levels} maps x {SIZE * SIZE + MOST_DOORS * 8} B",
                self.levels * (SIZE * SIZE + MOST_DOORS * 8),
                shared=True,
            ),
        ]
