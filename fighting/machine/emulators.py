"""N running Duel cartridges that step together on a few threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from fighting.machine import duel
from fighting.machine.console import boot
from fighting.machine.emulator import SCREEN
from fighting.machine.frames import darker
from fighting.machine.trial import try_states
from fighting.rom import ROM_PATH
from fighting.signals import RAM_BYTES
from frugal_rl.vec_env.shares import Shares

if TYPE_CHECKING:
    from fighting.config import DuelConfig

ATTACKS = duel.A | duel.B


class Emulators:
    """The cartridges, their memory after the last step, and their screens.

    ram      (N, 98) uint8   state and fighters, see `signals`
    before   (N, 98) uint8   the same, one step earlier
    pixels   N views (144, 160) uint32 of the screens; valid where rendering is on
    """

    def __init__(self, config: DuelConfig, count: int) -> None:
        self.config, self.count = config, count
        self.machines = [boot() for _ in range(count)]
        self.pixels = [machine.pixels for machine in self.machines]
        self.ram = np.zeros((count, RAM_BYTES), np.uint8)
        self._rows = [row.data for row in self.ram]
        self.before = np.zeros_like(self.ram)
        self.renders = config.camera.renders
        self.films = False
        """Draw each step although nobody observes it: whoever wants many pictures sets it."""
        self.drawn = np.zeros(count, bool)
        self.pooled = (
            [np.zeros((*SCREEN, 4), np.uint8) for _ in range(count)] if config.max_pool else []
        )
        self.shares = Shares(config.threads)

    def begin(self, index: int, match: duel.MatchSettings) -> None:
        """Starts a match; with pictures, one more frame shows it."""
        machine = self.machines[index]
        duel.start_match(machine, match)
        if self.renders:
            machine.tick(1, True)
        self.drawn[index] = self.renders
        self._read(index)
        self.before[index] = self.ram[index]

    def step(
        self,
        first: np.ndarray,
        second: np.ndarray | None,
        after: Callable[[int], None],
    ) -> None:
        """One action each.

        Args:
            first: button bytes (N,) of player 1.
            second: those of player 2, in two-player modes.
            after: called with each cartridge's index, in its thread, once it has stepped.
        """
        np.copyto(self.before, self.ram)
        ones = first.tolist()
        twos: Sequence[int] | None = None if second is None else second.tolist()

        def act(i: int) -> None:
            self._hold(i, ones[i], 0 if twos is None else twos[i])
            after(i)

        self.shares.one_by_one(self.count, act)

    def _hold(self, i: int, one: int, two: int) -> None:
        """One action of both players on one machine."""
        skip, press = self.config.frame_skip, self.config.press_frames
        machine = self.machines[i]
        memory = machine.memory
        memory[duel.P1_IN] = one
        memory[duel.P2_IN] = two
        left = skip
        if 0 < press < skip and (one | two) & ATTACKS:
            machine.tick(press)
            memory[duel.P1_IN] = one & ~ATTACKS
            memory[duel.P2_IN] = two & ~ATTACKS
            left -= press
        if self.pooled and left > 1:
            machine.tick(left - 1, True)
            self.pooled[i][:] = machine.screen
            left = 1
        self.drawn[i] = self.renders or self.films
        machine.tick(left, self.renders or self.films)
        if self.pooled:
            darker(machine.screen, self.pooled[i])
        self._read(i)

    def _read(self, i: int) -> None:
        memory = self.machines[i].memory
        self._rows[i][:] = bytes(
            memory[0xC020:0xC036] + memory[0xC100:0xC126] + memory[0xC200:0xC226]
        )

    def picture(self, index: int) -> np.ndarray:
        """The screen of one cartridge as it is now, (144, 160, 3) uint8.

        Without pictures the cartridge goes a frame on and back again, which takes 40 ms.
        """
        machine = self.machines[index]
        if self.drawn[index]:
            return machine.screen[..., :3].copy()
        state = machine.save()
        machine.tick(1, True)
        picture = machine.screen[..., :3].copy()
        machine.load(state)
        return picture

    def save(self) -> list[bytes]:
        """The state of every cartridge."""
        return [machine.save() for machine in self.machines]

    def vet(self, states: Sequence[bytes]) -> None:
        """The emulator goes on from each state, in a child."""
        try_states(ROM_PATH.read_bytes(), states)

    def load(self, states: Sequence[bytes]) -> None:
        """Goes back to saved states."""
        for i, (machine, state) in enumerate(zip(self.machines, states, strict=True)):
            machine.load(state)
            self.drawn[i] = self.renders
            self._read(i)
        np.copyto(self.before, self.ram)

    def close(self) -> None:
        """Ends threads and emulation."""
        self.shares.close()
        for machine in self.machines:
            machine.close()
