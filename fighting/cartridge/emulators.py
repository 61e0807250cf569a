"""N running cartridges of any game that step together on a few threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from fighting.cartridge.start_states import StartStates
from fighting.cartridge.watching import watch
from fighting.machine.emulator import SCREEN, Emulator
from fighting.machine.frames import darker
from fighting.machine.trial import try_states
from frugal_rl.vec_env.shares import Shares

if TYPE_CHECKING:
    from fighting.cartridge.config import GameBoyConfig
    from fighting.cartridge.scene import Watched

PRESSED = 3
"""A and B: the buttons that are let go of within a step, so that the next press is a new one."""


class CartridgeEmulators:
    """The machines, what is watched of their memory, and their screens.

    memory  (N, A) uint8   watched bytes, by column
    points  (N, P) uint8   watched pixels' grey values
    drawn   whether each step's last frame is drawn; whoever wants pictures sets it
    """

    def __init__(self, config: GameBoyConfig, count: int, watched: Watched) -> None:
        self.config, self.count, self.watched = config, count, watched
        self.rom = config.game.open_rom(config.rom, config.allow_unknown_rom)
        self.machines = [Emulator(self.rom) for _ in range(count)]
        self.states = StartStates(config.cache, self.machines[0], self.rom, config.game)
        self.runs = watched.runs()
        self.memory = np.zeros((count, len(watched.addresses)), np.uint8)
        self.points = np.zeros((count, len(watched.pixels)), np.uint8)
        self.drawn = config.camera.renders or bool(watched.pixels)
        pooled = count if config.max_pool and self.drawn else 0
        self.pooled = np.zeros((pooled, *SCREEN, 4), np.uint8)
        self.shares = Shares(config.threads)

    def begin(self, index: int, rng: np.random.Generator, second: bool) -> None:
        """A start state and some frames; `second` seats somebody at the second pad."""
        machine, pads = self.machines[index], self.config.game.pads
        self.states.load(int(rng.integers(len(self.states.states))), machine)
        if second and pads is not None:
            pads.begin(machine)
        wait = 1 + int(rng.integers(self.config.warmup_noop_max + 1))
        machine.tick(wait, self.drawn)
        self._watch(index)

    def step(
        self, first: Sequence[int], second: Sequence[int] | None, after: Callable[[int], None]
    ) -> None:
        """One action each.

        Args:
            first: button bytes of the joypads.
            second: those of the second pads, where somebody sits there.
            after: called with each cartridge's index, in its thread, once it has stepped.
        """

        def act(i: int) -> None:
            self._hold(i, first[i], None if second is None else second[i])
            after(i)

        self.shares.one_by_one(self.count, act)

    def _hold(self, i: int, one: int, two: int | None) -> None:
        """Hold the buttons of both pads for the frame skip."""
        config, machine = self.config, self.machines[i]
        left = config.frame_skip
        self._press(machine, one, two)
        if 0 < config.press_frames < left and (one | (two or 0)) & PRESSED:
            machine.tick(config.press_frames)
            self._press(machine, one & ~PRESSED, None if two is None else two & ~PRESSED)
            left -= config.press_frames
        if len(self.pooled) and left > 1:
            machine.tick(left - 1, True)
            self.pooled[i] = machine.screen
            left = 1
        machine.tick(left, self.drawn)
        if len(self.pooled):
            darker(machine.screen, self.pooled[i])
        self._watch(i)

    def _press(self, machine: Emulator, one: int, two: int | None) -> None:
        machine.hold(one)
        if two is not None:
            assert self.config.game.pads is not None
            machine.memory[self.config.game.pads.second] = two

    def _watch(self, i: int) -> None:
        watch(self.machines[i], self.watched, self.runs, self.memory[i], self.points[i])

    @property
    def nbytes(self) -> int:
        """Bytes of the pictures that two frames are joined from."""
        return self.pooled.nbytes

    def save(self) -> list[bytes]:
        """The state of every cartridge."""
        return [machine.save() for machine in self.machines]

    def vet(self, states: Sequence[bytes]) -> None:
        """The emulator goes on from each state, in a child."""
        try_states(self.rom, states)

    def load(self, states: Sequence[bytes], held: Sequence[int]) -> None:
        """Goes back to saved states, in which these buttons are held."""
        for machine, state, buttons in zip(self.machines, states, held, strict=True):
            machine.load(state)
            machine.held = buttons

    def close(self) -> None:
        """Ends threads and emulation."""
        self.shares.close()
        for machine in self.machines:
            machine.close()
