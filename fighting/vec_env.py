"""All cartridges in one process: the native batch of Duel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fighting.game import DuelGame
from frugal_rl.memory.profile import Buffers, MemoryProfile
from frugal_rl.observation.encoder import Encoder
from frugal_rl.observation.encoding import Encoding
from frugal_rl.observation.tables import Tables
from frugal_rl.vec_env.interface import EndedEpisodes, Rows, Step, VectorEnv
from frugal_rl.vec_env.plain import env_seeds

if TYPE_CHECKING:
    from fighting.config import DuelConfig


class DuelVecEnv(VectorEnv):
    """N rows of fights; threads emulate, press, read and take pictures, the rest is batched."""

    def __init__(
        self,
        config: DuelConfig,
        num_envs: int,
        encoding: Encoding,
        memory: MemoryProfile,
        split: str = "train",
    ) -> None:
        self.config, self.num_envs, self.encoding = config, num_envs, encoding
        form = encoding.choice.get("frame", "")
        packed = form if form in ("packed", "delta") else ""  # a delta is of packed rows
        self.game = DuelGame(config, num_envs, split, packed)
        self.tables = Tables()
        self.action_space = config.action_space()
        reuse = memory.buffers is Buffers.reused
        self.edge = Encoder(encoding, self.tables, num_envs, reuse)
        self._final_edge = Encoder(encoding, self.tables, num_envs, reuse=False)
        self.returns = np.zeros(num_envs)
        self.level_names = [f"cpu_{level}" for level in range(8)]

    def reset(self, seed: int) -> Rows:
        """Start N new episodes."""
        self.game.seed([np.random.default_rng(s) for s in env_seeds(self.num_envs, seed)])
        self.game.begin(np.arange(self.num_envs))
        self.returns[:] = 0
        return self.edge.encode(self.game.observe())

    def step(self, actions: np.ndarray) -> Step:
        """Hold one action per row for the frame skip; ended fights begin anew."""
        reward, terminated, truncated = self.game.advance(actions)
        self.returns += reward
        done = terminated | truncated
        ended, final_index, final_rows = None, np.flatnonzero(truncated), {}
        if done.any():
            index = np.flatnonzero(done)
            stats = {"return": self.returns[index]} | self.game.stats(index)
            ended = EndedEpisodes(index, stats)
            if len(final_index):
                final_rows = self._final_edge.encode(self.game.observe(final_index))
            self.returns[index] = 0
            self.game.begin(index)
        rows = self.edge.encode(self.game.observe())
        return Step(rows, reward, done, truncated, final_index, final_rows, ended)

    def parts(self) -> dict[str, int]:
        """Bytes held beside the emulators."""
        game = self.game
        return {
            "game memory": game.emulators.ram.nbytes + game.emulators.before.nbytes,
            "frames": game.frames.nbytes,
            "rows": self.edge.nbytes + game.signals.nbytes,
        }

    def state(self) -> dict[str, Any]:
        """All that an exact resume needs."""
        return {"fights": self.game.state(), "returns": self.returns.copy()}

    def load(self, state: dict[str, Any]) -> Rows:
        """Continue from `state`."""
        self.game.load(state["fights"])
        self.returns[:] = state["returns"]
        return self.edge.encode(self.game.observe())

    def close(self) -> None:
        """End threads and cartridges."""
        self.game.close()
