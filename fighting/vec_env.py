"""All cartridges in one process: the native batch of Duel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fighting.game import DuelGame
from fighting.spec import packed_form
from frugal_rl.memory.choices import Buffers
from frugal_rl.vec_env.game_env import GameVecEnv

if TYPE_CHECKING:
    from fighting.config import DuelConfig
    from frugal_rl.learn.ranks import Ranks
    from frugal_rl.memory.profile import MemoryProfile
    from frugal_rl.observation.encoding import Encoding


class DuelVecEnv(GameVecEnv):
    """N rows of fights; threads emulate, press, read and take pictures, the rest is batched."""

    game: DuelGame

    def __init__(
        self,
        config: DuelConfig,
        num_envs: int,
        encoding: Encoding,
        memory: MemoryProfile,
        split: str = "train",
    ) -> None:
        game = DuelGame(config, num_envs, split, packed_form(encoding))
        super().__init__(game, encoding, memory.buffers is Buffers.reused)

    def agree(self, ranks: Ranks) -> None:
        """One curriculum for all ranks."""
        self.game.levels.agree(ranks)

    def common(self) -> dict[str, Any]:
        """What a run on another number of processes goes on with."""
        return self.game.levels.common()

    def go_on(self, common: Mapping[str, Any]) -> None:
        """Continue from `common()` in new episodes."""
        self.game.levels.go_on(common)
