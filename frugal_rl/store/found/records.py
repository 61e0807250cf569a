"""Rows as what differs from the row before: slow change, constants, sparse and padded parts.

A record is a header word and either the whole row or its differences, as `store.delta` packs them:

    header   0: a whole row follows; else 1 + the place of the record that this one differs from
    body     W words, or bitmaps and units

A row equal to the one before is no new record: it gets that one's handle. After `LINKS` records,
or when those since the last whole row are as long as it, the next one differs from that whole row
instead, so that reading never follows a longer chain. A first row is compared with the first of
all.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from frugal_rl.store.delta_kernels import (
    add_differences,
    mark_differences,
    put_differences,
    units_needed,
)
from frugal_rl.store.found.rows import Rows, reading_order

LINKS = 24
"""The most records that reading one row follows."""
GROWTH = 1.08
"""By how much a full pool grows; the system moves pages, not bytes."""


class Records(Rows):
    """A pool of records; handles are places in it.

    words  [capacity] uint64
    last   [N, W] uint64  the newest row of each environment, while rows come
    state  [N, 4] int64   place of the newest record and of the whole row it rests on (-1: none),
                          records since that row, words since that row
    """

    name = "differences"

    def __init__(self, num_envs: int, words: int) -> None:
        self.words = np.zeros(0, np.uint64)
        self.used = 0
        self.last = np.zeros((num_envs, words), np.uint64)
        self.state = np.zeros((num_envs, 4), np.int64)
        self._bitmaps = np.zeros(-(-words // 16), np.uint64)
        self.clear()

    def append(self, rows: np.ndarray, env: np.ndarray, handles: np.ndarray) -> None:
        """Keep rows as records."""
        done = 0
        while True:
            done, self.used = append_records(
                rows,
                env,
                done,
                self.words,
                self.words.view(np.uint16),
                self.used,
                self.last,
                self.state,
                self._bitmaps,
                handles,
            )
            if done == len(rows):
                return
            need = self.used + self.last.shape[1] + 1
            self.words.resize(max(need, int(GROWTH * len(self.words))), refcheck=False)

    def read(self, handles: np.ndarray, out: np.ndarray, env: np.ndarray | None = None) -> None:
        """Whole rows, with the differences on the way from them."""
        row = np.empty(out.shape[2], np.uint64)
        read_records(
            self.words,
            self.words.view(np.uint16),
            len(self._bitmaps),
            np.empty(LINKS + 1, np.int64),
            handles.reshape(-1),
            reading_order(handles, env, self.used),
            row,
            row.view(np.uint16),
            out.reshape(-1, out.shape[2]),
        )

    def clear(self) -> None:
        """Forget all records."""
        if not len(self.last):
            self.last = np.zeros((len(self.state), self.last.shape[1]), np.uint64)
        self.used = 0
        self.state[:, :2] = -1
        self.state[:, 2:] = 0

    def rest(self) -> None:
        """The newest rows are compared with those that come."""
        self.last = np.zeros((0, self.last.shape[1]), np.uint64)

    def trim(self) -> None:
        """Give unused words back."""
        self.words.resize(self.used, refcheck=False)

    @property
    def end(self) -> int:
        """A number above every handle."""
        return self.used

    @property
    def used_bytes(self) -> int:
        """Bytes of the records."""
        return 8 * self.used

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return int(self.words.nbytes + self.last.nbytes + self.state.nbytes + self._bitmaps.nbytes)


@njit(cache=True)
def append_records(
    rows: Any,
    env: Any,
    first: int,
    words: Any,
    units: Any,
    used: int,
    last: Any,
    state: Any,
    bitmaps: Any,
    handles: Any,
) -> tuple[int, int]:
    """Rows [first:, W] as records; returns how many of the rows found room, and the words in use.

    units is the memory of words as uint16; last, state, bitmaps and handles are written.
    """
    width = rows.shape[1]
    for b in range(first, rows.shape[0]):
        n, row = env[b], rows[b]
        base = state[n, 0]
        if base >= 0:
            mark_differences(row, last[n], bitmaps)
            if is_zero(bitmaps):
                handles[b] = base
                continue
        if words.shape[0] - used < width + 1:
            return b, used
        size = width
        root = state[n, 1] if base >= 0 else state[0, 1]
        if base >= 0 and state[n, 2] < LINKS and state[n, 3] <= width:
            size = units_needed(bitmaps, (bitmaps.shape[0] + 63) // 64) // 4
        elif root >= 0:
            base = root
            mark_differences(row, words[root + 1 : root + 1 + width], bitmaps)
            size = units_needed(bitmaps, (bitmaps.shape[0] + 63) // 64) // 4
            size = size if 4 * size < width else width
        if size < width:
            words[used] = base + 1
            reference = words[base + 1 : base + 1 + width] if base == root else last[n]
            put_record(row, reference, bitmaps, words, units, used + 1)
            state[n, 1] = root
            state[n, 2] = 1 if base == root else state[n, 2] + 1
            state[n, 3] = size if base == root else state[n, 3] + size
        else:
            size = width
            words[used] = 0
            words[used + 1 : used + 1 + width] = row
            state[n, 1], state[n, 2], state[n, 3] = used, 0, 0
        last[n] = row
        state[n, 0] = handles[b] = used
        used += size + 1
    return rows.shape[0], used


@njit(cache=True)
def is_zero(bitmaps: Any) -> bool:
    """Whether no bit is set."""
    found = np.uint64(0)
    for bits in bitmaps:
        found |= bits
    return bool(found == 0)


@njit(cache=True)
def put_record(row: Any, reference: Any, bitmaps: Any, words: Any, units: Any, used: int) -> None:
    """Bitmaps and differing units of a row to words [used:]."""
    tops = (bitmaps.shape[0] + 63) // 64
    at = used + tops
    for top in range(tops):
        which = np.uint64(0)
        for i in range(64 * top, min(64 * top + 64, bitmaps.shape[0])):
            if bitmaps[i] != 0:
                which |= np.uint64(1) << np.uint64(i - 64 * top)
                words[at] = bitmaps[i]
                at += 1
        words[used + top] = which
    at *= 4
    for i in range(bitmaps.shape[0]):
        if bitmaps[i] != 0:
            at = put_differences(row, reference, i, units, at)


@njit(cache=True)
def read_records(
    words: Any,
    units: Any,
    bitmaps: int,
    path: Any,
    handles: Any,
    order: Any,
    row: Any,
    row_units: Any,
    out: Any,
) -> None:
    """Rows of handles [M] into out [M, W], those of an environment in the order of its records.

    A row that rests on the one read before goes on from there. order [M] says which is read when;
    path [LINKS + 1] and row [W] are scratch, row_units is that memory as uint16.
    """
    width, held = row.shape[0], -1
    for m in order:
        wanted = at = handles[m]
        if at < 0:
            out[m] = 0
            continue
        depth = 0
        while at != held and words[at] != 0:
            path[depth] = at
            depth += 1
            at = np.int64(words[at]) - 1
        if at != held:
            row[:] = words[at + 1 : at + 1 + width]
        while depth > 0:
            depth -= 1
            add_differences(units, words, 4 * (path[depth] + 1), bitmaps, row_units)
        held = wanted
        out[m] = row
