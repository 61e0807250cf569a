"""Any cartridge as a plain Gymnasium environment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fighting.cartridge.game import CartridgeGame
from frugal_rl.vec_env.game_env import GameEnv

if TYPE_CHECKING:
    from fighting.cartridge.config import GameBoyConfig


class GameBoyEnv(GameEnv):
    """One game on the user's cartridge, player 1 on the joypad; `info["paid"]` has reward parts."""

    game: CartridgeGame

    def __init__(self, config: GameBoyConfig, seed: int | None = None) -> None:
        self.config = config
        self.render_mode = "rgb_array"
        super().__init__(CartridgeGame(config, 1), config.spec(), config.episode_steps)
        if seed is not None:
            self.reset(seed=seed)

    def advance(self, action: Any) -> tuple[float, bool, bool, dict[str, Any]]:
        """One action; `info` tells a spectator what each part of the reward has paid so far."""
        reward, terminated, truncated, info = super().advance(action)
        paid = {name: float(total[0]) for name, total in self.game.totals.items()}
        return reward, terminated, truncated, {**info, "paid": paid}

    def render(self) -> np.ndarray:
        """The screen as it is now, [144, 160, 3] uint8."""
        machine = self.game.emulators.machines[0]
        if not self.game.emulators.drawn:
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
