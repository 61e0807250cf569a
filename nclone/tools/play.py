"""What `scripts/play.py env=nclone` does without a checkpoint: the keyboard at a level."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from frugal_rl.run.play import Keys, PlayOptions, Window
from nclone.render.caption import write_caption
from nclone.render.crop import FULL, common_boxes, cut
from nclone.render.export import FRAME_RATE, save_thinned
from nclone.render.human import HumanView
from nclone.replay import Replay, inputs_of_actions
from nclone.replay.files import COMPACT, write_replays
from nclone.sim.world import World
from nclone.tools.films import check_options
from nclone.tools.solving import solver_at_play

if TYPE_CHECKING:
    from frugal_rl.run.config import RunConfig
    from nclone.config import NppConfig
    from nclone.levels.level import Level


LEFT, RIGHT, JUMP = {"left", "a"}, {"right", "d"}, {"space", "up", "w", "z", "left shift"}
RESTART, NEXT, BEFORE, PAUSE = {"r"}, {"n", "page down"}, {"b", "page up"}, {"p"}
GO_ON = {"return", *JUMP}
WAIT_FRAMES = 20
"""Frames after an end during which a held jump does not yet go on."""


class Session:
    """One level after the other under the keyboard: keys in, pictures out. Knows no window.

    Args:
        levels: what is played, in turn.
        scale: pixels per px.
        folder: where each finished run is kept as a replay; None keeps none.
        crop: leave out the solid part around the levels.
    """

    def __init__(
        self,
        levels: list[Level],
        scale: float = 1.0,
        folder: Path | None = None,
        crop: bool = False,
    ) -> None:
        self.levels, self.scale, self.folder = levels, scale, folder
        self._boxes = common_boxes(levels, (28, 9)) if crop else [FULL] * len(levels)
        self.place, self.paused = 0, False
        self.written: list[Path] = []
        self.begin(0)

    def begin(self, place: int) -> None:
        """Start a level anew."""
        changed = place % len(self.levels) != self.place or not hasattr(self, "view")
        self.place = place % len(self.levels)
        self.level = self.levels[self.place]
        if changed:
            self.view = HumanView(self.level, self.scale)
        self.world = World([self.level], threads=1)
        self.actions: list[int] = []
        self.since_end = 0

    @property
    def ended(self) -> bool:
        """Whether the run is won or lost."""
        return bool(self.world.ended[0])

    def press(self, key: str) -> None:
        """A key that is a command."""
        if key in RESTART:
            self.begin(self.place)
        elif key in NEXT:
            self.begin(self.place + 1)
        elif key in BEFORE:
            self.begin(self.place - 1)
        elif key in PAUSE:
            self.paused = not self.paused
        elif key in GO_ON and self.ended and self.since_end > WAIT_FRAMES:
            self.begin(self.place + int(self.world.won[0]))

    def frame(self, held: set[str]) -> None:
        """One frame of the game with the keys held down; left wins over right."""
        if self.paused:
            return
        if self.ended:
            self.since_end += 1
            return
        side = 1 if held & LEFT else 2 if held & RIGHT else 0
        action = side + (3 if held & JUMP else 0)
        self.world.step([action], frames=1)
        self.actions.append(action)
        if self.ended and self.folder is not None:
            self._keep(self.folder)

    def picture(self) -> np.ndarray:
        """The present picture with its caption, [H, W, 3] uint8."""
        image = cut(self.view.draw(self.world), self._boxes[self.place], self.scale)
        seconds = len(self.actions) / FRAME_RATE
        words = f"{self.place + 1}/{len(self.levels)}  {self.level.name}   {seconds:.1f} s"
        write_caption(image, words, self._advice(), self.scale)
        return image

    def _advice(self) -> str:
        if self.paused:
            return "paused: P goes on"
        if self.world.won[0]:
            return "won: Enter for the next level, R once more"
        if self.ended:
            return "lost: R or jump tries again, N next level"
        return "arrows and space; R restart, N next, B before, P pause, Esc leave"

    def _keep(self, folder: Path) -> None:
        won = bool(self.world.won[0])
        name = "".join(c if c.isalnum() else "_" for c in self.level.name)
        number = 1
        while (path := folder / f"{name}_{number}_{'won' if won else 'lost'}{COMPACT}").exists():
            number += 1
        replay = Replay(inputs_of_actions(self.actions), self.level.map_data, won)
        write_replays(path, [replay])
        self.written.append(path)


def play(run: RunConfig, options: PlayOptions) -> Iterator[str]:
    """A window with the keyboard; yields a line per written file."""
    check_options(options.without(run.env.name, "deterministic"))
    if options.solver:
        yield from solver_at_play(cast("NppConfig", run.env).open_levels("train"), options)
        return
    session = Session(
        cast("NppConfig", run.env).open_levels("train"),
        options.scale,
        Path(options.record) if options.record else None,
        options.crop,
    )
    window = Window("N++", session.picture().shape)
    try:
        pictures = shown(session, window, options.frames)
        if options.video:
            count = save_thinned(Path(options.video), pictures, options.every)
            yield f"Film: {options.video} ({count} pictures)"
        else:
            for _ in pictures:
                pass
    finally:
        window.close()
    yield from (f"Replay: {path}" for path in session.written)


def shown(session: Session, window: Window, frames: int) -> Iterator[np.ndarray]:
    """Play until the window is closed, or for so many frames; yields what was shown."""
    keys, count = Keys(), 0
    while not keys.closed and (count < frames or not frames):
        picture = session.picture()
        yield picture
        keys = window.show(picture, FRAME_RATE)
        for key in keys.pressed:
            session.press(key)
        session.frame(keys.held)
        count += 1
