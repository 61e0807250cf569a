"""`packed`: pixels of few shades, several to the byte."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numba import njit

from frugal_rl.errors import EncodingError
from frugal_rl.observation.codecs.codec import Codec


@dataclass(frozen=True)
class PackedCodec(Codec):
    """Pixels of 2^bits shades, 8 / bits to the byte, the first in the lowest bits. Lossless.

    All axes of `shape` are packed into one; `bits` is 1, 2 or 4.
    """

    shape: tuple[int, ...]
    bits: int = 2
    name: ClassVar[str] = "packed"
    twin: ClassVar[str] = "frugal_rl.observation.codecs.packed_torch:decode"

    def __post_init__(self) -> None:
        if self.bits not in (1, 2, 4):
            raise ValueError(f"bits is {self.bits}; pixels pack into 1, 2 or 4 bits.")

    @property
    def packed_bytes(self) -> int:
        """Bytes of one packed value."""
        return -(-math.prod(self.shape) * self.bits // 8)

    def stored(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[tuple[int, ...], Any]:
        """[*shape] uint8 becomes [packed_bytes] uint8."""
        return (self.packed_bytes,), np.dtype(np.uint8)

    def bounds(
        self, low: float, high: float, dtype: np.dtype[Any], stored: np.dtype[Any]
    ) -> tuple[float, float]:
        """Any byte, whatever shades the field has."""
        return 0.0, 255.0

    def encode(self, values: np.ndarray) -> np.ndarray:
        """[..., *shape] uint8 below 2^bits -> [..., packed_bytes] uint8."""
        batch = values.shape[: values.ndim - len(self.shape)]
        out = np.empty((*batch, self.packed_bytes), np.uint8)
        self.encode_into(values, out)
        return out

    def encode_into(self, values: np.ndarray, out: np.ndarray) -> None:
        """As `encode`, into contiguous `out`; refuses shades that do not fit."""
        pixels = np.ascontiguousarray(values, np.uint8).reshape(-1, math.prod(self.shape))
        packed = out.reshape(-1, self.packed_bytes)
        if self.bits == 2 and pixels.shape[1] % 8 == 0:
            largest = pack_eights(pixels.view(np.uint64), packed.view(np.uint16))
        else:
            largest = pack(pixels, self.bits, packed)
        if largest >= 1 << self.bits:
            raise EncodingError(
                f"A shade of {largest} or less does not fit {self.bits} bits "
                f"(at most {(1 << self.bits) - 1}). Keep this field dense."
            )

    def decode(self, stored: np.ndarray) -> np.ndarray:
        """[..., packed_bytes] uint8 -> [..., *shape] uint8."""
        out = np.empty((*stored.shape[:-1], *self.shape), np.uint8)
        self.decode_into(stored, out)
        return out

    def decode_into(self, stored: np.ndarray, out: np.ndarray) -> None:
        """As `decode`, into contiguous `out`."""
        packed = np.ascontiguousarray(stored).reshape(-1, self.packed_bytes)
        pixels = out.reshape(-1, math.prod(self.shape))
        if self.bits == 2 and pixels.shape[1] % 8 == 0:
            unpack_eights(packed.view(np.uint16), pixels.view(np.uint64))
        else:
            unpack(packed, self.bits, pixels)


@njit(cache=True)
def pack(pixels: Any, bits: int, out: Any) -> int:
    """Pack pixels [M, P] uint8 -> out [M, ceil(P * bits / 8)]; all pixels or-ed together."""
    each = 8 // bits
    seen = np.uint8(0)
    for m in range(pixels.shape[0]):
        whole = pixels.shape[1] // each
        for i in range(whole):
            byte = 0
            for j in range(each):
                pixel = pixels[m, i * each + j]
                seen |= pixel
                byte |= pixel << (j * bits)
            out[m, i] = byte
        byte = 0
        for j in range(whole * each, pixels.shape[1]):
            seen |= pixels[m, j]
            byte |= pixels[m, j] << ((j - whole * each) * bits)
        if whole < out.shape[1]:
            out[m, whole] = byte
    return int(seen)


@njit(cache=True)
def pack_eights(pixels: Any, out: Any) -> int:
    """Pack pixels [M, Q] uint64, eight at a time, -> out [M, Q] uint16; all or-ed together."""
    seen = np.uint64(0)
    fours, eights = np.uint64(0x000F000F000F000F), np.uint64(0x000000FF000000FF)
    for m in range(out.shape[0]):
        for i in range(out.shape[1]):
            w = pixels[m, i]
            seen |= w
            w = (w | w >> np.uint64(6)) & fours
            w = (w | w >> np.uint64(12)) & eights
            out[m, i] = np.uint16(w | w >> np.uint64(24))
    seen |= seen >> np.uint64(32)
    seen |= seen >> np.uint64(16)
    return int((seen | seen >> np.uint64(8)) & np.uint64(0xFF))


@njit(cache=True)
def unpack(packed: Any, bits: int, out: Any) -> None:
    """Unpack [M, Q] uint8 -> out [M, P] uint8, for any number of bits."""
    each = 8 // bits
    mask = (1 << bits) - 1
    for m in range(out.shape[0]):
        for i in range(out.shape[1]):
            out[m, i] = (packed[m, i // each] >> ((i % each) * bits)) & mask


@njit(cache=True)
def unpack_eights(packed: Any, out: Any) -> None:
    """Unpack [M, Q] uint16 -> out [M, Q] uint64: eight 2-bit pixels spread over eight bytes."""
    ones = np.uint64(0x0303030303030303)
    fours, eights = np.uint64(0x000F000F000F000F), np.uint64(0x000000FF000000FF)
    for m in range(out.shape[0]):
        for i in range(out.shape[1]):
            w = np.uint64(packed[m, i])
            w = (w | w << np.uint64(24)) & eights
            w = (w | w << np.uint64(12)) & fours
            out[m, i] = (w | w << np.uint64(6)) & ones
