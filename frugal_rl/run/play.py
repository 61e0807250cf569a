"""Playing and watching: the options that every environment's `play` takes, and a window.

An environment that can be played has the tool `play` (see `frugal_rl.run.tools`), which yields a
line for each file it wrote; `scripts/play.py` knows nothing else of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Any

import numpy as np

from frugal_rl.errors import ConfigError, FrugalError
from frugal_rl.invocation import installing


class WindowError(FrugalError, RuntimeError):
    """A window cannot be opened on this machine."""


class Probe(Enum):
    """What is listened to while addresses are looked for in a cartridge's memory."""

    off = "off"
    random = "random"
    """Random play; nobody says what happens."""
    on = random  # what `probe=true` says
    person = "person"
    """You, in a window: keys say that something was lost, gained, or that nothing happened."""
    replay = "replay"
    """The recording `replay`, with what happened in the file `marks`."""


@dataclass(frozen=True)
class PlayOptions:
    """The options of `scripts/play.py` beside those of a run."""

    checkpoint: str = ""
    """Run folder of a policy; empty leaves the keyboard to you."""
    deterministic: bool = True
    """True takes the policy's most likely action."""
    episodes: int = 0
    """Episodes to play; 0 goes on until the window is closed, and plays one for a film."""
    video: str = ""
    """Film into this file, .mp4 or .gif; a policy is then filmed without a window."""
    record: str = ""
    """Folder for a replay of each finished episode."""
    report: str = ""
    """Folder for a page on every level: won or not, time, film (a policy, N++ only)."""
    scale: float = 1.0
    """Size of the picture."""
    crop: bool = True
    """Leave out what is the same in all levels (N++: the solid part around them)."""
    every: int = 1
    """Film only every so many frames; the film keeps its speed."""
    frames: int = 0
    """Leave after so many frames; 0 never."""
    solver: bool = False
    """Let the searcher play: every level is won by search first (N++ only)."""
    probe: Probe = Probe.off
    """Look for addresses in a cartridge's memory (Game Boy only)."""
    replay: str = ""
    """The recording that `probe=replay` listens to."""
    marks: str = ""
    """What happened in it: lines such as `312,lost`, a frame and lost, gained or nothing."""

    def __post_init__(self) -> None:
        if not 0.25 <= self.scale <= 8:
            raise ConfigError(f"scale is {self.scale}; use 0.25 to 8.")
        if self.every < 1 or self.episodes < 0 or self.frames < 0:
            raise ConfigError("every must be 1 or more, episodes and frames 0 or more.")
        if self.probe is Probe.replay and not (self.replay and self.marks):
            raise ConfigError(
                "probe=replay listens to a recording: name it and what happened in it by "
                "replay=FILE.replay marks=FILE.csv."
            )
        for name in ("replay", "marks") if self.probe is not Probe.replay else ():
            if getattr(self, name):
                raise ConfigError(
                    f"{name}= is read by probe=replay alone; add that, or leave it out."
                )

    def without(self, env: str, *names: str) -> PlayOptions:
        """These options, for an environment that has no use for some of them.

        Raises:
            ConfigError: one of those was given.
        """
        unused = [f for f in fields(self) if f.name in names]
        for option in (f for f in unused if getattr(self, f.name) != f.default):
            given = getattr(self, option.name)
            value = given.name if isinstance(given, Enum) else str(given).lower()
            raise ConfigError(
                f"{option.name}={value} changes nothing with env={env}; leave it out."
            )
        return self


FILMS = "video=out.mp4 films a checkpoint instead: checkpoint=RUN"
"""What one can do without a screen, where a tool knows of nothing else."""
UNSEEN = "offscreen"
"""What SDL falls back to without a display: nobody would see the window, nor end it by a key."""


@dataclass
class Keys:
    """What the keyboard did: names of keys held down, of keys newly pressed, and a wish to go."""

    held: set[str] = field(default_factory=set)
    pressed: list[str] = field(default_factory=list)
    closed: bool = False


class Window:
    """Shows frames [H, W, 3] uint8 at a steady rate and reports keys; needs pygame-ce.

    Args:
        title: the caption; `name` changes it.
        shape: of a frame.
        scale: size of the picture.
        instead: what one can do without a screen, for the refusal.

    Raises:
        WindowError: pygame-ce is not installed, or there is no screen.
    """

    def __init__(
        self, title: str, shape: tuple[int, ...], scale: float = 1.0, instead: str = FILMS
    ) -> None:
        try:
            import pygame
        except ImportError as error:
            raise WindowError(
                f"Without a screen, {instead}. A window needs pygame-ce: {installing('play')}"
            ) from error
        self._pygame: Any = pygame
        self._keys = Keys()
        size = (round(shape[1] * scale), round(shape[0] * scale))
        try:
            pygame.display.init()
            if pygame.display.get_driver() == UNSEEN:
                raise pygame.error("there is no display")
            self._surface = pygame.display.set_mode(size)
        except pygame.error as error:
            pygame.display.quit()  # else the next window of this process is refused as well
            raise WindowError(
                f"No window can be opened ({error}). Without a screen, {instead}."
            ) from error
        self.name(title)
        self._clock = pygame.time.Clock()

    def name(self, title: str) -> None:
        """Give the window another caption."""
        self._pygame.display.set_caption(title)

    def show(self, picture: np.ndarray, rate: float = 60.0) -> Keys:
        """Show a frame, wait until its time is over, and tell what the keyboard did meanwhile."""
        pygame = self._pygame
        turned = np.ascontiguousarray(picture[..., :3].swapaxes(0, 1))
        image = pygame.surfarray.make_surface(turned)
        if image.get_size() != self._surface.get_size():
            image = pygame.transform.scale(image, self._surface.get_size())
        self._surface.blit(image, (0, 0))
        pygame.display.flip()
        self._clock.tick(rate)
        return self._read_keys()

    def _read_keys(self) -> Keys:
        pygame, keys = self._pygame, self._keys
        keys.pressed = []
        for event in pygame.event.get():
            if event.type == pygame.QUIT:
                keys.closed = True
            elif event.type == pygame.KEYDOWN:
                name = pygame.key.name(event.key)
                keys.closed |= name == "escape"
                keys.held.add(name)
                keys.pressed.append(name)
            elif event.type == pygame.KEYUP:
                keys.held.discard(pygame.key.name(event.key))
        return keys

    def close(self) -> None:
        """Close the window."""
        self._pygame.display.quit()
