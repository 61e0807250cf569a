"""Pictures of four shades: grey values, two-bit packing, 2 x 2 means. Shade = grey value / 85."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numba import njit

from fighting.emulator import SCREEN
from frugal_rl.errors import EncodingError
from frugal_rl.observation.codecs import Codec
from frugal_rl.observation.pooled import DeltaCodec

HEIGHT, WIDTH = SCREEN
PACKED_WIDTH = WIDTH // 4
HALF = (HEIGHT // 2, WIDTH // 2)
EXPECTED_SHARE = 0.19
"""Of a packed frame, what a delta keeps, with room to spare (benchmarks/fighting_bytes.py)."""
CROP_TOP = 40
"""First row of the cropped picture, which drops sky and head-up display."""

SHIFTS = np.array([6, 4, 2, 0], np.uint8)
UNPACKED: np.ndarray = ((np.arange(256)[:, None] >> SHIFTS & 3) * 85).astype(np.uint8)
"""[256, 4] uint8: the four grey values of a packed byte, leftmost pixel first."""


@njit(cache=True, nogil=True)
def grey(screen, flip, out):
    """The red channel of screen (H, W, 4) uint8 into out (H', W), its last H' rows.

    `flip` mirrors left and right, here and below.
    """
    top = screen.shape[0] - out.shape[0]
    last = screen.shape[1] - 1
    for y in range(out.shape[0]):
        for x in range(out.shape[1]):
            out[y, x] = screen[top + y, last - x if flip else x, 0]


@njit(cache=True, nogil=True)
def colour(screen, flip, out):
    """The colours of screen (H, W, 4) uint8 into out (H', W, 3), its last H' rows."""
    top = screen.shape[0] - out.shape[0]
    last = screen.shape[1] - 1
    for y in range(out.shape[0]):
        for x in range(out.shape[1]):
            for c in range(3):
                out[y, x, c] = screen[top + y, last - x if flip else x, c]


@njit(cache=True, nogil=True)
def pack_screen(screen, flip, out):
    """Screen (H, W, 4) uint8 -> out (H', W / 4) uint8, four pixels per byte, its last H' rows."""
    top = screen.shape[0] - out.shape[0]
    last = screen.shape[1] - 1
    for y in range(out.shape[0]):
        row = screen[top + y]
        for k in range(out.shape[1]):
            x, step = (last - 4 * k, -1) if flip else (4 * k, 1)
            out[y, k] = (
                (row[x, 0] >> 6) << 6
                | (row[x + step, 0] >> 6) << 4
                | (row[x + 2 * step, 0] >> 6) << 2
                | row[x + 3 * step, 0] >> 6
            )


@njit(cache=True, nogil=True)
def half_screen(screen, flip, out):
    """Screen (H, W, 4) uint8 -> out (H' / 2, W / 2) uint8: mean of 2 x 2 pixels, rounded down."""
    top = screen.shape[0] - 2 * out.shape[0]
    last = out.shape[1] - 1
    for y in range(out.shape[0]):
        above, below = screen[top + 2 * y], screen[top + 2 * y + 1]
        for x in range(out.shape[1]):
            total = np.int32(above[2 * x, 0]) + above[2 * x + 1, 0]
            total += np.int32(below[2 * x, 0]) + below[2 * x + 1, 0]
            out[y, last - x if flip else x] = total // 4


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
    """Frames (N, P) uint8 -> out (N, P / 4) uint8; returns the first wrong value, or -1."""
    for n in range(frames.shape[0]):
        for k in range(out.shape[1]):
            byte = 0
            for j in range(4):
                value = frames[n, 4 * k + j]
                if value % 85 != 0:
                    return np.int64(value)
                byte = byte << 2 | value // 85
            out[n, k] = byte
    return np.int64(-1)


@dataclass(frozen=True)
class PackedCodec(Codec):
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
        found = pack_rows(flat, packed.reshape(-1, out.shape[-1]))
        if found >= 0:
            raise EncodingError(
                f"A pixel has the grey value {found}, but packed frames hold only 0, 85, 170 and "
                "255. This game uses other colours: choose env.fields.frame=dense."
            )
        if packed is not out:
            out[...] = packed

    def decode(self, stored: np.ndarray) -> np.ndarray:
        """[..., W / 4] uint8 -> [..., W] uint8."""
        return UNPACKED[stored].reshape(*stored.shape[:-1], 4 * stored.shape[-1])


@dataclass(frozen=True)
class PackedDeltaCodec(DeltaCodec):
    """Packed frames of which the rollout keeps only what differs from an earlier one. Lossless."""

    twin: ClassVar[str] = "fighting.derive:unpack"
