"""Films of a run: GIF and MP4 by the file's suffix, each complete or not there at all."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from pathlib import Path

import imageio_ffmpeg
import numpy as np
from PIL import Image

from frugal_rl.errors import DataError, DiskError
from frugal_rl.memory.sizes import FILM_BYTES
from frugal_rl.run.disk import finished_or_absent

Palette = Callable[[np.ndarray], Image.Image]
"""A picture [H, W, 3] uint8 to one whose palette all pictures of a film take."""
SUFFIXES = (".mp4", ".gif")
GIF_COLOURS = 64
WIDEST = 320
"""Pixels of a side of an evaluation's film, at most."""
GIF_RATE = 50
"""Pictures per second above which viewers slow a GIF down."""


def save_film(
    path: Path, frames: Iterable[np.ndarray], frame_rate: float, palette: Palette | None = None
) -> int:
    """Write frames [H, W, 3] uint8 as MP4 or GIF, by the path's suffix; returns their number.

    Args:
        path: `.mp4` or `.gif`.
        frames: all of one size.
        frame_rate: pictures per second.
        palette: a GIF's one palette, made for its first frame: `exactly` or `with_room_for` some
            colours. Without it each frame has a palette of its own.

    Raises:
        DataError: another suffix, or no frame.
        DiskError: the film cannot be written; nothing is left behind.
    """
    check_film(path)
    with finished_or_absent(path) as part:
        if path.suffix == ".mp4":
            count = _write_mp4(part, iter(frames), frame_rate)
        else:
            count = _write_gif(part, iter(frames), frame_rate, palette)
        if count == 0:
            raise DataError(f"There is no frame to write into {path}.")
    return count


def save_thinned(
    path: Path,
    frames: Iterable[np.ndarray],
    every: int,
    frame_rate: float,
    palette: Palette | None = None,
) -> int:
    """Film every so many of the frames; the film keeps its speed."""
    return save_film(path, islice(frames, 0, None, every), frame_rate / every, palette)


def small(frames: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
    """Pictures [H, W, 3] uint8 of at most `WIDEST` pixels a side, as many as a plan counts.

    A GIF's pictures are kept until it is written, a byte for each pixel.
    """
    left = FILM_BYTES
    for frame in frames:
        step = -(-max(frame.shape[:2]) // WIDEST)
        frame = np.ascontiguousarray(frame[::step, ::step])
        left -= frame.shape[0] * frame.shape[1]
        if left < 0:
            return
        yield frame


def check_film(path: Path) -> None:
    """Refuse a target that is no film, before anything is played."""
    if path.suffix not in SUFFIXES:
        raise DataError(
            f"The film {path} ends in '{path.suffix}'; use one of {', '.join(SUFFIXES)}."
        )
    if path.is_dir():
        raise DataError(f"The film {path} is a folder; name a file in it.")


def _write_gif(
    path: Path, frames: Iterator[np.ndarray], frame_rate: float, palette: Palette | None
) -> int:
    """No dithering; with one palette for all frames, what stays the same costs nothing."""
    first = next(frames, None)
    if first is None:
        return 0
    colours = None if palette is None else palette(first)
    count = 1

    def following() -> Iterator[Image.Image]:
        nonlocal count
        for frame in frames:
            count += 1
            yield _quantised(frame, colours)

    _quantised(first, colours).save(
        path,
        format="GIF",
        save_all=True,
        append_images=following(),
        loop=0,
        optimize=False,
        duration=round(1000 / min(frame_rate, GIF_RATE)),
    )
    return count


def _quantised(frame: np.ndarray, palette: Image.Image | None) -> Image.Image:
    return Image.fromarray(frame).quantize(palette=palette, dither=Image.Dither.NONE)


def exactly(colours: np.ndarray) -> Palette:
    """The colours [K, 3] uint8 and no others."""

    def made(first: np.ndarray) -> Image.Image:
        image = Image.new("P", (1, 1))
        image.putpalette(colours.tobytes())
        return image

    return made


def with_room_for(colours: np.ndarray) -> Palette:
    """The first picture's, with a swatch of the colours [K, 3] uint8 below it."""

    def made(first: np.ndarray) -> Image.Image:
        swatch = np.tile(np.resize(colours, (first.shape[1], 3)), (16, 1, 1))
        page = Image.fromarray(np.vstack([first, swatch]))
        return page.quantize(GIF_COLOURS, dither=Image.Dither.NONE)

    return made


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
