"""Game profiles: what a cartridge's memory means, what can be pressed, how an episode begins.

A profile is one YAML file (`fighting.cartridge.reading`); the ROM itself is the user's and is found
only where they say.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from fighting.cartridge.memory import Address, Status
from fighting.cartridge.pads import Pads
from fighting.cartridge.source import Source, Text
from fighting.machine.emulator import read_rom, sha1, sha256
from fighting.rom import image_of
from frugal_rl.errors import ConfigError
from frugal_rl.invocation import command

HEALTH = ("p1_hp", "p2_hp")
"""What a profile without expressions must know: it is then a fight."""


class System(Enum):
    """Which Game Boy: `dmg` has four shades, `cgb` colours."""

    dmg = "dmg"
    cgb = "cgb"


@dataclass(frozen=True)
class Image:
    """A cartridge image that a profile is known to fit, by the hash of its bytes."""

    digest: str
    """SHA-1, or SHA-256, in hexadecimal digits."""
    name: str
    bundled: bool = False

    def fits(self, rom: bytes) -> bool:
        """Whether these are its bytes."""
        return self.digest == (sha1 if len(self.digest) == 40 else sha256)(rom)


@dataclass(frozen=True)
class Goal:
    """What a game is about, as expressions over its memory."""

    reward: Mapping[str, Text]
    """Parts of the reward by name; their sum is paid for each step."""
    end: Text | None = None
    """Where this is not zero the episode is over."""
    success: Text | None = None
    """Looked at when an episode is over, by its end or by the time limit."""
    score: Text | None = None
    """A statistic of each episode, at its last step."""
    time_limit: float = 0.0
    """Seconds after which an episode is cut."""


@dataclass(frozen=True)
class Profile:
    """Everything that the environment knows about one game."""

    id: str
    title: str
    system: System
    roms: tuple[Image, ...]
    memory: Mapping[str, Address]
    ko_values: tuple[int, ...]
    round_seconds: int
    combos: tuple[int, ...]
    """Button bytes for a fighter who looks right."""
    macros: Mapping[str, tuple[tuple[int, int], ...]]
    """Name -> steps of (button byte, frames)."""
    source: Source
    goal: Goal | None = None
    """None where the game is a fight: health then says all."""
    features: Mapping[str, Text] = field(default_factory=dict)
    """What env.obs=ram shows, by name."""
    start: tuple[Mapping[str, Any], ...] = ()
    pads: Pads | None = None
    """None where one person plays."""
    fastest_startup: int = 0
    longest_startup: int = 0

    @property
    def feature_names(self) -> list[str]:
        """A name for each number of the features: `lives`, `around_0`, `around_1`, ..."""
        counted = {f: [f"{f}_{n}" for n in range(t.each)] or [f] for f, t in self.features.items()}
        return [name for names in counted.values() for name in names]

    def address(self, name: str) -> Address:
        """An address that must be known."""
        found = self.memory.get(name)
        if found is None or found.addr is None or found.status is Status.unknown:
            raise ConfigError(
                f"{self.source.at('memory')}: The profile '{self.id}' does not know where {name} "
                f"is. Find it with the probe ({command('play', 'probe=true')}) and add "
                f"memory.{name}."
            )
        return found

    def check_trainable(self, accept_guesses: bool) -> None:
        """Refuses a fight whose health addresses are unknown, or only guessed."""
        if self.goal is None:
            if not set(HEALTH) & set(self.memory):
                raise ConfigError(
                    f"{self.source.at()}: no reward and no end. Add reward: 'rise(score)' and "
                    "end: 'lives == 0'; of a fight memory.p1_hp and memory.p2_hp say both."
                )
            for name in HEALTH:
                self.check_sure(name, accept_guesses)

    def check_sure(self, name: str, accept_guesses: bool) -> None:
        """Refuses an address that is unknown, or only guessed."""
        if self.address(name).status is Status.guess and not accept_guesses:
            raise ConfigError(
                f"{self.source.at('memory', name)}: The profile '{self.id}' only guesses where "
                f"{name} is (${self.address(name).addr:04X}). Check it with the probe, or set "
                "env.accept_guesses=true."
            )

    def open_rom(self, path: str | None, allow_unknown: bool = False) -> bytes:
        """The cartridge image at `path`, which must be one that the profile lists."""
        if not path:
            for image in self.roms:
                if image.bundled and (own := image_of(image.digest)):
                    return read_rom(own)
            raise ConfigError(
                f"{self.source.at('roms')}: '{self.id}' needs your own cartridge image: "
                "env.rom=path/to/file.gb."
            )
        rom = read_rom(Path(path))
        if any(image.fits(rom) for image in self.roms):
            return rom
        known = ", ".join(f"{i.digest} ({i.name})" for i in self.roms) or "none yet"
        problem = (
            f"{path} has the SHA-1 {sha1(rom)}; the profile '{self.id}' "
            f"({self.source.at('roms')}) fits {known}. Addresses may differ in other versions."
        )
        if not allow_unknown:
            raise ConfigError(f"{problem} Set env.allow_unknown_rom=true to try it anyway.")
        warnings.warn(problem, stacklevel=2)
        return rom
