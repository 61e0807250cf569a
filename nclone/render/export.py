"""Pictures and films of a run: PNG, GIF and MP4, each complete or not there at all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image
from rich.progress import track

from frugal_rl.errors import DataError
from frugal_rl.report import film
from frugal_rl.run.disk import finished_or_absent
from nclone.render.human import COLOURS, HumanView
from nclone.sim.world import World

if TYPE_CHECKING:
    from nclone.levels.level import Level

FRAME_RATE = 60
PALETTE = film.with_room_for(np.array(COLOURS, np.uint8))


def save_picture(path: Path, image: np.ndarray) -> None:
    """Write [H, W, 3] or [H, W] uint8 as a PNG."""
    with finished_or_absent(path) as part:
        Image.fromarray(image).save(part, format="PNG")


def save_thinned(path: Path, frames: Iterable[np.ndarray], every: int = 1) -> int:
    """Film every so many of the frames of 60 per second; the film keeps its speed."""
    return film.save_thinned(path, frames, every, FRAME_RATE, PALETTE)


def play(level: Level, actions: np.ndarray) -> Iterator[World]:
    """One world on the level after 0, 1, 2, ... frames of `actions` [T]; stops at the end."""
    world = World([level], threads=1)
    yield world
    for action in actions:
        world.step([int(action)], frames=1)
        yield world
        if world.ended[0]:
            return


def film_run(
    path: Path,
    level: Level,
    actions: np.ndarray,
    scale: float = 1.0,
    every: int = 1,
    show: bool = False,
) -> int:
    """Film a level being played; returns the number of pictures.

    Args:
        path: `.mp4` or `.gif`.
        level: The level.
        actions: [T] one action 0..5 per simulated frame.
        scale: Pixels per px.
        every: Draw only every so many frames; the film keeps its speed.
        show: Draw a progress bar.
    """
    if every < 1:
        raise DataError(f"every={every}; draw every frame (1), every second (2), ...")
    view = HumanView(level, scale)
    worlds: Iterable[World] = play(level, actions)
    if show:
        worlds = track(worlds, f"filming {level.name}", total=len(actions) + 1)
    pictures = (view.draw(world) for k, world in enumerate(worlds) if k % every == 0)
    return film.save_film(path, pictures, FRAME_RATE / every, PALETTE)


def picture_path(path: Path, level: Level, actions: np.ndarray, scale: float = 1.0) -> None:
    """Write a PNG of the level with the way of a run painted over its last frame."""
    view, places = HumanView(level, scale), []
    for world in play(level, actions):
        places.append(world.position[0].copy())
        last = world
    image = view.draw(last)
    view.draw_path(image, np.array(places))
    save_picture(path, image)


def contact_sheet(
    levels: Sequence[Level],
    columns: int = 4,
    scale: float = 0.25,
    paths: Sequence[np.ndarray | None] | None = None,
) -> np.ndarray:
    """Small pictures of the beginnings of levels, [H, W, 3] uint8, row by row.

    `paths` are routes [T, 2] px to paint over them.
    """
    pictures = []
    for level, path in zip(levels, paths or [None] * len(levels), strict=True):
        view = HumanView(level, scale)
        picture = view.draw(World([level], threads=1))
        if path is not None:
            view.draw_path(picture, path[:: max(1, round(1 / scale))], width=1.2 / scale)
        pictures.append(picture)
    gap = np.full((pictures[0].shape[0] + 4, pictures[0].shape[1] + 4, 3), 255, np.uint8)
    rows = -(-len(pictures) // columns)
    sheet = np.tile(gap, (rows, columns, 1))
    for k, picture in enumerate(pictures):
        row, column = k // columns * gap.shape[0], k % columns * gap.shape[1]
        sheet[row : row + picture.shape[0], column : column + picture.shape[1]] = picture
    return sheet
