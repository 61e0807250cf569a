"""Compiled loops of the replay: what arrives is compared with what is held."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

FOLLOWS = np.uint8(1)
"""The newest frame of the observation is the one that the step before led to."""
CONTINUES = np.uint8(2)
"""The older frames of the observation are those that the step before led to."""
SHIFTS = np.uint8(4)
"""The next observation is this one, shifted by one frame."""
ZEROS = np.uint8(8)
"""All older frames are zeros."""
REPEATS = np.uint8(16)
"""All older frames are the newest one."""


@njit(cache=True)
def same_bytes(a: Any, b: Any) -> bool:
    """Whether two rows of bytes are equal."""
    different = np.uint8(0)
    for i in range(a.shape[0]):
        different |= a[i] ^ b[i]
    return bool(different == 0)


@njit(cache=True)
def is_zero(a: Any) -> bool:
    """Whether a row of bytes is zero."""
    found = np.uint8(0)
    for i in range(a.shape[0]):
        found |= a[i]
    return bool(found == 0)


@njit(cache=True)
def compare_stacks(
    observed: Any, following: Any, before: Any, frame: int, found: Any, told: Any
) -> bool:
    """What is true of each environment's observation, as bits of found [N].

    observed, following  [N, k * frame] uint8   an observation and what its step led to
    before               [N, k * frame] uint8   what the step before led to; becomes `following`
    told                 [N, frame] uint8       its newest frame, where another one was observed

    Returns whether all newest frames are those that the step before led to.
    """
    all_follow = True
    size = observed.shape[1]
    for n in range(observed.shape[0]):
        now, then, last = observed[n], following[n], before[n]
        newest = now[size - frame :]
        bits = np.uint8(0)
        if same_bytes(newest, last[size - frame :]):
            bits |= FOLLOWS
        else:
            all_follow = False
            told[n] = last[size - frame :]
        if same_bytes(now[: size - frame], last[: size - frame]):
            bits |= CONTINUES
        else:
            if is_zero(now[: size - frame]):
                bits |= ZEROS
            repeats = True
            for at in range(0, size - frame, frame):
                repeats = repeats and same_bytes(newest, now[at : at + frame])
            if repeats:
                bits |= REPEATS
        if same_bytes(then[: size - frame], now[frame:]):
            bits |= SHIFTS
        found[n] = bits
        last[:] = then
    return all_follow
