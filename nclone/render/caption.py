"""Words on pictures: a line in the rock above the level, one below."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from nclone.geometry import TILE_PX

LIGHT = (222, 224, 230)
FADED = (168, 174, 188)
SMALLEST_PX = 9


@lru_cache(maxsize=8)
def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)


def write_caption(image: np.ndarray, above: str, below: str, scale: float) -> None:
    """Write into the border of a picture [H, W, 3] uint8, in place; nothing below 9 px height."""
    size = round(0.6 * TILE_PX * scale)
    if size < SMALLEST_PX:
        return
    band = round(TILE_PX * scale)
    for words, rows, colour in (
        (above, slice(0, band), LIGHT),
        (below, slice(image.shape[0] - band, image.shape[0]), FADED),
    ):
        strip = Image.fromarray(np.ascontiguousarray(image[rows]))
        place = (round(TILE_PX * scale / 2), band // 2)
        room = image.shape[1] - 2 * place[0]
        drawing, font = ImageDraw.Draw(strip), _font(size)
        while words and drawing.textlength(words, font) > room:
            words = words[:-1]
        drawing.text(place, words, colour, font, anchor="lm")
        image[rows] = np.asarray(strip)
