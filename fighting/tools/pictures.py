"""Fights as GIFs of four shades or MP4s, with what the policy did and expects below."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from fighting.machine.emulator import FRAMES_PER_SECOND, SCREEN
from fighting.machine.frames import UNPACKED, pack_screen
from frugal_rl.report import film

BAND = 22
"""Pixels under the screen for what is written there."""
PALETTE = film.exactly(np.repeat(np.array([[255], [170], [85], [0]], np.uint8), 3, axis=1))


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


def pages(shots: Iterable[Shot], scale: int = 2) -> Iterator[np.ndarray]:
    """Pictures [H, W, 3] uint8 of the shots."""
    return (np.asarray(picture(shot, scale).convert("RGB")) for shot in shots)


def save_film(path: Path, frames: Iterable[np.ndarray], frame_skip: int = 4) -> Path:
    """Writes pages as a GIF or an MP4, by the path's suffix; complete or not at all."""
    film.save_film(path, frames, FRAMES_PER_SECOND / frame_skip, PALETTE)
    return path
