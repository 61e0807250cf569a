"""Duel by hand: two halves of the keyboard, the computer or a policy as the opponent.

`scripts/play.py env=fighting`: arrows and A, S for player 1; I J K L and G, H for player 2.
R restarts, 0 to 7 set the level, F freezes, Esc leaves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from fighting.cartridge.buttons import facing_left
from fighting.cartridge.reading import load_profile
from fighting.machine import duel
from fighting.machine.duel import DOWN, LEFT, RIGHT, SELECT, START, UP, A, B
from fighting.machine.emulator import FRAMES_PER_SECOND, Emulator
from fighting.opponents.scripts import Script
from fighting.signals import FIRST, RAM_BYTES, SECOND, SIGNALS, look
from fighting.tools.pictures import Shot, packed_screen, pages, save_film
from fighting.tools.replay import Replay, next_path
from frugal_rl.run.play import Keys, PlayOptions, Window

FIRST_KEYS: Mapping[str, int] = {
    "right": RIGHT,
    "left": LEFT,
    "up": UP,
    "down": DOWN,
    "a": A,
    "s": B,
    "return": START,
    "backspace": SELECT,
}
SECOND_KEYS: Mapping[str, int] = {"l": RIGHT, "j": LEFT, "i": UP, "k": DOWN, "g": A, "h": B}
WINDOW_SCALE = 4
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
            read(0xC020, 22),
            read(0xC100, 38),
            read(0xC200, 38),
        )
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


def by_hand(session: Session, options: PlayOptions) -> Iterator[str]:
    """A match in a window until it is closed; a line for each file that was written."""
    screen = session.emulator.screen[..., :3]
    window = Window("Duel", screen.shape, WINDOW_SCALE * options.scale)
    shots = []
    try:
        for count in shown(session, window, options.frames):
            if options.video and count % options.every == 0:
                shots.append(Shot(packed_screen(session.emulator.screen)))
    finally:
        window.close()
    if options.record:
        path = next_path(Path(options.record), "duel")
        session.replay.save(path, session.emulator)
        yield f"Replay: {path}"
    if options.video:
        save_film(Path(options.video), pages(shots), frame_skip=options.every)
        yield f"Film: {options.video} ({len(shots)} pictures)"


def shown(session: Session, window: Window, frames: int = 0) -> Iterator[int]:
    """Play until the window is closed, or for so many frames; yields their number."""
    keys, count = Keys(), 0
    while not keys.closed and (count < frames or not frames):
        session.frame(keys.held)
        yield count
        keys = window.show(session.emulator.screen[..., :3], FRAMES_PER_SECOND)
        for key in keys.pressed:
            session.press(key)
        count += 1
