"""`nclone/Npp-v0`: one ninja, one level at a time, the full observation."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from frugal_rl.vec_env.plain import SpecEnv
from nclone.config import NppConfig
from nclone.game import Game
from nclone.spec import ACTIONS


class NppEnv(SpecEnv):
    """N++ with its full observation, declared in `nclone.spec`.

    Action: 0 none, 1 left, 2 right, 3 jump, 4 jump+left, 5 jump+right, held for the frame skip.
    Terminates on win or death; truncates at the level's frame limit. `reset(options={"level": i})`
    chooses the i-th level of the configuration.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 60}  # noqa: RUF012 - Gymnasium's own

    def __init__(
        self,
        config: NppConfig | None = None,
        seed: int | None = None,
        render_mode: str | None = None,
    ) -> None:
        self.config = config or NppConfig()
        self.game = Game(self.config, self.config.open_levels("train"), 1, threads=1)
        super().__init__(self.config.spec(), self.game.tables, self.config.episode_steps)
        self.action_space: spaces.Space[Any] = spaces.Discrete(ACTIONS)
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

    def begin(self) -> None:
        """Start an episode on a drawn level, or on the one that `options` named."""
        self.game.seed([self.np_random])
        level = None if self._level is None else self.game.deal[[self._level]]
        self.game.begin(np.zeros(1, np.int64), level)

    def advance(self, action: Any) -> tuple[float, bool, bool, dict[str, Any]]:
        """Hold an action for the frame skip."""
        outcome = self.game.advance(np.array([action]))
        terminated = bool(outcome.won[0] or outcome.died[0])
        info: dict[str, Any] = {}
        if outcome.done[0]:
            stats = {k: float(v[0]) for k, v in self.game.stats(np.zeros(1, np.int64)).items()}
            info = {"success": stats["success"] > 0, "stats": stats}
        return float(outcome.reward[0]), terminated, bool(outcome.truncated[0]), info

    def raw(self) -> dict[str, np.ndarray]:
        """Stored fields and the level's id."""
        return {name: values[0] for name, values in self.game.observe().items()}

    def action_masks(self) -> np.ndarray:
        """[6] bool, the actions with an effect; as sb3-contrib's MaskablePPO asks for it."""
        mask: np.ndarray = self.game.observe()["action_mask"][0].astype(bool)
        return mask
