"""What a fight can be set to: the words of `conf/env/fighting.yaml`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from frugal_rl.errors import ConfigError


class Episode(Enum):
    """Where an episode ends."""

    round = "round"
    match = "match"


class Actions(Enum):
    """What the policy chooses from."""

    combos = "combos"
    """The profile's sets of buttons."""
    macros = "macros"
    """The sets of buttons, and the profile's special moves as one action each."""
    buttons = "buttons"
    """Eight switches, one per button."""


class Emulation(Enum):
    """What runs the cartridge."""

    pyboy = "pyboy"
    """The emulator: everything, pictures too."""
    native = "native"
    """The cartridge's logic translated to C: the same fights, no pictures."""


class Rival(Enum):
    """Who the opponent is."""

    cpu = "cpu"
    """The cartridge's own player, at one of `levels`."""
    curriculum = "curriculum"
    """The cartridge's own player; the level rises as it is beaten."""
    still = "still"
    random = "random"
    masher = "masher"
    heavy = "heavy"
    spammer = "spammer"
    riser = "riser"
    blocker = "blocker"
    turtle = "turtle"
    policy = "policy"
    """The frozen policy of a checkpoint, `env.rival`: whoever beats it has found its weakness."""
    self_play = "self_play"
    """The learning policy itself and its past: two seats per cartridge."""
    mixed = "mixed"
    """Self-play in which some fights meet the cartridge's own player."""


class PoolChoice(Enum):
    """How a past self is drawn."""

    uniform = "uniform"
    latest = "latest"
    """Half of the draws take one of the last three."""
    closest = "closest"
    """Those rated nearest to the present self are the likeliest."""
    hardest = "hardest"
    """By the square of the score that their ratings promise them (Vinyals et al. 2019)."""


@dataclass(frozen=True)
class Weights:
    """How much each event counts; health is counted in shares of a full bar."""

    dealt: float = 1.0
    taken: float = 1.0
    ko: float = 0.5
    """Knocking out, or being knocked out."""
    win: float = 1.0
    """Winning or losing the match."""
    time: float = 0.0
    """Price of one step."""

    def __post_init__(self) -> None:
        if min(self.dealt, self.taken, self.ko, self.win, self.time) < 0:
            raise ConfigError("env.reward has a negative weight; all weights are 0 or more.")

    def array(self) -> np.ndarray:
        """[5] float64."""
        return np.array([self.dealt, self.taken, self.ko, self.win, self.time])
