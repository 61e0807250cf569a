"""All environments in one kernel call: the native batch of N++."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from frugal_rl.memory.profile import Buffers, MemoryProfile
from frugal_rl.observation.encoder import Encoder
from frugal_rl.observation.encoding import Encoding
from frugal_rl.vec_env.interface import EndedEpisodes, Rows, Step, VectorEnv
from frugal_rl.vec_env.plain import env_seeds
from nclone.config import NppConfig
from nclone.game import Game
from nclone.spec import ACTIONS


class NppVecEnv(VectorEnv):
    """N worlds that step together; nothing here is done per environment but at an episode's end."""

    def __init__(
        self,
        config: NppConfig,
        num_envs: int,
        encoding: Encoding,
        memory: MemoryProfile,
        split: str = "train",
        threads: int | None = None,
    ) -> None:
        self.num_envs, self.encoding = num_envs, encoding
        self.action_space: spaces.Space[Any] = spaces.Discrete(ACTIONS)
        order = "in turn" if split == "eval" else "random"
        grouped = config.open_grouped(split)
        if split == "eval":
            grouped = [grouped[k] for k in interleaved([group for group, _ in grouped])]
        groups, levels = [group for group, _ in grouped], [level for _, level in grouped]
        self.game = Game(config, levels, num_envs, order, threads)
        self.tables = self.game.tables
        reuse = memory.buffers is Buffers.reused
        self.edge = Encoder(encoding, self.tables, num_envs, reuse)
        self._final_edge = Encoder(encoding, self.tables, num_envs, reuse=False)
        named = dict(zip(self.game.deal.tolist(), groups, strict=True))
        self.level_names = [named[k] for k in range(len(self.game.level_table.level))]

    def reset(self, seed: int) -> Rows:
        """Start N new episodes."""
        self.game.seed([np.random.default_rng(s) for s in env_seeds(self.num_envs, seed)])
        self.game.begin(np.arange(self.num_envs))
        return self.edge.encode(self.game.observe())

    def step(self, actions: np.ndarray) -> Step:
        """Hold one action 0..5 per world for the frame skip; actions [N]."""
        outcome = self.game.advance(actions)
        reward, done, truncated = outcome.reward, outcome.done, outcome.truncated
        ended, final_index, final_rows = None, np.flatnonzero(truncated), {}
        if done.any():
            index = np.flatnonzero(done)
            ended = EndedEpisodes(index, self.game.stats(index))
            if len(final_index):
                final_rows = self._final_edge.encode(self.game.observe(final_index))
            self.game.begin(index)
        rows = self.edge.encode(self.game.observe())
        events = {"died": outcome.died, "milestone": outcome.milestone}
        return Step(rows, reward, done, truncated, final_index, final_rows, ended, events)

    def parts(self) -> dict[str, int]:
        """Bytes held, by name."""
        return self.game.parts() | {"rows": self.edge.nbytes}

    def state(self) -> dict[str, Any]:
        """All that an exact resume needs."""
        return self.game.state()

    def load(self, state: dict[str, Any]) -> Rows:
        """Continue from `state`."""
        if not self.game._rngs:
            self.game.seed([np.random.default_rng(0) for _ in range(self.num_envs)])
        self.game.load(state)
        return self.edge.encode(self.game.observe())


def interleaved(groups: Sequence[str]) -> list[int]:
    """Places in an order that takes one of each group in turn, so that few episodes show all."""
    seen: dict[str, int] = {}
    rounds = []
    for group in groups:
        rounds.append(seen.get(group, 0))
        seen[group] = rounds[-1] + 1
    return sorted(range(len(groups)), key=lambda k: (rounds[k], k))
