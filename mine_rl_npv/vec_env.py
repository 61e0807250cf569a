"""N mines in progress as one native vector environment."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from frugal_rl.vec_env.game_env import GameVecEnv

if TYPE_CHECKING:
    from frugal_rl.observation.encoding import Encoding
    from mine_rl_npv.game import MineGame


class MineBatch(GameVecEnv):
    """All pits advance in one kernel call; rows are slices of the game's own arrays."""

    game: MineGame

    def __init__(
        self, game: MineGame, encoding: Encoding, mines: np.ndarray, reuse: bool = True
    ) -> None:
        game.watch({row.name for row in encoding.rows})
        game.draw_from(mines)
        super().__init__(game, encoding, reuse)
