"""One mine for plain Gymnasium users, with the full observation."""

from __future__ import annotations

from typing import Any

import numpy as np

from frugal_rl.vec_env.plain import SpecEnv
from mine_rl_npv.game import MineGame, first_draw


class MineEnv(SpecEnv):
    """Digs one column, block, cone or bench per step; the return is discounted value.

    Rewards are money over the undiscounted value of the ultimate pit, so gamma is 1. Terminates
    when nothing is left to dig, truncates after `max_steps`. An action that can do nothing costs a
    step and earns `invalid_reward`.
    """

    def __init__(self, game: MineGame, mines: np.ndarray) -> None:
        self.game = game
        self.mines = mines
        self.action_space = game.action_space
        super().__init__(game.spec, game.tables, game.max_steps)
        names = {f.name for f in game.spec.fields}
        self._given = frozenset(names & {"pit", "depth", "columns", "action_mask"})
        game.watch(self._given)

    def restart(self, seed: int | None = None) -> None:
        """Starts an episode; without a seed the pit's own random state goes on."""
        if seed is not None:
            self.game.seed(np.array([first_draw(seed)]))
        elif self.game.pits.seed[0] == 0:
            self.game.seed(np.array([first_draw(int(self.np_random.integers(2**31)))]))
        super().restart(seed)

    def begin(self) -> None:
        """Draws a mine."""
        self.game.begin(np.zeros(1, np.int64), self.mines)

    def advance(self, action: Any) -> tuple[float, bool, bool, dict[str, Any]]:
        """One action."""
        game = self.game
        game.advance(np.array([int(action)]))
        over, late = bool(game.terminated[0]), bool(game.truncated[0])
        info: dict[str, Any] = {}
        if over or late:
            stats = {name: float(v[0]) for name, v in game.outcomes(np.zeros(1, int)).items()}
            info = {"success": bool(stats.pop("success")), "stats": stats}
        return float(game.reward[0]), over, late, info

    def raw(self) -> dict[str, np.ndarray]:
        """Raw fields of the one pit, with those that others could derive: any storage may ask."""
        return {name: values[0] for name, values in self.game.raw(self._given).items()}

    def action_masks(self) -> np.ndarray:
        """(actions,) bool, as other libraries ask for it."""
        return self.game.masks()[0]
