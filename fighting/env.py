"""Duel as a plain Gymnasium environment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from fighting.game import DuelGame
from fighting.machine import duel
from frugal_rl.errors import ConfigError
from frugal_rl.observation.tables import Tables
from frugal_rl.vec_env.plain import Raw, SpecEnv

if TYPE_CHECKING:
    from fighting.config import DuelConfig

EVERY = np.arange(1)


class DuelEnv(SpecEnv):
    """One fight against one opponent.

    Observation: the fields of `config.spec()`. Action: `config.action_space()`, directions relative
    to the opponent. Terminates when the round (or match) is decided, by the clock too; truncates
    after `config.longest` steps. `reset(options=...)` takes `level`, `side` (0 or 1), `hp`
    (own first) and `gap`.
    """

    def __init__(self, config: DuelConfig, seed: int | None = None) -> None:
        self.config = config
        if self.config.pairs(1):
            raise ConfigError("One environment has one seat: set env.pool_share=1.")
        self.game = DuelGame(self.config, 1, "train")
        self.action_space = self.config.action_space()
        self.render_mode = "rgb_array"
        self._options: Mapping[str, Any] = {}
        super().__init__(self.config.spec(), Tables(), self.config.episode_steps)
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

    def begin(self) -> None:
        """Start a match; all randomness comes from `self.np_random`."""
        self.game.seed([self.np_random])
        self.game.begin(EVERY, self._options)
        self._options = {}

    def step(self, action: Any) -> tuple[dict[str, np.ndarray], float, bool, bool, dict[str, Any]]:
        """Hold one action for the frame skip; `info` is what a spectator may know."""
        observation, reward, terminated, truncated, info = super().step(action)
        return observation, reward, terminated, truncated, self._info() | info

    def advance(self, action: Any) -> tuple[float, bool, bool, dict[str, Any]]:
        """The same without observation; `info` has the statistics of an episode that ended."""
        reward, terminated, truncated = self.game.advance(np.asarray(action)[None])
        info: dict[str, Any] = {}
        if terminated[0] or truncated[0]:
            stats = {name: float(v[0]) for name, v in self.game.stats(EVERY).items()}
            info["success"] = bool(stats.pop("success"))
            info["episode_fight"] = {
                "win": stats["score"],
                "length": stats["length"],
                "seconds": stats["seconds"],
            }
            stats.pop("length")
            info["stats"] = stats
        return float(reward[0]), bool(terminated[0]), bool(truncated[0]), info

    def _info(self) -> dict[str, Any]:
        """What a spectator may know."""
        game = self.game
        ram = game.emulators.ram[0]
        seat = int(game.seats[0])
        me, he = (22, 60) if seat == 0 else (60, 22)
        return {
            "hp": (int(ram[me]), int(ram[he])),
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

    def raw(self) -> Raw:
        """Raw fields of the current observation."""
        return {name: values[0] for name, values in self.game.observe().items()}

    def render(self) -> np.ndarray:
        """The screen as it is now, [144, 160, 3] uint8."""
        machine = self.game.emulators.machines[0]
        if not self.game.emulators.renders:
            state = machine.save()
            machine.tick(1, True)
            picture = machine.screen[..., :3].copy()
            machine.load(state)
            return picture
        return machine.screen[..., :3].copy()

    def state(self) -> dict[str, Any]:
        """The emulator's state and the environment's counters."""
        return self.game.state()

    def set_state(self, state: dict[str, Any]) -> None:
        """Go back to `state()`."""
        self.game.load(state)
        self.np_random = self.game.rngs[0]

    def close(self) -> None:
        """End the emulation."""
        self.game.close()
