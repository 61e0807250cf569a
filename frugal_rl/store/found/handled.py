"""Columns that keep a handle per row; a stack's rows share the parts that they have in common."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from frugal_rl.observation.aligned import WORD_BYTES
from frugal_rl.observation.growing_array import GrowingArray
from frugal_rl.store.columns import Column
from frugal_rl.store.found.rows import Handles, Rows, row_words
from frugal_rl.store.found.stacks import (
    OTHER,
    ZEROS,
    Stack,
    count_ages,
    places_of_parts,
    take_apart,
    take_apart_pixels,
)

if TYPE_CHECKING:
    from frugal_rl.store.column_spec import ColumnSpec

KindOfRows = Callable[[int, int], Rows]
"""Makes rows for N environments of W words."""


def row_bytes_of(rows: np.ndarray) -> np.ndarray:
    """Rows [N, ...] as contiguous, aligned bytes [N, row bytes]; copied only where they are not."""
    if not (rows.flags.c_contiguous and rows.flags.aligned):
        rows = np.require(rows, requirements=["C", "A"])
    return rows.reshape(len(rows), math.prod(rows.shape[1:])).view(np.uint8)


def padded_words(rows: np.ndarray) -> np.ndarray:
    """Rows [N, row bytes] uint8 as words [N, W], filled up with zeros; a view of whole words."""
    size = rows.shape[1]
    if size % WORD_BYTES == 0:
        seen = rows.view(np.uint64)
        if seen.flags.aligned:
            return seen
    words = np.zeros((len(rows), row_words(size)), np.uint64)
    words.view(np.uint8)[:, :size] = rows
    return words


def words_of(rows: np.ndarray, whole: bool) -> np.ndarray:
    """Rows [N, ...] as words [N, W]; copied only where they cannot be seen so.

    whole tells that a row's bytes are whole words; of every step, this is asked once.
    """
    if whole and rows.flags.c_contiguous:
        seen = rows.reshape(len(rows), -1).view(np.uint64)
        if seen.flags.aligned:
            return seen
    return padded_words(row_bytes_of(rows))


def lies_channels_last(shown: np.ndarray) -> bool:
    """Whether pictures [N, C, H, W] lie in memory as [N, H, W, C]."""
    if shown.ndim != 4 or shown.flags.c_contiguous:
        return False
    return bool(shown.transpose(0, 2, 3, 1).flags.c_contiguous)


def channels_last(rows: np.ndarray) -> np.ndarray:
    """Pictures [..., C, H, W] that lie in memory as [..., H, W, C]."""
    moved = np.ascontiguousarray(np.moveaxis(rows, -3, -1))
    return np.moveaxis(moved, -1, -3)


class HandledColumn(Column):
    """T steps of N environments whose rows lie in `rows`.

    Pictures whose channels lie last in memory are kept as they lie: neither is anything copied
    when they come, nor are the parts of a pixel torn from each other.
    """

    def __init__(self, spec: ColumnSpec, steps: int, num_envs: int, kind: KindOfRows) -> None:
        self.spec = spec
        self.handles = Handles(steps, num_envs)
        self.rows = kind(num_envs, row_words(spec.row_bytes))
        self._whole = spec.row_bytes % WORD_BYTES == 0
        self._envs = np.arange(num_envs)
        self._new = np.zeros(num_envs, np.int64)
        self._channels_last = False

    def write(self, t: int, shown: np.ndarray, age: np.ndarray | None) -> None:
        """Keep step t; step 0 forgets the rollout before."""
        if t == 0:
            self.rows.clear()
            self._channels_last = lies_channels_last(shown)
        if self._channels_last:
            shown = shown.transpose(0, 2, 3, 1)
        self.rows.append(words_of(shown, self._whole), self._envs, self._new)
        self.handles.put(t, self._new, self.rows.end)
        if t + 1 == len(self.handles.values):
            self.rows.end_rollout()

    def gather(
        self, t: np.ndarray, n: np.ndarray, age: np.ndarray | None, out: np.ndarray | None
    ) -> np.ndarray:
        """Rows of the samples, written into `out`."""
        out = np.empty((len(t), *self.spec.shape), self.spec.dtype) if out is None else out
        handles, n = self.handles.at(t, n)[:, None], np.asarray(n)
        if self._channels_last:
            self._gather_turned(handles, n, out)
        else:
            read_bytes(self.rows, handles, n, row_bytes_of(out)[:, None])
        return out

    def _gather_turned(self, handles: np.ndarray, n: np.ndarray, out: np.ndarray) -> None:
        """Pictures that lie channels last."""
        channels, *sides = self.spec.shape
        if channels == 3 and self.spec.dtype.itemsize == 1 and out.flags.c_contiguous:
            self.rows.read_turned(handles, n, out.view(np.uint8).reshape(len(n), 3, -1))
            return
        lying = np.empty((len(n), *sides, channels), self.spec.dtype)
        read_bytes(self.rows, handles, n, row_bytes_of(lying)[:, None])
        out[...] = lying.transpose(0, 3, 1, 2)

    def trim(self, steps: int) -> None:
        """No further steps come: give back what is not used."""
        self.handles.trim(steps)
        self.rows.rest()
        self.rows.trim()

    @property
    def used_bytes(self) -> int:
        """Bytes that what is stored takes, room to grow not counted."""
        return self.rows.used_bytes + self.handles.nbytes

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return self.handles.nbytes + self.rows.nbytes + int(self._envs.nbytes + self._new.nbytes)


class PictureColumn(HandledColumn):
    """Rows that must know how their pictures lie in memory, which the first step tells."""

    def __init__(
        self, spec: ColumnSpec, steps: int, num_envs: int, made: Callable[[bool], KindOfRows]
    ) -> None:
        super().__init__(spec, steps, num_envs, made(False))
        self.num_envs, self._made, self._last = num_envs, made, False

    def write(self, t: int, shown: np.ndarray, age: np.ndarray | None) -> None:
        """Keep step t; step 0 forgets the rollout before."""
        if t == 0 and lies_channels_last(shown) != self._last:
            self._last = not self._last
            self.rows = self._made(self._last)(self.num_envs, row_words(self.spec.row_bytes))
        super().write(t, shown, age)


def read_bytes(rows: Rows, handles: np.ndarray, n: np.ndarray, out: np.ndarray) -> None:
    """Rows of handles [B, k] of environments [B] into contiguous out [B, k, row bytes] uint8."""
    if out.shape[2] % WORD_BYTES == 0:
        seen = out.view(np.uint64)
        if seen.flags.aligned:
            rows.read(handles, seen, n)
            return
    words = np.empty((*handles.shape, row_words(out.shape[2])), np.uint64)
    rows.read(handles, words, n)
    out[...] = words.view(np.uint8)[..., : out.shape[2]]


class StackedColumn(Column):
    """Rows that are stacks, kept as their newest parts.

    age    [T, N] uint8  steps since the past was not that of the step before, at most K - 1
    past   [T, N] uint8  what the past was: `MOVED` ...
    older  [B, K - 1]    handles of all older parts of the B rows whose past was some `OTHER`
    last   [N, row bytes] uint8  what the next rows are compared with; nothing where none come
    """

    def __init__(
        self, spec: ColumnSpec, steps: int, num_envs: int, kind: type[Rows], stack: Stack
    ) -> None:
        self.spec, self.stack = spec, stack
        self.num_envs = num_envs
        self.handles = Handles(steps, num_envs)
        self.rows = kind(num_envs, row_words(stack.part_bytes))
        self.age = np.zeros((steps, num_envs), np.uint8)
        self.past = np.zeros((steps, num_envs), np.uint8)
        self.older = GrowingArray((stack.parts - 1,), np.int64)
        self.broken = GrowingArray((), np.int64)
        self.last = np.zeros((num_envs, spec.row_bytes), np.uint8)
        self._in_pixels = False
        self._parts = np.zeros((num_envs, row_words(stack.part_bytes)), np.uint64)
        self._see()
        self._envs = np.arange(num_envs)
        self._new = np.zeros(num_envs, np.int64)

    def _see(self) -> None:
        """Look at the same memory as bytes and as pixels."""
        whole = self.spec.row_bytes % 4 == 0
        self._part_bytes = self._parts.view(np.uint8)
        self._last_pixels = self.last.view(np.uint32) if whole else self.last

    def __setstate__(self, kept: dict[str, Any]) -> None:
        self.__dict__.update(kept)
        self._see()  # copies of arrays share no memory

    def write(self, t: int, shown: np.ndarray, age: np.ndarray | None) -> None:
        """Keep step t; step 0 forgets the rollout before."""
        if t == 0:
            self._begin()
        if self._take_apart(t, shown):
            self._keep_whole(t, shown, np.flatnonzero(self.past[t] == OTHER))
        self.rows.append(self._parts, self._envs, self._new)
        self.handles.put(t, self._new, self.rows.end)
        count_ages(self.past[t], self.age[max(t - 1, 0)], self.stack.parts - 1, self.age[t])
        if t + 1 == len(self.age):
            self._rest()

    def _begin(self) -> None:
        """A rollout begins; what the one before gave back is there again."""
        self.rows.clear()
        self.older.used = self.broken.used = 0
        if not len(self.last):
            self.last = np.zeros((self.num_envs, self.spec.row_bytes), np.uint8)
            self._see()

    def _rest(self) -> None:
        """No step comes before the next rollout: whole rows of now are needed no more."""
        self.last = np.zeros((0, self.spec.row_bytes), np.uint8)
        self._see()
        self.rows.end_rollout()

    def _take_apart(self, t: int, shown: np.ndarray) -> int:
        """Newest parts and pasts; how many are some other.

        Images whose channels lie last in memory are read as they lie.
        """
        parts = self._part_bytes
        pixels = self._as_pixels(shown)
        begun = t > 0 and self._in_pixels == (pixels is not None)
        self._in_pixels = pixels is not None
        if pixels is not None:
            last = self._last_pixels
            return int(take_apart_pixels(pixels, last, begun, parts, self.past[t]))
        rows = self.stack.shaped(row_bytes_of(shown))
        first, step = self.stack.order
        last = self.stack.shaped(self.last)
        return int(take_apart(rows, last, begun, first, step, parts, self.past[t]))

    def _as_pixels(self, shown: np.ndarray) -> np.ndarray | None:
        """Rows as words [N, P] of four stacked bytes, if they lie so in memory."""
        stack = self.stack
        if stack.outer == 1 and shown.ndim == 4 and shown.shape[1] == stack.parts == 4:
            shown = shown.transpose(0, 2, 3, 1)
            fits = shown.dtype.itemsize == 1 and stack.newest_last
        else:
            fits = stack.is_pixels
        if not fits or not shown.flags.c_contiguous:
            return None
        pixels = shown.reshape(len(shown), -1).view(np.uint32)
        return pixels if pixels.flags.aligned else None

    def _keep_whole(self, t: int, shown: np.ndarray, other: np.ndarray) -> None:
        """All older parts of some rows."""
        rows = self.stack.viewed(row_bytes_of(shown[other]))
        parts = rows[:, :, :-1].transpose(0, 2, 1, 3).reshape(-1, self.stack.part_bytes)
        handles = np.zeros(len(parts), np.int64)
        which = np.repeat(other, self.stack.parts - 1)
        self.rows.append(padded_words(np.ascontiguousarray(parts)), which, handles)
        self.older.append(handles.reshape(len(other), -1))
        self.broken.append(t * self.num_envs + other)

    def gather(
        self, t: np.ndarray, n: np.ndarray, age: np.ndarray | None, out: np.ndarray | None
    ) -> np.ndarray:
        """Rows of the samples put together again, written into `out`."""
        out = np.empty((len(t), *self.spec.shape), self.spec.dtype) if out is None else out
        n = np.asarray(n)
        handles = self._handles_of(np.asarray(t), n)
        stack, into = self.stack, row_bytes_of(out)
        if stack.outer == 1 and stack.newest_last:
            read_bytes(self.rows, handles, n, into.reshape(len(t), stack.parts, stack.part_bytes))
            return out
        parts = np.empty((*handles.shape, stack.part_bytes), np.uint8)
        read_bytes(self.rows, handles, n, parts)
        apart = parts.reshape(len(t), stack.parts, stack.outer, stack.inner)
        stack.viewed(into)[...] = apart.transpose(0, 2, 1, 3)
        return out

    def _handles_of(self, t: np.ndarray, n: np.ndarray) -> np.ndarray:
        """Handles [B, K] of the parts of samples, oldest first; -1 for zeros."""
        steps, before = places_of_parts(t, n, self.stack.parts, self.age)
        handles = self.handles.at(steps, n[:, None])
        b, k = np.nonzero(before)
        if not len(b):
            return handles
        begin = steps[b, k], n[b]
        past = self.past[begin]
        handles[b, k] = np.where(past == ZEROS, -1, handles[b, k])
        kept = past == OTHER
        b, k, at = b[kept], k[kept], begin[0][kept] * self.num_envs + begin[1][kept]
        row = np.searchsorted(self.broken.values[: self.broken.used], at)
        handles[b, k] = self.older.values[row, self.stack.parts - 1 - before[b, k]]
        return handles

    def trim(self, steps: int) -> None:
        """No further steps come: give back what is not used."""
        self.handles.trim(steps)
        self._rest()
        self.rows.trim()
        self.age, self.past = self.age[:steps].copy(), self.past[:steps].copy()
        self.older.trim()
        self.broken.trim()

    @property
    def used_bytes(self) -> int:
        """Bytes that what is stored takes, room to grow not counted."""
        broken = self.older.used_bytes + self.broken.used_bytes
        kept = self.handles.nbytes + int(self.age.nbytes + self.past.nbytes)
        return self.rows.used_bytes + broken + kept

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        arrays = (self.age, self.past, self.last, self._parts, self._envs, self._new)
        grown = self.handles.nbytes + self.rows.nbytes + self.older.nbytes + self.broken.nbytes
        return grown + sum(int(a.nbytes) for a in arrays)
