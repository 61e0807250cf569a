"""Frame stacks: recognised on rows that follow each other, taken apart and put together again.

A row seen as [O, K, I] bytes is a stack along its middle axis if the K parts of one step are those
of the step before, moved by one, and a new one. Wrappers fill the past of a reset with zeros or
with the first part; any other break is kept with all its parts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

MOST_PARTS = 32
HOLDING_SHARE = 0.5
"""Of the pairs of rows that differ, how many must fit a stack for it to be tried."""


MOVED, ZEROS, REPEATED, OTHER = range(4)
"""What the older parts of a row are: the row before moved by one, filled up, or something else."""


@dataclass(frozen=True)
class Stack:
    """A row as [outer, parts, inner] bytes; `newest_last` tells which end the new part is at."""

    outer: int
    parts: int
    inner: int
    newest_last: bool = True

    @property
    def part_bytes(self) -> int:
        """Bytes of one part."""
        return self.outer * self.inner

    @property
    def order(self) -> tuple[int, int]:
        """Place of the oldest part, and the step to the next younger one."""
        return (0, 1) if self.newest_last else (self.parts - 1, -1)

    @property
    def is_pixels(self) -> bool:
        """Whether the parts of a pixel lie together as the four bytes of a word, oldest first."""
        return self.inner == 1 and self.parts == 4 and self.newest_last

    def shaped(self, rows: np.ndarray) -> np.ndarray:
        """Contiguous rows [N, row bytes] uint8 as [N, O, K, I]; a view."""
        return rows.reshape(len(rows), self.outer, self.parts, self.inner)

    def viewed(self, rows: np.ndarray) -> np.ndarray:
        """Contiguous rows [N, row bytes] uint8 as [N, O, K, I], the oldest part first; a view."""
        return self.shaped(rows)[:, :, :: self.order[1]]

    def __str__(self) -> str:
        first = "" if self.newest_last else " newest first"
        return f"stack of {self.parts} along {self.outer} x {self.inner} B{first}"


def candidates(shape: tuple[int, ...], itemsize: int) -> list[Stack]:
    """Every way to see a row as a stack, those with most parts first."""
    found = []
    for axis, size in enumerate(shape):
        outer, inner = math.prod(shape[:axis]), math.prod(shape[axis + 1 :]) * itemsize
        for parts in range(2, min(size, MOST_PARTS) + 1):
            if size % parts == 0:
                found += [
                    Stack(outer, parts, inner * size // parts, last) for last in (True, False)
                ]
    return sorted(set(found), key=lambda s: -s.parts)


def find_stack(history: np.ndarray, shape: tuple[int, ...], itemsize: int) -> Stack | None:
    """The stack that rows [T, N, row bytes] uint8 of T steps are, if any."""
    before = history[:-1].reshape(-1, history.shape[2])
    after = history[1:].reshape(before.shape)
    differ = (before != after).any(axis=1)
    before, after = before[differ], after[differ]
    if not len(before):
        return None
    for stack in candidates(shape, itemsize):
        older, newer = stack.viewed(before), stack.viewed(after)
        same = (older[:, :, 1:] == newer[:, :, :-1]).all(axis=(1, 2, 3))
        if same.mean() >= HOLDING_SHARE:
            return stack
    return None


@njit(cache=True)
def take_apart(
    rows: Any, last: Any, begun: bool, first: int, step: int, parts: Any, past: Any
) -> int:
    """Newest parts of rows [N, O, K, I] uint8, and whether their past is that of `last`.

    Part k in the order of time lies at first + k step of the third axis. parts [N, >= O I] and
    past [N] are set, `last` [N, O, K, I] becomes the rows; where not `begun`, nothing has moved.
    Returns how many have some other past.
    """
    num, outer, count, inner = rows.shape
    newest = first + step * (count - 1)
    others = 0
    for n in range(num):
        differs = zero = repeated = np.uint8(0)
        for o in range(outer):
            for k in range(count - 1):
                here, there = first + step * k, first + step * (k + 1)
                for i in range(inner):
                    differs |= rows[n, o, here, i] ^ last[n, o, there, i]
            for k in range(count):
                for i in range(inner):
                    last[n, o, k, i] = rows[n, o, k, i]
            for i in range(inner):
                parts[n, o * inner + i] = rows[n, o, newest, i]
        past[n] = MOVED
        if differs != 0 or not begun:
            for o in range(outer):
                for k in range(count - 1):
                    here = first + step * k
                    for i in range(inner):
                        zero |= rows[n, o, here, i]
                        repeated |= rows[n, o, here, i] ^ rows[n, o, newest, i]
            past[n] = ZEROS if zero == 0 else (REPEATED if repeated == 0 else OTHER)
        others += past[n] == OTHER
    return others


@njit(cache=True)
def take_apart_pixels(rows: Any, last: Any, begun: bool, parts: Any, past: Any) -> int:
    """`take_apart` for four parts of single bytes, a pixel of all four being one word.

    rows, last [N, P] uint32, the oldest part in the lowest byte; parts [N, >= P] uint8.
    """
    eight, top, old = np.uint32(8), np.uint32(24), np.uint32(0x00FFFFFF)
    others = 0
    for n in range(rows.shape[0]):
        differs = zero = repeated = np.uint32(0)
        for p in range(rows.shape[1]):
            pixel = rows[n, p]
            differs |= (pixel ^ (last[n, p] >> eight)) & old
            last[n, p] = pixel
            parts[n, p] = pixel >> top
        past[n] = MOVED
        if differs != 0 or not begun:
            for p in range(rows.shape[1]):
                zero |= rows[n, p] & old
                repeated |= rows[n, p] ^ (rows[n, p] >> top) * np.uint32(0x01010101)
            past[n] = ZEROS if zero == 0 else (REPEATED if repeated == 0 else OTHER)
        others += past[n] == OTHER
    return others


@njit(cache=True)
def count_ages(past: Any, before: Any, most: int, age: Any) -> None:
    """Ages [N] after ages `before` [N]: 0 where the past [N] did not move, at most `most`."""
    for n in range(past.shape[0]):
        age[n] = min(before[n] + 1, most) if past[n] == MOVED else 0


def places_of_parts(
    t: np.ndarray, n: np.ndarray, parts: int, age: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Steps [B, K] that hold the parts of samples (t[b], n[b]), oldest first, and how far past.

    age [T, N]: steps since the past did not move, at most K - 1. The second array [B, K] counts
    how many parts before that break a part lies, 0 where it lies behind it.
    """
    lag = np.arange(parts - 1, -1, -1)
    ages = age[t, n].astype(np.int64)[:, None]
    before = np.maximum(lag - ages, 0)
    return t[:, None] - np.minimum(lag, ages), before
