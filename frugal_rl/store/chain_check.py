"""Whether a chain of differences that came from a file stays inside of its own memory.

Compiled loops walk chains without looking at an index, so a file's chain is walked here first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit

from frugal_rl.errors import DataError
from frugal_rl.store.chain_kernels import BESIDE, NO_LINK, OFFSET, WHOLE

if TYPE_CHECKING:
    from frugal_rl.store.chain import FrameChain


def check_chain(chain: FrameChain) -> None:
    """Refuse a chain whose tables or records lead outside of it.

    Raises:
        DataError: in a line.
    """
    if not _numbers_fit(chain) or not _anchors_fit(chain):
        raise DataError("a replay's chain counts more than it can hold.")
    first = chain.freed_blocks * chain.key_every
    tops, row_units = chain.tops, 4 * chain.last.shape[1]
    end = last_record_end(
        chain.units, chain.starts, chain.bases, chain.links, chain.key_every, tops, row_units,
        first, chain.count,
    )  # fmt: skip
    if not 0 <= end <= chain.used or not _rows_beside_fit(chain, first, tops, row_units):
        raise DataError("a replay's chain leads outside of what is kept of it.")


def _numbers_fit(chain: FrameChain) -> bool:
    """Counters: what is held, what was freed, and that the newest block has room for its rest."""
    every, limit = chain.key_every, len(chain.units)
    begun = max(chain.count - 1, 0) // every * every
    if not 0 <= chain.count < 1 << 60:
        return False
    if chain.freed_blocks != max(0, (begun + 1 - chain.steps) // every):
        return False
    row_units = 4 * chain.last.shape[1]
    rows = (2 * (chain.count - begun) + 1) * chain.num_envs
    most = chain.base + rows * row_units
    bases = chain.bases
    fits = bases.min() >= 0 and bases.max() + chain.block_units <= limit
    return bool(fits and (chain.base <= chain.used <= min(most, limit) or chain.count == 0))


def _anchors_fit(chain: FrameChain) -> bool:
    most = len(chain.anchors)
    free = np.asarray(chain._free_anchors, np.int64)
    named = (chain.anchor_of.min() >= 0, chain.anchor_of.max() < most)
    newest = (chain._anchor.min() >= -1, chain._anchor.max() < most)
    kept = not len(free) or (free.min() >= 0 and free.max() < most)
    return all(named) and all(newest) and kept and 0 <= chain._anchors_touched <= most


def _rows_beside_fit(chain: FrameChain, first: int, tops: int, row_units: int) -> bool:
    """Each row that is said to have one beside it has one, whose record fits as well."""
    steps = np.arange(first, chain.count)
    marked = chain.starts[steps % len(chain.starts)] & BESIDE != 0
    at, n = np.nonzero(marked)
    keys = chain.beside.keys
    if not np.array_equal(keys, (first + at) * chain.num_envs + n):
        return False
    bases = chain.bases[(first + at) // chain.key_every % chain.blocks]
    ends = np.where(bases == chain.base, chain.used, len(chain.units))
    return bool(starts_fit(chain.units, bases, chain.beside.values, ends, tops, row_units))


@njit(cache=True)
def record_end(units: Any, base: Any, start: Any, tops: int, row_units: int) -> int:
    """Where a row, whole or as a record of differences, ends; -1 outside of units or of a row."""
    at, limit = base + np.int64(start & OFFSET), units.shape[0]
    if start & WHOLE:
        return at + row_units if at + row_units <= limit else -1
    for i in range(tops):
        if at >= limit:
            return -1
        top = np.int64(units[at])
        at += 1
        for h in range(16):
            if (top >> h) & 1 == 0:
                continue
            if at >= limit:
                return -1
            middle = np.int64(units[at])
            at += 1
            for g in range(16):
                if (middle >> g) & 1 == 0:
                    continue
                if at >= limit:
                    return -1
                bits = np.int64(units[at])
                at += 1
                first = ((16 * i + h) * 16 + g) * 16
                for j in range(16):
                    if (bits >> j) & 1:
                        if at >= limit or first + j >= row_units:
                            return -1
                        at += 1
    return int(at)


@njit(cache=True)
def starts_fit(units: Any, bases: Any, starts: Any, ends: Any, tops: int, row_units: int) -> bool:
    """Whether rows beside others, starts [M] int64, lie inside and before ends [M]."""
    for m in range(starts.shape[0]):
        if starts[m] < 0 or starts[m] >= 1 << 32:
            return False
        end = record_end(units, bases[m], np.uint32(starts[m]), tops, row_units)
        if not 0 <= end <= ends[m]:
            return False
    return True


@njit(cache=True)
def last_record_end(
    units: Any,
    starts: Any,
    bases: Any,
    links: Any,
    key_every: int,
    tops: int,
    row_units: int,
    first: int,
    count: int,
) -> int:
    """Where the newest block's rows and links end; -1 where any step's lead outside."""
    newest, furthest = (count - 1) // key_every, 0
    for step in range(first, count):
        block = step // key_every % bases.shape[0]
        for n in range(starts.shape[1]):
            start = starts[step % starts.shape[0], n]
            end = record_end(units, bases[block], start, tops, row_units)
            if end < 0:
                return -1
            link = links[block, n]
            if step % key_every == 0 and link != NO_LINK:
                link_end = record_end(units, bases[block], link, tops, row_units)
                if link_end < 0:
                    return -1
                end = max(end, link_end)
            if step // key_every == newest:
                furthest = max(furthest, end)
    return furthest
