"""One mine for plain Gymnasium users, with the full observation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from frugal_rl.vec_env.game_env import GameEnv

if TYPE_CHECKING:
    from mine_rl_npv.game import MineGame


class MineEnv(GameEnv):
    """Digs one column, block, cone or bench per step; the return is discounted value.

    Rewards are money over the undiscounted value of the ultimate pit, so gamma is 1. Terminates
    when nothing is left to dig, truncates after `max_steps`. An action that can do nothing costs a
    step and earns `invalid_reward`.
    """

    game: MineGame

    def __init__(self, game: MineGame, mines: np.ndarray) -> None:
        super().__init__(game, game.spec, game.max_steps)
        names = {f.name for f in game.spec.fields}
        game.watch(names & {"pit", "depth", "columns", "action_mask"})  # any storage may ask
        game.draw_from(mines)

    def action_masks(self) -> np.ndarray:
        """(actions,) bool, as other libraries ask for it."""
        return self.game.masks()[0]
