"""From what a policy chooses to the buttons of a fighter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from gymnasium import spaces

from fighting.cartridge.buttons import facing_left, sided_combos
from fighting.choices import Actions

if TYPE_CHECKING:
    from fighting.cartridge.profile import Profile


class Choice(Protocol):
    """What a configuration says of actions."""

    actions: Actions
    frame_skip: int
    sticky: float
    """Chance that an action is the one before instead."""


def action_space(profile: Profile, actions: Actions) -> spaces.Space[Any]:
    """Discrete over sets of buttons (and macros), or eight switches."""
    if actions is Actions.buttons:
        return spaces.MultiBinary(8)
    macros = len(profile.macros) if actions is Actions.macros else 0
    return spaces.Discrete(len(profile.combos) + macros)


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

    def __init__(self, profile: Profile, choice: Choice, count: int) -> None:
        self.choice = choice
        self.combos = sided_combos(profile.combos)
        self.macros = [self._steps(steps, choice.frame_skip) for steps in profile.macros.values()]
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
        if self.choice.actions is Actions.buttons:
            weights = 1 << np.arange(8)
            bytes_ = (np.asarray(actions, np.int64).reshape(-1, 8) * weights).sum(axis=1)
            return np.array([_switches(int(b)) for b in bytes_], np.uint8)
        chosen = np.asarray(actions, np.int64).reshape(-1)
        if self.choice.sticky:
            stay = np.array([rng.random() < self.choice.sticky for rng in rngs])
            chosen = np.where(stay, self.last, chosen)
        self.last[:] = chosen
        if self.choice.actions is Actions.macros:
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
