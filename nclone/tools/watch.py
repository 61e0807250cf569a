"""A trained policy at play on N++, every simulated frame drawn: in a window, or into a film."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from frugal_rl.errors import ConfigError
from frugal_rl.run.play import Keys, PlayOptions, Window
from frugal_rl.run.watch import Watch, open_watch
from nclone.files import file_stem
from nclone.render.caption import write_caption
from nclone.render.crop import FULL, common_boxes, cut
from nclone.render.export import FRAME_RATE, save_thinned
from nclone.render.human import HumanView
from nclone.replay import Replay, inputs_of_actions
from nclone.replay.files import COMPACT, write_replays
from nclone.sim.world import World
from nclone.tools.films import check_options
from nclone.tools.reporting import write_report
from nclone.vec_env import NppVecEnv

if TYPE_CHECKING:
    from frugal_rl.run.config import RunConfig

HOLD_FRAMES = 40
"""Pictures for which the end of an episode stays."""
KEPT_VIEWS = 8
SKIP, PAUSE = {"n", "return"}, {"p", "space"}


class Spectator:
    """Plays a policy's episodes and draws each frame between two of its decisions.

    The environment simulates `frame_skip` frames at once; a second world, put into the state
    before, plays the same frames one by one.
    """

    def __init__(
        self, watch: Watch, scale: float, folder: Path | None = None, crop: bool = True
    ) -> None:
        if not isinstance(watch.vec_env, NppVecEnv):
            raise ConfigError(
                f"The checkpoint was not trained on N++, but on env={watch.run.env.name}."
            )
        self.watch, self.scale, self.folder = watch, scale, folder
        self.game = watch.vec_env.game
        self.world = World(self.game.level_table, [int(self.game.world.level[0])], threads=1)
        self.frame_skip = self.game.config.frame_skip
        levels = self.game.level_table.level
        self._boxes = common_boxes(levels) if crop else [FULL] * len(levels)
        self._views: dict[int, HumanView] = {}
        self.episode, self.won, self.lost = 1, 0, 0
        self.written: list[Path] = []

    def frames(self) -> Iterator[np.ndarray]:
        """Pictures without end."""
        while True:
            yield from self.one_episode()

    def one_episode(self) -> Iterator[np.ndarray]:
        """The pictures of an episode, from its beginning to a moment after its end."""
        level, ended = int(self.game.world.level[0]), False
        played: list[int] = []
        while not ended:
            self.world.restore(self.game.world.snapshot([0]))
            actions = self.watch.choose()
            for _ in range(self.frame_skip):
                yield self._picture(level, "")
                if self.world.ended[0]:
                    break
                self.world.step(actions, frames=1)
                played.append(int(actions[0]))
            step = self.watch.step(actions)
            ended = bool(step.done[0])
        won = bool(self.world.won[0])
        self.won, self.lost = self.won + won, self.lost + (not won)
        words = "won" if won else "lost" if self.world.dead[0] else "out of time"
        if self.folder is not None:
            self._keep(self.folder, level, played, won)
        for _ in range(HOLD_FRAMES):
            yield self._picture(level, words)
        self.episode += 1

    def _picture(self, level: int, words: str) -> np.ndarray:
        if level not in self._views:
            while len(self._views) >= KEPT_VIEWS:
                del self._views[next(iter(self._views))]
            self._views[level] = HumanView(self.game.level_table.level[level], self.scale)
        image = cut(self._views[level].draw(self.world), self._boxes[level], self.scale)
        name = self.game.level_table.level[level].name
        seconds = int(self.world.frame[0]) / FRAME_RATE
        head = f"{name}   {seconds:.1f} s"
        write_caption(image, head, words or f"{self.won} won, {self.lost} lost", self.scale)
        return image

    def _keep(self, folder: Path, level: int, actions: list[int], won: bool) -> None:
        made = self.game.level_table.level[level]
        path = (
            folder
            / f"{self.episode:04d}_{file_stem(made.name)}_{'won' if won else 'lost'}{COMPACT}"
        )
        write_replays(path, [Replay(inputs_of_actions(actions), made.map_data, won)])
        self.written.append(path)


def watch(run: RunConfig, options: PlayOptions) -> Iterator[str]:
    """Show a checkpoint at play, or film it without a window; yields a line per written file."""
    check_options(options)
    kept = options.report or options.record
    asked = _from_the_start(run) if kept else run
    with open_watch(options.checkpoint, asked, options.deterministic) as opened:
        folder = Path(kept) if kept else None
        spectator = Spectator(opened, options.scale, folder, options.crop)
        if options.report:
            yield from write_report(spectator, options)
        elif options.video:
            pictures = _limited(_episodes(spectator, options.episodes or 1), options.frames)
            count = save_thinned(Path(options.video), pictures, options.every)
            yield f"Film: {options.video} ({count} pictures)"
        else:
            _show(spectator, options)
        if not options.report:
            yield from (f"Replay: {path}" for path in spectator.written)
        yield f"{spectator.won} won, {spectator.lost} lost."


def _from_the_start(run: RunConfig) -> RunConfig:
    """The same words, and no random frames before an episode: a replay begins with the level."""
    values = deepcopy(dict(run.resolved))
    values["env"]["start_frames"] = 0
    return replace(run, resolved=values, overrides=(*run.overrides, "env.start_frames=0"))


def _episodes(spectator: Spectator, count: int) -> Iterator[np.ndarray]:
    for _ in range(count):
        yield from spectator.one_episode()


def _limited(pictures: Iterator[np.ndarray], frames: int) -> Iterator[np.ndarray]:
    for count, picture in enumerate(pictures, 1):
        yield picture
        if count == frames:
            return


def _show(spectator: Spectator, options: PlayOptions) -> None:
    pictures: Iterator[np.ndarray] = spectator.frames()
    if options.episodes:
        pictures = _episodes(spectator, options.episodes)
    pictures = _limited(pictures, options.frames)
    first = next(pictures)
    window = Window("N++: a policy at play (P pauses, Esc leaves)", first.shape)
    try:
        keys, paused, picture = Keys(), False, first
        while not keys.closed:
            keys = window.show(picture, FRAME_RATE)
            paused ^= any(key in PAUSE for key in keys.pressed)
            following = None if paused else next(pictures, None)
            if following is None and not paused:
                return
            picture = picture if following is None else following
    finally:
        window.close()
