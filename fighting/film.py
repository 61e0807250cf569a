"""Fights as GIFs of four shades, with what both fighters did beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from fighting.emulator import FRAMES_PER_SECOND, SCREEN
from fighting.frames import UNPACKED

BAND = 22
"""Pixels under the screen for what is written there."""
GREYS = (255, 170, 85, 0)


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


def save_gif(path: Path, shots: Sequence[Shot], frame_skip: int = 4, scale: int = 2) -> Path:
    """Writes an animated GIF with a palette of four greys; a temporary file first."""
    palette = [component for grey in GREYS for component in (grey, grey, grey)]
    frames = []
    for shot in shots:
        shades = 3 - (np.asarray(picture(shot, scale)).astype(np.int16) + 42) // 85
        frame = Image.fromarray(np.clip(shades, 0, 3).astype(np.uint8))
        frame.putpalette(palette)
        frames.append(frame)
    part = path.with_suffix(".part")
    duration = round(1000 * frame_skip / FRAMES_PER_SECOND)
    frames[0].save(
        part, format="GIF", save_all=True, append_images=frames[1:], duration=duration, loop=0
    )
    part.replace(path)
    return path
