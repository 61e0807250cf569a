"""Pictures and films of a run: PNG, GIF and MP4, each complete or not there at all."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

import imageio_ffmpeg
import numpy as np
from PIL import Image
from rich.progress import track

from frugal_rl.errors import DataError, DiskError
from frugal_rl.run.disk import finished_or_absent
from nclone.render.human import COLOURS, HumanView
from nclone.sim.world import World

if TYPE_CHECKING:
    from nclone.levels.level import Level

FRAME_RATE = 60
SUFFIXES = (".mp4", ".gif")
GIF_COLOURS = 64


def save_picture(path: Path, image: np.ndarray) -> None:
    """Write [H, W, 3] or [H, W] uint8 as a PNG."""
    with finished_or_absent(path) as part:
        Image.fromarray(image).save(part, format="PNG")


def save_film(path: Path, frames: Iterable[np.ndarray], frame_rate: float = FRAME_RATE) -> int:
    """Write frames [H, W, 3] uint8 as MP4 or GIF, by the path's suffix; returns their number.

    Raises:
        DataError: another suffix, or no frame.
        DiskError: the film cannot be written; nothing is left behind.
    """
    check_film(path)
    with finished_or_absent(path) as part:
        write = _write_mp4 if path.suffix == ".mp4" else _write_gif
        count = write(part, iter(frames), frame_rate)
        if count == 0:
            raise DataError(f"There is no frame to write into {path}.")
    return count


def save_thinned(path: Path, frames: Iterable[np.ndarray], every: int = 1) -> int:
    """Film every so many of the frames of 60 per second; the film keeps its speed."""
    return save_film(path, islice(frames, 0, None, every), FRAME_RATE / every)


def check_film(path: Path) -> None:
    """Refuse a target that is no film, before anything is played."""
    if path.suffix not in SUFFIXES:
        raise DataError(
            f"The film {path} ends in '{path.suffix}'; use one of {', '.join(SUFFIXES)}."
        )
    if path.is_dir():
        raise DataError(f"The film {path} is a folder; name a file in it.")


def _write_gif(path: Path, frames: Iterator[np.ndarray], frame_rate: float) -> int:
    """One palette for all frames, no dithering: what stays the same costs nothing."""
    first = next(frames, None)
    if first is None:
        return 0
    palette = Image.fromarray(np.vstack([first, _swatch(first.shape[1])])).quantize(
        GIF_COLOURS, dither=Image.Dither.NONE
    )
    count = 1

    def following() -> Iterator[Image.Image]:
        nonlocal count
        for frame in frames:
            count += 1
            yield Image.fromarray(frame).quantize(palette=palette, dither=Image.Dither.NONE)

    start = Image.fromarray(first).quantize(palette=palette, dither=Image.Dither.NONE)
    start.save(
        path,
        format="GIF",
        save_all=True,
        append_images=following(),
        loop=0,
        optimize=False,
        duration=round(1000 / min(frame_rate, 50)),
    )
    return count


def _swatch(width: int) -> np.ndarray:
    """[16, width, 3] uint8: every colour of a picture, so that a palette has room for it."""
    row = np.resize(np.array(COLOURS, np.uint8), (width, 3))
    return np.tile(row, (16, 1, 1))


def _write_mp4(path: Path, frames: Iterator[np.ndarray], frame_rate: float) -> int:
    """H.264 by the ffmpeg that imageio-ffmpeg brings; odd sizes get a black edge."""
    first = next(frames, None)
    if first is None:
        return 0
    height, width = first.shape[:2]
    command = [
        imageio_ffmpeg.get_ffmpeg_exe(),
        "-y",
        "-loglevel",
        "error",
        "-f",
        "rawvideo",
        "-pix_fmt",
        "rgb24",
        "-s",
        f"{width}x{height}",
        "-r",
        str(frame_rate),
        "-i",
        "-",
        "-vf",
        "pad=ceil(iw/2)*2:ceil(ih/2)*2",
        "-c:v",
        "libx264",
        "-pix_fmt",
        "yuv420p",
        "-crf",
        "20",
        str(path),
    ]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as encoder:
        assert encoder.stdin is not None
        assert encoder.stderr is not None
        count = 0
        try:
            for frame in chain([first], frames):
                encoder.stdin.write(frame.tobytes())
                count += 1
            encoder.stdin.close()
        except BrokenPipeError:
            pass  # the encoder has given up; what it said comes below
        except BaseException:
            encoder.kill()
            raise
        said = encoder.stderr.read().decode(errors="replace").strip()
    if encoder.returncode != 0:
        raise DiskError(f"The film could not be encoded: {said or encoder.returncode}.")
    return count


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
    return save_film(path, pictures, FRAME_RATE / every)


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
