"""`nclone/Npp-v0`: one ninja, one level at a time, the full observation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np

from frugal_rl.vec_env.game_env import FIRST, GameEnv
from nclone.game import NppGame

if TYPE_CHECKING:
    from nclone.config import NppConfig


class NppEnv(GameEnv):
    """N++ with its full observation, declared in `nclone.spec`.

    Action: 0 none, 1 left, 2 right, 3 jump, 4 jump+left, 5 jump+right, held for the frame skip.
    Terminates on win or death; truncates at the level's frame limit. `reset(options={"level": i})`
    chooses the i-th level of the configuration.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 60}  # noqa: RUF012 - Gymnasium's own
    game: NppGame

    def __init__(
        self, config: NppConfig, seed: int | None = None, render_mode: str | None = None
    ) -> None:
        self.config = config
        game = NppGame(config, config.open_levels("train"), 1, threads=1)
        super().__init__(game, config.spec(), config.episode_steps)
        self.render_mode = render_mode
        self._level: int | None = None
        if seed is not None:
            gym.Env.reset(self, seed=seed)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Start an episode; returns the full observation."""
        self._level = (options or {}).get("level")
        return super().reset(seed=seed, options=options)

    def start(self) -> None:
        """Start an episode on a drawn level, or on the one that `options` named."""
        level = None if self._level is None else self.game.levels.playlist[[self._level]]
        self.game.begin(FIRST, level)

    def action_masks(self) -> np.ndarray:
        """[6] bool, the actions with an effect; as sb3-contrib's MaskablePPO asks for it."""
        mask: np.ndarray = self.game.observe()["action_mask"][0].astype(bool)
        return mask
