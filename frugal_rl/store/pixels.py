"""Pixels straight from packed differences: a reference's pixels, copied, and a few stores.

A unit of two bytes in a row of 2-bit pixels is eight pixels, which are one 64-bit word. References
are unpacked once, so that a drawn frame is never unpacked as a whole.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit

from frugal_rl.observation.codecs.packed import PackedCodec
from frugal_rl.store.delta_kernels import first_places, lowest_bit

if TYPE_CHECKING:
    from frugal_rl.store.delta import DeltaColumn

BITS = 2


def spread_table() -> np.ndarray:
    """[256] uint64: the four pixels of a byte, one to the byte, the first in the lowest."""
    byte = np.arange(256, dtype=np.uint64)
    spread = byte | byte << np.uint64(6) | byte << np.uint64(12) | byte << np.uint64(18)
    return np.asarray(spread & np.uint64(0x03030303))


SPREAD = spread_table()


class PixelReader:
    """Reads frames of a `DeltaColumn` of packed 2-bit pixels as bytes.

    pixels  [R, P / 8] uint64   the unpacked references, those below `unpacked` being valid
    """

    def __init__(self, column: DeltaColumn) -> None:
        self.column = column
        codec = column.spec.codec
        assert codec is not None
        assert isinstance(codec.inner, PackedCodec)
        self.codec = codec.inner
        self.pixels = np.zeros((0, math.prod(self.codec.shape) // 8), np.uint64)
        self.unpacked = 0
        self._rollout = -1

    @staticmethod
    def reads(column: DeltaColumn) -> bool:
        """Whether the column's rows are whole words of 2-bit pixels."""
        codec = column.spec.codec
        inner = codec.inner if codec is not None else None
        if not isinstance(inner, PackedCodec) or inner.bits != BITS:
            return False
        return math.prod(inner.shape) % 32 == 0

    def gather(self, t: np.ndarray, n: np.ndarray, age: np.ndarray | None, out: np.ndarray) -> None:
        """Frames or windows of the samples (t[b], n[b]) into out [B, (k,) *shape] uint8."""
        column = self.column
        self._unpack_references()
        frames = out.reshape(len(t), column.spec.lead + 1, -1).view(np.uint64)
        read_pixels(
            column.pool.units,
            column.pool.words,
            column.starts,
            column.reference_of,
            self.pixels,
            SPREAD,
            column.bitmaps,
            column.steps_of(t, age),
            n,
            frames,
        )

    def _unpack_references(self) -> None:
        """Unpack what is new; all of it where a rollout has begun anew."""
        references, rollout = self.column.references, self.column.rollout
        if self._rollout != rollout:
            self._rollout, self.unpacked = rollout, 0
        if self.unpacked == references.used:
            return
        if len(self.pixels) < references.used:
            self.pixels = np.zeros((len(references.values), self.pixels.shape[1]), np.uint64)
            self.unpacked = 0
        packed = references.values[self.unpacked : references.used].view(np.uint8)
        here = self.pixels[self.unpacked : references.used].view(np.uint8)
        self.codec.decode_into(packed, here.reshape(len(packed), *self.codec.shape))
        self.unpacked = references.used

    @property
    def nbytes(self) -> int:
        """Bytes of the unpacked references."""
        return int(self.pixels.nbytes)


@njit(cache=True)
def read_pixels(
    units: Any,
    pool_words: Any,
    starts: Any,
    reference_of: Any,
    pixels: Any,
    spread: Any,
    bitmaps: int,
    steps: Any,
    n: Any,
    out: Any,
) -> None:
    """Frames (steps[b, j], n[b]) into out [B, k, P / 8] uint64; zeros where a step is -1."""
    for b in range(steps.shape[0]):
        for j in range(steps.shape[1]):
            at = steps[b, j]
            if at < 0:
                out[b, j] = 0
            else:
                out[b, j] = pixels[reference_of[at, n[b]]]
                add_pixels(units, pool_words, starts[at, n[b]], bitmaps, spread, out[b, j])


@njit(cache=True)
def add_pixels(
    units: Any, pool_words: Any, start: int, bitmaps: int, spread: Any, out: Any
) -> None:
    """Exclusive-or the differences of one row into out [P / 8] uint64, its reference's pixels."""
    one, low, eight, high = np.uint64(1), np.uint64(0xFF), np.uint64(8), np.uint64(32)
    tops = (bitmaps + 63) // 64
    bitmap_at, at = first_places(pool_words, start, tops)
    for top in range(tops):
        which = pool_words[start // 4 + top]
        while which != 0:
            first = 64 * (64 * top + lowest_bit(which))
            which &= which - one
            bits = pool_words[bitmap_at]
            bitmap_at += 1
            while bits != 0:
                unit = np.uint64(units[at])
                pixels = spread[unit & low] | spread[unit >> eight] << high
                out[first + lowest_bit(bits)] ^= pixels
                bits &= bits - one
                at += 1
