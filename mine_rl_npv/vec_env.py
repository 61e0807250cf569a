"""N mines in progress as one native vector environment."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from frugal_rl.observation.encoder import Encoder
from frugal_rl.observation.encoding import Encoding
from frugal_rl.observation.tables import Tables
from frugal_rl.vec_env.interface import EndedEpisodes, Rows, Step, VectorEnv
from frugal_rl.vec_env.plain import env_seeds
from mine_rl_npv.game import MineGame, first_draw


class MineBatch(VectorEnv):
    """All pits advance in one kernel call; rows are slices of the game's own arrays."""

    def __init__(
        self, game: MineGame, encoding: Encoding, mines: np.ndarray, reuse: bool = True
    ) -> None:
        self.game = game
        self.mines = mines
        self.num_envs = game.num_envs
        self.encoding = encoding
        self.tables: Tables = game.tables
        self.action_space: spaces.Space[Any] = game.action_space
        self.edge = Encoder(encoding, self.tables, self.num_envs, reuse)
        self.final_edge = Encoder(encoding, self.tables, self.num_envs, reuse)
        self.wanted = frozenset(row.name for row in encoding.rows)
        self.returns = np.zeros(self.num_envs)
        game.watch(self.wanted)

    def reset(self, seed: int) -> Rows:
        """Start N new episodes."""
        self.game.seed(np.array([first_draw(s) for s in env_seeds(self.num_envs, seed)]))
        self.returns[:] = 0
        self.game.begin(np.arange(self.num_envs), self.mines)
        return self.edge.encode(self.game.raw(self.wanted))

    def step(self, actions: np.ndarray) -> Step:
        """One action each; ended episodes begin anew."""
        game = self.game
        game.advance(np.asarray(actions).reshape(-1))
        self.returns += game.reward
        done = game.terminated | game.truncated
        index = np.flatnonzero(game.truncated)
        final_rows: Rows = {}
        ended = None
        if len(index):
            raw = game.raw(self.wanted)
            final_rows = self.final_edge.encode({n: v[index] for n, v in raw.items()})
        if done.any():
            over = np.flatnonzero(done)
            ended = EndedEpisodes(over, game.outcomes(over) | {"return": self.returns[over]})
            self.returns[over] = 0
            game.begin(over, self.mines)
        rows = self.edge.encode(game.raw(self.wanted))
        return Step(rows, game.reward, done, game.truncated, index, final_rows, ended)

    def parts(self) -> dict[str, int]:
        """Bytes of pits, of the mines' graphs, of static tables and of rows."""
        return {
            "simulators": self.game.state_bytes,
            "mine graphs": self.game.arena.nbytes,
            "static tables": self.tables.nbytes,
            "rows": self.edge.nbytes + self.final_edge.nbytes,
        }

    def state(self) -> dict[str, Any]:
        """Pits in progress; mines are opened again from the configuration."""
        return {"pits": self.game.state(), "returns": self.returns.copy()}

    def load(self, state: dict[str, Any]) -> Rows:
        """Continue from `state()`."""
        self.game.load(state["pits"])
        self.returns[:] = state["returns"]
        return self.edge.encode(self.game.raw(self.wanted))
