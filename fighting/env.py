"""Duel as a plain Gymnasium environment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from fighting.game import DuelGame
from fighting.machine import duel
from fighting.signals import FIRST as FIRST_FIGHTER
from fighting.signals import SECOND as SECOND_FIGHTER
from frugal_rl.errors import ConfigError
from frugal_rl.vec_env.game_env import FIRST, GameEnv

if TYPE_CHECKING:
    from fighting.config import DuelConfig


class DuelEnv(GameEnv):
    """One fight against one opponent.

    Observation: the fields of `config.spec()`. Action: `config.action_space()`, directions relative
    to the opponent. Terminates when the round (or match) is decided, by the clock too; truncates
    after `config.longest` steps. `reset(options=...)` takes `level`, `side` (0 or 1), `hp`
    (own first) and `gap`.
    """

    game: DuelGame

    def __init__(self, config: DuelConfig, seed: int | None = None) -> None:
        self.config = config
        self.render_mode = "rgb_array"
        self._options: Mapping[str, Any] = {}
        super().__init__(DuelGame(config, 1, "train"), config.spec(), config.episode_steps)
        if seed is not None:
            self.reset(seed=seed)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Start a fight; see the class for `options`."""
        unknown = set(options or {}) - {"level", "side", "hp", "gap"}
        if unknown:
            raise ConfigError(f"reset knows no option {sorted(unknown)}; use level, side, hp, gap.")
        self._options = options or {}
        observation, _ = super().reset(seed=seed)
        return observation, self._info()

    def start(self) -> None:
        """Start a match, as the options of `reset` want it."""
        self.game.begin(FIRST, self._options)
        self._options = {}

    def step(self, action: Any) -> tuple[dict[str, np.ndarray], float, bool, bool, dict[str, Any]]:
        """Hold one action for the frame skip; `info` is what a spectator may know."""
        observation, reward, terminated, truncated, info = super().step(action)
        return observation, reward, terminated, truncated, self._info() | info

    def advance(self, action: Any) -> tuple[float, bool, bool, dict[str, Any]]:
        """The same without observation; `info` has the statistics of an episode that ended."""
        reward, terminated, truncated, info = super().advance(action)
        if "stats" in info:
            stats = info["stats"]
            info["episode_fight"] = {
                "win": stats["score"],
                "length": stats.pop("length"),
                "seconds": stats["seconds"],
            }
        return reward, terminated, truncated, info

    def health(self) -> tuple[int, int]:
        """Own health and the opponent's."""
        ram = self.game.emulators.ram[0]
        me, he = (FIRST_FIGHTER, SECOND_FIGHTER)[:: 1 if self.game.seats[0] == 0 else -1]
        return int(ram[me]), int(ram[he])

    def _info(self) -> dict[str, Any]:
        """What a spectator may know."""
        game = self.game
        ram = game.emulators.ram[0]
        seat = int(game.seats[0])
        me = FIRST_FIGHTER if seat == 0 else SECOND_FIGHTER
        return {
            "hp": self.health(),
            "timer": int(ram[duel.TIMER]),
            "wins": (int(ram[duel.WINS1 + seat]), int(ram[duel.WINS1 + 1 - seat])),
            "result": int(ram[duel.RESULT]),
            "reason": int(ram[duel.REASON]),
            "dealt": float(game.totals[0, 0]),
            "taken": float(game.totals[0, 1]),
            "landed": int(ram[me + duel.LANDED]),
            "blocked": int(ram[me + duel.BLOCKED]),
            "level": int(game.level[0]),
            "frame": int(ram[duel.FRAME]) + 256 * int(ram[duel.FRAME + 1]),
            "phase": int(ram[duel.PHASE]),
            "side": seat,
            "opponent": self.config.opponent.value,
            "macro_left": int(game.hands.left[0]),
        }

    def render(self) -> np.ndarray:
        """The screen as it is now, [144, 160, 3] uint8."""
        return self.game.emulators.picture(0)

    def state(self) -> dict[str, Any]:
        """The emulator's state and the environment's counters."""
        return self.game.state()

    def set_state(self, state: dict[str, Any]) -> None:
        """Go back to `state()`."""
        self.game.load(state)
        self.np_random = self.game.rngs[0]
