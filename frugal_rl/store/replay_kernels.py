"""Compiled loops of the replay: what arrives is compared with what is held."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

BACK = np.uint8(0x0F)
"""Bits of a code: how many older frames are rows before this one."""
PAD_REPEATS = np.uint8(0x10)
"""The frames before those are the oldest of them; zeros where this bit is not set."""
WHOLE_NOW = np.uint8(0x20)
"""The observation is kept whole."""
WHOLE_NEXT = np.uint8(0x40)
"""The next observation is kept whole."""
APART = np.uint8(0x80)
"""The newest frame is not the one that the step before led to."""


@njit(cache=True)
def same_units(a: Any, b: Any) -> bool:
    """Whether two rows of unsigned integers are equal."""
    zero = a.dtype.type(0)
    different = zero
    for i in range(a.shape[0]):
        different |= a[i] ^ b[i]
    return bool(different == zero)


@njit(cache=True)
def begun_code(now: Any, frame: int, frames: int) -> Any:
    """The code of an observation that does not follow from the step before."""
    older = (frames - 1) * frame
    zeros = True
    for i in range(older):
        zeros = zeros and now[i] == 0
    if zeros:
        return np.uint8(0)
    for j in range(frames - 1):
        if not same_units(now[j * frame : j * frame + frame], now[older:]):
            return WHOLE_NOW
    return PAD_REPEATS


@njit(cache=True)
def continued_code(last: Any, frames: int) -> Any:
    """The code of an observation whose older frames are those that the step before led to."""
    if last & WHOLE_NEXT:
        return WHOLE_NOW
    back = (last & BACK) + 1
    if back >= frames - 1:
        return np.uint8(frames - 1)
    return np.uint8(back) | (last & (PAD_REPEATS | WHOLE_NOW))


@njit(cache=True)
def code_stacks(
    observed: Any, following: Any, before: Any, frame: int, frames: int, is_first: bool,
    codes: Any, told: Any,
) -> Any:  # fmt: skip
    """How observations follow from the rows before; returns all bits of all codes.

    observed, following  [N, k * frame]   an observation and what its step led to, any unsigned type
    before               [N, k * frame]   what the step before led to; becomes `following`
    codes                [N] uint8        of the step before; becomes those of this step
    told                 [N, frame]       the newest frame of `before`, where another was observed
    """
    older = (frames - 1) * frame
    seen = np.uint8(0)
    for n in range(observed.shape[0]):
        now, then, last = observed[n], following[n], before[n]
        if not is_first and same_units(now[:older], last[:older]):
            code = continued_code(codes[n], frames)
        else:
            code = begun_code(now, frame, frames)
        if not same_units(then[:older], now[frame:]):
            code |= WHOLE_NEXT
        if not is_first and not same_units(now[older:], last[older:]):
            code |= APART
            told[n] = last[older:]
        last[:] = then
        codes[n] = code
        seen |= code
    return seen
