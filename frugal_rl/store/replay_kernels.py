"""Compiled loops of the replay: what arrives is compared with what is held."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from frugal_rl.store.chain_kernels import (
    BESIDE,
    copy_row,
    put_row,
    read_chains,
    same_units,
)
from frugal_rl.store.region import CHUNK_BYTES

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
def same_stacks(now: Any, last: Any, frame: int, frames: int, oldest: int) -> bool:
    """Whether frames of `now` are those of `last`, whose first one lies in slot `oldest`."""
    split, begin = (frames - oldest) * frame, oldest * frame
    same = same_units(now[:split], last[begin : begin + split])
    return same and same_units(now[split:], last[: now.shape[0] - split])


@njit(cache=True)
def goes_on(now: Any, then: Any, last: Any, frame: int, frames: int, oldest: int) -> bool:
    """Whether `now` is `last`, whose first frame lies in slot `oldest`, and `then` shifts it on.

    All are read once, side by side.
    """
    zero = now.dtype.type(0)
    different = zero
    for j in range(frames):
        seen = now[j * frame : j * frame + frame]
        slot = (oldest + j) % frames * frame
        held = last[slot : slot + frame]
        if j == 0:
            for i in range(frame):
                different |= seen[i] ^ held[i]
        else:
            led = then[j * frame - frame : j * frame]
            for i in range(frame):
                different |= (seen[i] ^ held[i]) | (seen[i] ^ led[i])
    return bool(different == zero)


@njit(cache=True)
def unusual_code(
    now: Any, then: Any, last: Any, code_before: Any, told: Any, frame: int, frames: int, step: int
) -> Any:
    """The code of an observation that may follow from nothing.

    last becomes `then` but for its newest frame, told [frame] the newest frame of `last` where
    another was observed.
    """
    older, oldest = (frames - 1) * frame, step % frames
    newest = (step + frames - 1) % frames * frame
    if step > 0 and same_stacks(now, last, frame, frames, oldest):
        code = continued_code(code_before, frames)
    else:
        code = begun_code(now, frame, frames)
        if step > 0:
            if same_stacks(now[:older], last, frame, frames, oldest):
                code = continued_code(code_before, frames)
            if not same_units(now[older:], last[newest : newest + frame]):
                code |= APART
                copy_row(last[newest : newest + frame], told)
        put_stack(now[frame:], last, frame, frames, step + 1)
    if not same_units(then[:older], now[frame:]):
        code |= WHOLE_NEXT
        put_stack(then[:older], last, frame, frames, step + 1)
    return code


@njit(cache=True)
def code_stacks(
    observed: Any,
    following: Any,
    before: Any,
    frame: int,
    frames: int,
    step: int,
    codes: Any,
    told: Any,
) -> Any:
    """How observations follow from the rows before; returns all bits of all codes.

    observed, following  [N, k * frame]   an observation and what its step led to, any unsigned type
    before               [N, k * frame]   what the step before led to, its frames in a ring: frame j
                                          in slot (step + j) % k. Becomes `following`, by one frame
                                          where nothing unusual happened
    codes                [N] uint8        of the step before; becomes those of this step
    told                 [N, frame]       the newest frame of `before`, where another was observed
    """
    older = (frames - 1) * frame
    oldest = step % frames
    seen = np.uint8(0)
    for n in range(observed.shape[0]):
        now, then, last = observed[n], following[n], before[n]
        if step > 0 and goes_on(now, then, last, frame, frames, oldest):
            code = continued_code(codes[n], frames)
        else:
            code = unusual_code(now, then, last, codes[n], told[n], frame, frames, step)
        copy_row(then[older:], last[oldest * frame : oldest * frame + frame])
        codes[n] = code
        seen |= code
    return seen


@njit(cache=True)
def put_stack(stack: Any, ring: Any, frame: int, frames: int, step: int) -> None:
    """Put frames [j * frame] into a ring, from slot step % k on."""
    for j in range(stack.shape[0] // frame):
        at = (step + j) % frames * frame
        copy_row(stack[j * frame : j * frame + frame], ring[at : at + frame])


UNUSUAL = np.uint8(WHOLE_NOW | WHOLE_NEXT | APART)
"""Bits of a code that ask for more than a row in a chain."""
NOT_ADDED = np.int64(-1)


@njit(cache=True)
def add_step(
    observed: Any,
    following: Any,
    step: int,
    base: int,
    used: int,
    codes: Any,
    frames: int,
    kept_codes: Any,
    before: Any,
    told: Any,
    newest: Any,
    units: Any,
    starts: Any,
    touched: Any,
) -> Any:
    """One step inside a block in one call: codes, then a record of each newest frame.

    Returns the end of the records, or `NOT_ADDED` with nothing but the codes written where one of
    them is unusual.

    observed, following, before, step, codes, told   as in `code_stacks`
    base, used            where its block begins in units, and its records
    kept_codes            [T, N] uint8, no rows where nothing is stacked
    newest                [N, W] uint64 the newest frame of each environment
    units                 uint16; starts [S, N] uint32; touched: chunks of units that hold memory
    """
    frame = newest.shape[1]
    seen = code_stacks(observed, following, before, frame, frames, step, codes, told)
    if seen & UNUSUAL:
        return NOT_ADDED
    row, slot = step % starts.shape[0], step % max(kept_codes.shape[0], 1)
    first = used
    for n in range(observed.shape[0]):
        now, last = observed[n][(frames - 1) * frame :], newest[n]
        starts[row, n], used = put_row(now, last, units, used, base)
        copy_row(now, last)
        if frames > 1:
            kept_codes[slot, n] = codes[n]
    for chunk in range(2 * first // CHUNK_BYTES, -(-2 * used // CHUNK_BYTES)):
        touched[chunk] = True
    return used


@njit(cache=True)
def draw_steps(
    steps: Any,
    n: Any,
    walks: Any,
    kept_codes: Any,
    before: Any,
    side_keys: Any,
    sides: Any,
    units: Any,
    starts: Any,
    bases: Any,
    links: Any,
    anchors: Any,
    anchor_of: Any,
    key_every: int,
    count: int,
    tops: int,
    state: Any,
    words: Any,
    out: Any,
) -> Any:
    """Observations and what they led to in one call; returns all bits of all codes.

    steps, n     [B] int64         absolute steps that are held, and environments
    walks        [4, B] int64      scratch
    kept_codes   [T, N] uint8      no rows where nothing is stacked
    before       [N, k * frame]    what the newest step led to, a ring as in `code_stacks`
    side_keys    [M] int64 ascending, sides [M] int64   starts of the rows beside others
    out          [B, k + 1, frame] uint64
    the rest     as in `read_chains`
    """
    frames, seen = out.shape[1] - 1, np.uint8(0)
    first, last, place, aside = walks[0], walks[1], walks[2], walks[3]
    for b in range(steps.shape[0]):
        step, env, back = steps[b], n[b], np.int64(0)
        if frames > 1:
            code = kept_codes[step % kept_codes.shape[0], env]
            seen |= code
            back = np.int64(code & BACK)
        first[b], last[b], place[b], aside[b] = step - back, step + 1, frames - 1 - back, -1
        if starts[step % starts.shape[0], env] & BESIDE != 0:
            at = np.searchsorted(side_keys, step * starts.shape[1] + env)
            last[b], aside[b] = step, sides[at]
        elif step == count - 1:
            last[b] = step
    read_chains(
        units,
        starts,
        bases,
        links,
        anchors,
        anchor_of,
        key_every,
        count,
        tops,
        first,
        last,
        n,
        place,
        aside,
        state,
        words,
        words,
        out,
    )
    for b in range(steps.shape[0]):
        if steps[b] == count - 1:
            at = (count - 1) % frames * out.shape[2]
            copy_row(before[n[b]][at : at + out.shape[2]], out[b, frames])
        if place[b] > 0:
            code = kept_codes[steps[b] % kept_codes.shape[0], n[b]]
            pad_stack(out[b], place[b], code & PAD_REPEATS != 0)
    return seen


@njit(cache=True)
def pad_stack(stack: Any, place: Any, repeats: bool) -> None:
    """Fill the frames before `place` with the one that lies there, or with zeros."""
    for j in range(place):
        for i in range(stack.shape[1]):
            stack[j, i] = stack[place, i] if repeats else np.uint64(0)
