"""Any Game Boy fighter as a plain Gymnasium environment: the user's own cartridge image."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fighting.cartridge.profile import facing_left
from fighting.cartridge.start_states import StartStates, value_at
from fighting.machine.emulator import Emulator
from fighting.machine.frames import colour, darker, grey, half_screen
from fighting.spec import Camera, View
from frugal_rl.observation.tables import Tables
from frugal_rl.vec_env.plain import Raw, SpecEnv

if TYPE_CHECKING:
    from fighting.cartridge.config import GameBoyConfig


class GameBoyEnv(SpecEnv):
    """One fight on the user's cartridge, player 1 on the joypad.

    Health that rises is a new round, not a reward. Terminates when a fighter is knocked out, or
    when the profile's phase says that the round is over; truncates after `config.longest` steps.
    """

    def __init__(self, config: GameBoyConfig, seed: int | None = None) -> None:
        self.config, self.game = config, config.game
        rom = self.game.open_rom(config.rom, config.allow_unknown_rom)
        self.emulator = Emulator(rom)
        self.states = StartStates(config.cache, self.emulator, rom, self.game)
        self.combos = [(b, facing_left(b)) for b in self.game.combos]
        self.action_space = config.action_space()
        self.steps = 0
        camera = Camera(config.obs, config.crop, config.stack)
        self.frame = np.zeros(camera.shape, np.uint8)
        self.last = np.zeros_like(self.emulator.screen)
        super().__init__(config.spec(), Tables(), config.episode_steps)
        if seed is not None:
            self.reset(seed=seed)

    def begin(self) -> None:
        """Load a start state and wait a random number of frames."""
        self.states.load(int(self.np_random.integers(len(self.states.states))))
        self.emulator.tick(1 + int(self.np_random.integers(self.config.warmup_noop_max + 1)), True)
        self.steps = 0
        self.health = self._health()
        self._picture()

    def advance(self, action: Any) -> tuple[float, bool, bool, dict[str, Any]]:
        """Hold one set of buttons for the frame skip."""
        config, emulator = self.config, self.emulator
        byte = self.combos[int(action)][0 if self._on_the_left() else 1]
        emulator.hold(byte)
        left = config.frame_skip
        if 0 < config.press_frames < left and byte & 3:
            emulator.tick(config.press_frames)
            emulator.hold(byte & ~3)
            left -= config.press_frames
        if config.max_pool and left > 1:
            emulator.tick(left - 1, True)
            self.last[:] = emulator.screen
            left = 1
        emulator.tick(left, True)
        if config.max_pool:
            darker(emulator.screen, self.last)
        self._picture()
        self.steps += 1
        return self._judged()

    def _judged(self) -> tuple[float, bool, bool, dict[str, Any]]:
        before, self.health = self.health, self._health()
        taken, dealt = (max(b - a, 0.0) for b, a in zip(before, self.health, strict=True))
        down = [h == 0 for h in self.health]
        weights = self.config.reward
        reward = weights.dealt * dealt - weights.taken * taken - weights.time
        reward += weights.ko * (float(down[1]) - float(down[0]))
        terminated = any(down) or self._phase_over()
        won = terminated and self.health[0] > self.health[1]
        truncated = not terminated and self.steps >= self.config.longest
        return reward, terminated, truncated, {"success": won, "hp": self.health}

    def _health(self) -> tuple[float, float]:
        """Shares of a full bar; values that mean knocked out are 0."""
        shares = []
        for name in ("p1_hp", "p2_hp"):
            address = self.game.address(name)
            value = value_at(self.emulator, address)
            shares.append(0.0 if value in self.game.ko_values else value / address.max)
        return shares[0], shares[1]

    def _phase_over(self) -> bool:
        phase = self.game.memory.get("phase")
        if phase is None or phase.addr is None:
            return False
        return value_at(self.emulator, phase) in (*phase.over, *phase.match_over)

    def _on_the_left(self) -> bool:
        """Where the profile knows both places; else as at the start."""
        places = [self.game.memory.get(n) for n in ("p1_x", "p2_x")]
        if any(p is None or p.addr is None for p in places):
            return True
        one, two = (value_at(self.emulator, p) for p in places if p is not None)
        return one <= two

    def _picture(self) -> None:
        takes: dict[View, Any] = {
            View.rgb: colour,
            View.gray: grey,
            View.half_size: half_screen,
        }
        takes[self.config.obs](self.emulator.pixels, False, self.frame)

    def raw(self) -> Raw:
        """The current frame."""
        return {"frame": self.frame}

    def close(self) -> None:
        """End the emulation."""
        self.emulator.close()
