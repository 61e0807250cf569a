"""Fights as GIFs of four shades or MP4s, with what the policy did and expects below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from fighting.machine.emulator import FRAMES_PER_SECOND, SCREEN
from fighting.machine.frames import UNPACKED, pack_screen
from frugal_rl.errors import DataError
from frugal_rl.run.disk import finished_or_absent

BAND = 22
"""Pixels under the screen for what is written there."""
GREYS = (255, 170, 85, 0)
SUFFIXES = (".gif", ".mp4")


@dataclass(frozen=True)
class Shot:
    """One picture of a fight: the packed screen and a line of words."""

    packed: np.ndarray
    """(144, 40) uint8."""
    words: str = ""
    value: float | None = None
    """What the policy expects, in [-2.5, 2.5]; a bar."""


def picture(shot: Shot, scale: int) -> Image.Image:
    """The screen enlarged, words and value bar below it."""
    screen = UNPACKED[shot.packed].reshape(SCREEN)
    page = np.full((SCREEN[0] + BAND // scale + 1, SCREEN[1]), 255, np.uint8)
    page[: SCREEN[0]] = screen
    image = Image.fromarray(page).resize((SCREEN[1] * scale, page.shape[0] * scale), Image.NEAREST)
    pen = ImageDraw.Draw(image)
    top = SCREEN[0] * scale
    pen.text((4, top + 4), shot.words, fill=0)
    if shot.value is not None:
        middle, width = image.width * 3 // 4, image.width // 5
        end = middle + int(np.clip(shot.value / 2.5, -1, 1) * width)
        pen.rectangle((min(middle, end), top + 6, max(middle, end), top + 14), fill=85)
        pen.line((middle, top + 2, middle, top + 18), fill=0)
    return image


def packed_screen(screen: np.ndarray) -> np.ndarray:
    """A picture (144, 160, 3 or 4) uint8 in two bits per pixel, (144, 40) uint8."""
    packed = np.zeros((SCREEN[0], SCREEN[1] // 4), np.uint8)
    pack_screen(screen[..., 0], False, packed)
    return packed


def check_film(path: Path) -> None:
    """Refuses a target that is no film, before anything is played."""
    if path.suffix not in SUFFIXES or path.is_dir():
        raise DataError(f"The film {path} must be a file ending in {' or '.join(SUFFIXES)}.")


def save_film(path: Path, shots: Sequence[Shot], frame_skip: int = 4, scale: int = 2) -> Path:
    """Writes a GIF or an MP4, by the path's suffix; complete or not at all."""
    check_film(path)
    if not shots:
        raise DataError(f"There is no picture to write into {path}.")
    save = save_gif if path.suffix == ".gif" else save_mp4
    with finished_or_absent(path) as part:
        save(part, shots, frame_skip, scale)
    return path


def save_mp4(path: Path, shots: Sequence[Shot], frame_skip: int = 4, scale: int = 2) -> None:
    """Writes H.264 by the encoder that imageio-ffmpeg brings."""
    try:
        from imageio_ffmpeg import write_frames
    except ImportError as error:
        raise DataError("An MP4 needs imageio-ffmpeg; video=out.gif needs nothing.") from error
    first = picture(shots[0], scale)
    size = (first.width, first.height + first.height % 2)
    writer = write_frames(
        str(path), size, fps=FRAMES_PER_SECOND / frame_skip, quality=7, macro_block_size=2
    )
    writer.send(None)
    for shot in shots:
        page = Image.new("RGB", size, "white")
        page.paste(picture(shot, scale))
        writer.send(np.asarray(page))
    writer.close()


def save_gif(path: Path, shots: Sequence[Shot], frame_skip: int = 4, scale: int = 2) -> None:
    """Writes an animated GIF with a palette of four greys."""
    palette = [component for grey in GREYS for component in (grey, grey, grey)]
    frames = []
    for shot in shots:
        shades = 3 - (np.asarray(picture(shot, scale)).astype(np.int16) + 42) // 85
        frame = Image.fromarray(np.clip(shades, 0, 3).astype(np.uint8))
        frame.putpalette(palette)
        frames.append(frame)
    duration = round(1000 * frame_skip / FRAMES_PER_SECOND)
    frames[0].save(
        path, format="GIF", save_all=True, append_images=frames[1:], duration=duration, loop=0
    )
