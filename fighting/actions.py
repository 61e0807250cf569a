"""From what a policy chooses to the buttons of a fighter."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fighting.cartridge.profile import facing_left, sided_combos
from fighting.choices import Actions

if TYPE_CHECKING:
    from fighting.config import DuelConfig


def _switches(byte: int) -> int:
    """A button byte without Start and Select, opposite directions cancelled."""
    byte &= 0xF3
    if byte & 0x30 == 0x30:
        byte &= ~0x30
    if byte & 0xC0 == 0xC0:
        byte &= ~0xC0
    return byte


class Hands:
    """Turns actions of N rows into button bytes, step by step.

    A macro takes as many steps as its frames fill; while it runs, the policy's choices are ignored
    and `left` counts its steps down.
    """

    def __init__(self, config: DuelConfig, count: int) -> None:
        profile = config.profile
        self.config = config
        self.combos = sided_combos(profile.combos)
        self.macros = [self._steps(steps, config.frame_skip) for steps in profile.macros.values()]
        self.left = np.zeros(count, np.int64)
        self.running = np.zeros(count, np.int64)
        self.last = np.zeros(count, np.int64)

    @staticmethod
    def _steps(steps: tuple[tuple[int, int], ...], skip: int) -> list[int]:
        """The button byte of each step of a macro; a part of a step counts as one."""
        return [byte for byte, frames in steps for _ in range(-(-frames // skip))]

    def begin(self, rows: np.ndarray) -> None:
        """New episodes hold nothing."""
        self.left[rows] = 0
        self.last[rows] = 0

    def buttons(
        self, actions: np.ndarray, left_side: np.ndarray, rngs: list[np.random.Generator]
    ) -> np.ndarray:
        """Actions (N,) or (N, 8) -> button bytes (N,); `left_side` (N,) of 0 and 1."""
        if self.config.actions is Actions.buttons:
            weights = 1 << np.arange(8)
            bytes_ = (np.asarray(actions, np.int64).reshape(-1, 8) * weights).sum(axis=1)
            return np.array([_switches(int(b)) for b in bytes_], np.uint8)
        chosen = np.asarray(actions, np.int64).reshape(-1)
        if self.config.sticky:
            stay = np.array([rng.random() < self.config.sticky for rng in rngs])
            chosen = np.where(stay, self.last, chosen)
        self.last[:] = chosen
        if self.config.actions is Actions.macros:
            return self._macros(chosen, left_side)
        out: np.ndarray = self.combos[left_side, chosen]
        return out

    def _macros(self, chosen: np.ndarray, left_side: np.ndarray) -> np.ndarray:
        plain = chosen < self.combos.shape[1]
        out: np.ndarray = self.combos[left_side, np.where(plain, chosen, 0)]
        starts = ~plain & (self.left == 0)
        for row in np.flatnonzero(starts):
            self.running[row] = chosen[row] - self.combos.shape[1]
            self.left[row] = len(self.macros[self.running[row]])
        for row in np.flatnonzero(self.left > 0):
            steps = self.macros[self.running[row]]
            byte = steps[len(steps) - self.left[row]]
            out[row] = byte if left_side[row] else facing_left(byte)
            self.left[row] -= 1
        return out
