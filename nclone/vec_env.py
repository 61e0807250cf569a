"""All environments in one kernel call: the native batch of N++."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from frugal_rl.memory.choices import Buffers
from frugal_rl.vec_env.game_env import GameVecEnv
from nclone.game import NppGame

if TYPE_CHECKING:
    from frugal_rl.learn.ranks import Ranks
    from frugal_rl.memory.profile import MemoryProfile
    from frugal_rl.observation.encoding import Encoding
    from nclone.config import NppConfig


class NppVecEnv(GameVecEnv):
    """N worlds that step together; an evaluation plays its levels in turn, group by group."""

    game: NppGame

    def __init__(
        self,
        config: NppConfig,
        num_envs: int,
        encoding: Encoding,
        memory: MemoryProfile,
        split: str = "train",
        threads: int | None = None,
    ) -> None:
        order = "in turn" if split == "eval" else "random"
        grouped = config.open_grouped(split)
        if split == "eval":
            grouped = [grouped[k] for k in interleaved([group for group, _ in grouped])]
        groups, levels = [group for group, _ in grouped], [level for _, level in grouped]
        game = NppGame(config, levels, num_envs, order, threads)
        named = dict(zip(game.levels.playlist.tolist(), groups, strict=True))
        game.level_names = [named[k] for k in range(len(game.level_table.level))]
        super().__init__(game, encoding, memory.buffers is Buffers.reused)

    def agree(self, ranks: Ranks) -> None:
        """One curriculum for all ranks."""
        if self.game.curriculum is not None:
            self.game.curriculum.agree(ranks)

    def common(self) -> dict[str, Any] | None:
        """What a run on another number of processes goes on with."""
        return self.game.curriculum.state() if self.game.curriculum is not None else None

    def go_on(self, common: dict[str, Any]) -> None:
        """Continue from `common()` in new episodes."""
        if self.game.curriculum is not None:
            self.game.curriculum.load(common)


def interleaved(groups: Sequence[str]) -> list[int]:
    """Places in an order that takes one of each group in turn, so that few episodes show all."""
    seen: dict[str, int] = {}
    rounds = []
    for group in groups:
        rounds.append(seen.get(group, 0))
        seen[group] = rounds[-1] + 1
    return sorted(range(len(groups)), key=lambda k: (rounds[k], k))
