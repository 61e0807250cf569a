"""Rows as which words differ from the row before, each named by its place in a table of words.

Pictures drawn from few shapes are made of few distinct words of eight bytes: those that scroll or
flicker show the same words in other places. A name takes two bytes where the word takes eight. The
table is paid by what it saves: where words do not come again, they are written out instead.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from frugal_rl.store.found.rows import Rows, reading_order
from frugal_rl.store.found.word_kernels import (
    HEADER,
    LINKS,
    MOST_WORDS,
    NO_WORD,
    append_rows,
    put_names,
    read_rows,
)

FIRST_WORDS = 64
GROWTH = 1.03
"""By how much the pool of records grows; the system moves pages, not bytes."""
TABLE_GROWTH = 1.25
FIRST_CREDIT = 2
"""Rows whose words are named before any was found again."""


class Worded(Rows):
    """A pool of records; handles are places in it.

    units   [capacity] uint16   records (`word_kernels`)
    table   [K] uint64          words by name
    slots   [S] uint16          open addressing by content: a name, or `NO_WORD`; S is a power of 2
    last    [N, W] uint64       the newest row of each environment, while rows come
    state   [N, 6] int64        place of the newest record and of the whole row it rests on (-1:
                                none); records, and units, since one rested directly on that row;
                                units of all those that did, and of that row
    counts  [3] int64           units in use, words in the table, words that may still be named
    """

    name = "differences in known words"

    def __init__(self, num_envs: int, words: int) -> None:
        self.units = np.zeros(0, np.uint16)
        self.table = np.zeros(FIRST_WORDS, np.uint64)
        self.slots = np.zeros(2 * FIRST_WORDS, np.uint16)
        self._words = words
        self._newest = np.zeros((num_envs + 1, words), np.uint64)
        self._states = np.zeros((num_envs + 1, 6), np.int64)
        self._see()
        self._most_credit = FIRST_CREDIT * words
        groups = -(-words // 16)
        middles = -(-groups // 16)
        self._tops = -(-middles // 16)
        self._scratch = np.zeros(groups + middles + self._tops + words, np.uint16)
        self._path = np.zeros(LINKS + 1, np.int64)
        self.clear()

    def _see(self) -> None:
        """Name the parts of what kernels are handed as a whole."""
        self.last = self._newest[:-1]
        self.state, self.counts = self._states[:-1], self._states[-1, :3]

    def __setstate__(self, kept: dict[str, Any]) -> None:
        super().__setstate__(kept)
        self._see()  # copies of arrays share no memory

    def append(self, rows: np.ndarray, env: np.ndarray, handles: np.ndarray) -> None:
        """Keep rows as records."""
        done = 0
        while True:
            done = append_rows(
                rows,
                env,
                done,
                self.units,
                self.table,
                self.slots,
                self._newest,
                self._states,
                self._most_credit,
                self._scratch,
                handles,
            )
            if done == len(rows):
                return
            self._grow()

    def _grow(self) -> None:
        """Room for one more row in the pool, and for one more word in the table."""
        used, known, _ = self.counts.tolist()
        need = used + most_units(self._words)
        if need > len(self.units):
            self.units.resize(max(need, int(GROWTH * len(self.units))), refcheck=False)
        if known == len(self.table) < MOST_WORDS:
            wanted = min(MOST_WORDS, max(FIRST_WORDS, int(TABLE_GROWTH * known)))
            self.table.resize(wanted, refcheck=False)
            if 4 * wanted > 3 * len(self.slots):
                self.slots = np.full(2 * len(self.slots), NO_WORD)
                put_names(self.table, known, self.slots)

    def read(self, handles: np.ndarray, out: np.ndarray, env: np.ndarray | None = None) -> None:
        """Whole rows, with the differences on the way from them."""
        order = reading_order(handles, env, self.end)
        self._read(handles, order, out.reshape(-1, out.shape[2]), np.empty((0, 3, 0), np.uint8))

    def read_turned(self, handles: np.ndarray, env: np.ndarray, out: np.ndarray) -> None:
        """Each picture turned as soon as it is read."""
        self._read(handles, reading_order(handles, env, self.end), np.empty((0, 0), np.uint64), out)

    def _read(
        self, handles: np.ndarray, order: np.ndarray, out: np.ndarray, planes: np.ndarray
    ) -> None:
        row, root = np.empty((2, self._words), np.uint64)
        read_rows(
            self.units,
            self.table,
            self._tops,
            self._path,
            handles.reshape(-1),
            order,
            row,
            row.view(np.uint8),
            root,
            out,
            planes,
        )

    def clear(self) -> None:
        """Forget all records and words."""
        if not len(self._newest):
            self._newest = np.zeros((len(self._states), self._words), np.uint64)
            self._see()
        self.counts[:] = 0, 0, self._most_credit
        self.slots[:] = NO_WORD
        self.state[:, :2] = -1
        self.state[:, 2:] = 0

    def rest(self) -> None:
        """The newest rows are compared with those that come."""
        self._newest = np.zeros((0, self._words), np.uint64)
        self._see()

    def trim(self) -> None:
        """Give unused units and words back."""
        self.units.resize(int(self.counts[0]), refcheck=False)
        self.table.resize(int(self.counts[1]), refcheck=False)

    @property
    def end(self) -> int:
        """A number above every handle."""
        return int(self.counts[0])

    @property
    def used_bytes(self) -> int:
        """Bytes of the records, and of the words with their part of the slots."""
        return int(2 * self.counts[0] + 12 * self.counts[1])

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        grown = (self.units, self.table, self.slots)
        fixed = (self._newest, self._states, self._scratch)
        return sum(int(a.nbytes) for a in (*grown, *fixed))


def most_units(words: int) -> int:
    """Units of the largest record: a header, and the row as it is."""
    return HEADER + 4 * words
