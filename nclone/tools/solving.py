"""The searcher at work: replays that win a folder of levels, and levels won before one's eyes."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console
from rich.table import Table

from frugal_rl.errors import ConfigError
from frugal_rl.run.play import Keys, PlayOptions, Window
from nclone.files import file_stem
from nclone.levels.level import Level
from nclone.levels.sources import open_levels
from nclone.render.caption import write_caption
from nclone.render.crop import FULL, common_boxes, cut
from nclone.render.export import FRAME_RATE, play, save_thinned
from nclone.render.human import HumanView
from nclone.replay import Replay, inputs_of_actions
from nclone.replay.files import COMPACT, write_replays
from nclone.search.solve import Solution, solve

if TYPE_CHECKING:
    from frugal_rl.report.recording import RecordOptions

HOLD_FRAMES = 40
"""Pictures for which a won level stays."""


@dataclass(frozen=True)
class Solved:
    """What the search found for one level; no file where it found nothing."""

    level: Level
    solution: Solution | None
    seconds: float
    path: Path | None


def solve_levels(options: RecordOptions, console: Console) -> int:
    """Win the levels that `solve` names, write a replay of each; 1 where one was not won."""
    if options.budget_frames < 1:
        raise ConfigError(f"budget_frames is {options.budget_frames}; use 1 or more.")
    levels = open_levels([options.solve], skip_unreadable=options.skip_unreadable)
    found = [_solved(level, options, number) for number, level in enumerate(levels)]
    console.print(solved_table(found))
    won = sum(s.solution is not None for s in found)
    console.print(f"{won} of {len(found)} levels won; replays: {options.solved}")
    return int(won < len(found))


def _solved(level: Level, options: RecordOptions, number: int) -> Solved:
    begin = time.perf_counter()
    solution = solve(level, options.budget_frames)
    seconds = time.perf_counter() - begin
    if solution is None:
        return Solved(level, None, seconds, None)
    path = Path(options.solved) / f"{number:04d}_{file_stem(level.name)}{COMPACT}"
    write_replays(path, [Replay(inputs_of_actions(solution.actions), level.map_data, True)])
    return Solved(level, solution, seconds, path)


def solved_table(found: Sequence[Solved]) -> Table:
    """Level | won | frames | game time | simulated frames | seconds of search | file."""
    table = Table()
    for name in ("level", "won", "frames", "time", "simulated", "search", "file"):
        side = "left" if name in ("level", "won", "file") else "right"
        table.add_column(name, justify=side, overflow="fold")  # type: ignore[arg-type]
    for s in found:
        if s.solution is None:
            table.add_row(s.level.name, "no", "", "", "", f"{s.seconds:.2f} s", "")
            continue
        table.add_row(
            s.level.name,
            "yes",
            f"{s.solution.frames:,}",
            f"{s.solution.frames / FRAME_RATE:.2f} s",
            f"{s.solution.frames_spent:,}",
            f"{s.seconds:.2f} s",
            s.path.name if s.path is not None else "",
        )
    return table


def solver_at_play(levels: Sequence[Level], options: PlayOptions) -> Iterator[str]:
    """Show or film the searcher winning levels one after the other; yields a line per file."""
    chosen = levels[: options.episodes] if options.episodes else levels
    pictures = _first(won_pictures(chosen, options), options.frames)
    if options.video:
        count = save_thinned(Path(options.video), pictures, options.every)
        yield f"Film: {options.video} ({count} pictures)"
        return
    _show(pictures)


def won_pictures(levels: Sequence[Level], options: PlayOptions) -> Iterator[np.ndarray]:
    """Pictures [H, W, 3] uint8 of each level being won; a still where the search found nothing."""
    boxes = common_boxes(list(levels), (28, 9)) if options.crop else [FULL] * len(levels)
    for level, box in zip(levels, boxes, strict=True):
        solution, view = solve(level), HumanView(level, options.scale)
        actions = np.zeros(0, np.uint8) if solution is None else solution.actions
        words = "not won within the budget" if solution is None else "the searcher at play"
        image: np.ndarray | None = None
        for frame, world in enumerate(play(level, actions)):
            image = cut(view.draw(world), box, options.scale)
            head = f"{level.name}   {frame / FRAME_RATE:.1f} s"
            write_caption(image, head, "won" if world.won[0] else words, options.scale)
            yield image
        assert image is not None
        yield from (image for _ in range(HOLD_FRAMES))


def _first(pictures: Iterable[np.ndarray], frames: int) -> Iterator[np.ndarray]:
    """All pictures, or so many of them; 0 means all."""
    for count, picture in enumerate(pictures, 1):
        yield picture
        if count == frames:
            return


def _show(pictures: Iterator[np.ndarray]) -> None:
    first = next(pictures)
    window = Window("N++: the searcher at play (Esc leaves)", first.shape)
    try:
        keys: Keys = window.show(first, FRAME_RATE)
        for picture in pictures:
            if keys.closed:
                return
            keys = window.show(picture, FRAME_RATE)
    finally:
        window.close()
