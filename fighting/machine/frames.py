"""Pictures of four shades: grey values, two-bit packing, 2 x 2 means. Shade = grey value / 85."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numba import njit

from fighting.machine.emulator import SCREEN
from frugal_rl.errors import EncodingError
from frugal_rl.observation.codecs.codec import Codec

HEIGHT, WIDTH = SCREEN
PACKED_WIDTH = WIDTH // 4
HALF = (HEIGHT // 2, WIDTH // 2)
EXPECTED_SHARE = 0.19
"""Of a packed frame, what a delta keeps, with room to spare (benchmarks/fighting_bytes.py)."""
RGB, SHADE_BITS = np.uint32(0xFFFFFF), np.uint32(0x03030303)
CROP_TOP = 40
"""First row of the cropped picture, which drops sky and head-up display."""

SHIFTS = np.array([6, 4, 2, 0], np.uint8)
UNPACKED: np.ndarray = ((np.arange(256)[:, None] >> SHIFTS & 3) * 85).astype(np.uint8)
"""[256, 4] uint8: the four grey values of a packed byte, leftmost pixel first."""


# Pixels (H, W) are integers, their low byte the grey value, or red; `flip` mirrors left and right.
# The compiler sees each direction's step as a constant: the plain one is 4 to 6 times as fast.


@njit(inline="always")
def _grey_row(row, first, step, out):
    for x in range(out.shape[0]):
        out[x] = np.uint8(row[first + step * x])


@njit(inline="always")
def _colour_row(row, first, step, out):
    """Four pixels of three bytes are three words."""
    for k in range(out.shape[0] // 3):
        x = first + 4 * step * k
        a, b = row[x] & RGB, row[x + step] & RGB
        c, d = row[x + 2 * step] & RGB, row[x + 3 * step] & RGB
        out[3 * k] = a | b << np.uint32(24)
        out[3 * k + 1] = b >> np.uint32(8) | c << np.uint32(16)
        out[3 * k + 2] = c >> np.uint32(16) | d << np.uint32(8)


@njit(inline="always")
def _pack_row(row, first, step, out):
    for k in range(out.shape[0]):
        x = first + 4 * step * k
        out[k] = (
            row[x] & 0xC0
            | row[x + step] >> 2 & 0x30
            | row[x + 2 * step] >> 4 & 0x0C
            | row[x + 3 * step] >> 6 & 0x03
        )


@njit(cache=True, nogil=True)
def grey(pixels, flip, out):
    """Grey values of pixels (H, W) into out (H', W) uint8, its last H' rows."""
    top, last = pixels.shape[0] - out.shape[0], pixels.shape[1] - 1
    for y in range(out.shape[0]):
        if flip:
            _grey_row(pixels[top + y], last, -1, out[y])
        else:
            _grey_row(pixels[top + y], 0, 1, out[y])


def colour(pixels: np.ndarray, flip: bool, out: np.ndarray) -> None:
    """Colours of pixels (H, W) uint32 into out (H', W, 3) uint8, its last H' rows."""
    _colour_words(pixels, flip, out.reshape(len(out), -1).view(np.uint32))


@njit(cache=True, nogil=True)
def _colour_words(pixels, flip, out):
    """Pixels (H, W) uint32 -> out (H', 3 W / 4) uint32."""
    top, last = pixels.shape[0] - out.shape[0], pixels.shape[1] - 1
    for y in range(out.shape[0]):
        if flip:
            _colour_row(pixels[top + y], last, -1, out[y])
        else:
            _colour_row(pixels[top + y], 0, 1, out[y])


@njit(cache=True, nogil=True)
def pack_screen(pixels, flip, out):
    """Pixels (H, W) -> out (H', W / 4) uint8, four of them per byte, its last H' rows."""
    top, last = pixels.shape[0] - out.shape[0], pixels.shape[1] - 1
    for y in range(out.shape[0]):
        if flip:
            _pack_row(pixels[top + y], last, -1, out[y])
        else:
            _pack_row(pixels[top + y], 0, 1, out[y])


@njit(cache=True, nogil=True)
def half_screen(pixels, flip, out):
    """Pixels (H, W) -> out (H' / 2, W / 2) uint8: mean of 2 x 2 grey values, rounded down."""
    top, last = pixels.shape[0] - 2 * out.shape[0], out.shape[1] - 1
    for y in range(out.shape[0]):
        above, below, to = pixels[top + 2 * y], pixels[top + 2 * y + 1], out[y]
        for x in range(to.shape[0]):
            total = (above[2 * x] & 0xFF) + (above[2 * x + 1] & 0xFF)
            total += (below[2 * x] & 0xFF) + (below[2 * x + 1] & 0xFF)
            to[last - x if flip else x] = total // 4


@njit(cache=True, nogil=True)
def darker(first, second):
    """First (H, W, 4) becomes the darker of both frames, pixel by pixel."""
    for y in range(first.shape[0]):
        for x in range(first.shape[1]):
            for c in range(3):
                if second[y, x, c] < first[y, x, c]:
                    first[y, x, c] = second[y, x, c]


@njit(cache=True, nogil=True)
def pack_rows(frames, out):
    """Frames (N, P / 4) uint32, four grey values each -> out (N, P / 4) uint8, leftmost on top.

    Returns which bits of any value are wrong: 0 where all are 0, 85, 170 or 255.
    """
    wrong = np.uint32(0)
    for n in range(frames.shape[0]):
        row, to = frames[n], out[n]
        for k in range(to.shape[0]):
            shades = row[k] >> np.uint32(6) & SHADE_BITS
            wrong |= row[k] ^ shades * np.uint32(85)
            left, right = shades << np.uint32(6) | shades >> np.uint32(4), shades >> np.uint32(14)
            to[k] = (left | right | shades >> np.uint32(24)) & np.uint32(0xFF)
    return wrong


@dataclass(frozen=True)
class GreyCodec(Codec):
    """Four pixels of four shades to the byte, leftmost in the top bits. Lossless."""

    name: ClassVar[str] = "packed"
    twin: ClassVar[str] = "fighting.derive:unpack"

    def stored(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[tuple[int, ...], Any]:
        """[..., W] -> [..., W / 4] uint8."""
        return (*shape[:-1], shape[-1] // 4), np.dtype(np.uint8)

    def encode(self, values: np.ndarray) -> np.ndarray:
        """[..., W] uint8 of 0, 85, 170, 255 -> [..., W / 4] uint8; refuses other values."""
        out = np.empty((*values.shape[:-1], values.shape[-1] // 4), np.uint8)
        self.encode_into(values, out)
        return out

    def encode_into(self, values: np.ndarray, out: np.ndarray) -> None:
        """As `encode`, written into `out`."""
        flat = np.ascontiguousarray(values).reshape(-1, values.shape[-1])
        packed = out if out.flags.c_contiguous else np.empty(out.shape, np.uint8)
        if pack_rows(flat.view(np.uint32), packed.reshape(-1, out.shape[-1])):
            found = flat[flat % 85 != 0][0]
            raise EncodingError(
                f"A pixel has the grey value {found}, but packed frames hold only 0, 85, 170 and "
                "255. This game uses other colours: choose env.fields.frame=dense."
            )
        if packed is not out:
            out[...] = packed

    def decode(self, stored: np.ndarray) -> np.ndarray:
        """[..., W / 4] uint8 -> [..., W] uint8."""
        return UNPACKED[stored].reshape(*stored.shape[:-1], 4 * stored.shape[-1])
