"""Playing by hand: a window, two keyboards halves, the computer or a policy as the opponent.

`python -m fighting.play [checkpoint]`: arrows and A, S for player 1; I J K L and G, H for player 2.
R restarts, 0 to 7 set the level, F freezes, Esc leaves. What is played is kept as a replay.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from fighting import duel
from fighting.duel import DOWN, LEFT, RIGHT, SELECT, START, UP, A, B
from fighting.emulator import Emulator
from fighting.opponents import Script
from fighting.profile import facing_left, load_profile
from fighting.replay import Replay
from fighting.signals import FIRST, RAM_BYTES, SECOND, SIGNALS, look

FIRST_KEYS: Mapping[str, int] = {
    "right": RIGHT, "left": LEFT, "up": UP, "down": DOWN, "a": A, "s": B, "return": START,
    "backspace": SELECT,
}  # fmt: skip
SECOND_KEYS: Mapping[str, int] = {"l": RIGHT, "j": LEFT, "i": UP, "k": DOWN, "g": A, "h": B}
POLICY_SKIP = 4
"""Frames for which a policy holds its action, as in training."""


@dataclass
class Session:
    """A match by hand: keys in, frames out, everything logged. Knows no window.

    `rival` plays player 2 from the game's memory; without one, player 2 is the computer, or the
    second half of the keyboard once one of its keys was pressed.
    """

    emulator: Emulator
    settings: duel.MatchSettings = field(default_factory=lambda: duel.MatchSettings(level=3))
    rival: Script | None = None
    frozen: bool = False
    replay: Replay = field(init=False)

    def __post_init__(self) -> None:
        self.combos = load_profile("duel").combos
        self.rng = np.random.default_rng(0)
        self.choice, self.clock = 0, 0
        self.restart()

    def restart(self, **changes: Any) -> None:
        """Begins a new match, with other settings if any are given."""
        mode = duel.HOST_HOST if self.rival is not None else self.settings.mode
        seed = int(self.rng.integers(1, 1 << 16))
        flags = 0  # with intro and a long end, for people
        self.settings = replace(
            self.settings, **{"mode": mode, "seed": seed, "flags": flags, **changes}
        )
        duel.start_match(self.emulator, self.settings)
        self.replay = Replay(self.settings)
        self.clock = 0

    def press(self, key: str) -> None:
        """A key that is a command: R, F, 0 to 7."""
        if key == "r":
            self.restart()
        elif key == "f":
            self.frozen = not self.frozen
        elif key in tuple("01234567"):
            self.restart(level=int(key))
        elif key in SECOND_KEYS and self.rival is None and self.settings.mode == duel.HOST_CPU:
            self.restart(mode=duel.HOST_HOST)

    def frame(self, held: set[str]) -> None:
        """One frame with the keys held down."""
        if self.frozen:
            return
        first = sum(bit for key, bit in FIRST_KEYS.items() if key in held)
        second = sum(bit for key, bit in SECOND_KEYS.items() if key in held)
        if self.rival is not None:
            second = self._rival_buttons()
        memory = self.emulator.memory
        memory[duel.P1_IN], memory[duel.P2_IN] = first, second
        self.replay.add(first, second)
        self.emulator.tick(1, True)

    def _rival_buttons(self) -> int:
        """The policy chooses every fourth frame; A and B stay down for two of them."""
        assert self.rival is not None
        ram = np.zeros(RAM_BYTES, np.uint8)
        read = self.emulator.read
        ram[:FIRST], ram[FIRST:SECOND], ram[SECOND:] = (
            read(0xC020, 22), read(0xC100, 38), read(0xC200, 38),
        )  # fmt: skip
        phase = self.clock % POLICY_SKIP
        if phase == 0:
            signals = np.zeros((1, SIGNALS), np.uint8)
            look(ram, 1, signals[0])
            step = np.array([self.clock // POLICY_SKIP])
            self.choice = int(self.rival(signals, step, [self.rng])[0])
        self.clock += 1
        byte = self.combos[self.choice]
        if not ram[SECOND + duel.X] < ram[FIRST + duel.X]:
            byte = facing_left(byte)
        return byte if phase < 2 else byte & ~(A | B)


def window(session: Session, scale: int = 4, frames: int | None = None) -> None:
    """Shows a session in real time until Esc; `frames` ends it earlier."""
    try:
        import pygame
    except ImportError as error:
        raise SystemExit("Playing needs pygame-ce: pip install 'frugal-rl[play]'.") from error
    pygame.init()
    height, width = session.emulator.screen.shape[:2]
    surface = pygame.display.set_mode((width * scale, height * scale))
    pygame.display.set_caption("Duel")
    clock, held, shown = pygame.time.Clock(), set[str](), 0
    while frames is None or shown < frames:
        for event in pygame.event.get():
            if event.type == pygame.QUIT or (
                event.type == pygame.KEYDOWN and event.key == pygame.K_ESCAPE
            ):
                pygame.quit()
                return
            if event.type == pygame.KEYDOWN:
                held.add(pygame.key.name(event.key))
                session.press(pygame.key.name(event.key))
            elif event.type == pygame.KEYUP:
                held.discard(pygame.key.name(event.key))
        session.frame(held)
        picture = np.ascontiguousarray(session.emulator.screen[..., :3].swapaxes(0, 1))
        image = pygame.surfarray.make_surface(picture)
        surface.blit(pygame.transform.scale_by(image, scale), (0, 0))
        pygame.display.flip()
        clock.tick(60)
        shown += 1
    pygame.quit()


def rival_from(checkpoint: str) -> Callable[..., np.ndarray]:
    """The policy in a checkpoint as a player; torch is imported here only."""
    from fighting.self_play import saved_player

    return saved_player(checkpoint)


def main(arguments: list[str] | None = None) -> int:
    """Plays until Esc, then says where the replay lies."""
    parser = argparse.ArgumentParser(prog="python -m fighting.play", description=__doc__)
    parser.add_argument("checkpoint", nargs="?", help="run folder of a policy to fight")
    parser.add_argument("--level", type=int, default=3, choices=range(8))
    parser.add_argument("--replay", type=Path, default=Path("duel.replay"))
    parser.add_argument("--frames", type=int, default=None, help="leave after so many frames")
    chosen = parser.parse_args(arguments)
    rival = rival_from(chosen.checkpoint) if chosen.checkpoint else None
    session = Session(duel.boot(), duel.MatchSettings(level=chosen.level), rival)
    window(session, frames=chosen.frames)
    session.replay.save(chosen.replay)
    session.emulator.close()
    print(f"The last match is kept in {chosen.replay}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
