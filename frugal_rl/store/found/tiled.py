"""Rows drawn on a regular grid: the name of each tile, found by its content.

A game on a grid draws the same few tiles in other places: a picture that scrolls is other names,
not other tiles. Names lie in rows of their own, kept as what differs from those before. A row with
too many new tiles (noise, a fade) is packed or compressed whole, which keeps the table small.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, cast

import numpy as np

from frugal_rl.observation.aligned import WORD_BYTES
from frugal_rl.observation.found_form import can_be_packed
from frugal_rl.store.found.compressed import Compressed
from frugal_rl.store.found.handled import KindOfRows, PictureColumn
from frugal_rl.store.found.packed import Packed, pixels_of
from frugal_rl.store.found.rows import Rows, reading_order, row_words
from frugal_rl.store.found.tile_kernels import (
    UNKNOWN,
    name_rows,
    paint_rows,
    put_tiles,
    split_tile_scratch,
)
from frugal_rl.store.found.tiles import Tiles, lying
from frugal_rl.store.found.worded import Worded

if TYPE_CHECKING:
    from frugal_rl.store.column_spec import ColumnSpec

NEW_SHARE = 4
"""A row that has more distinct new tiles than one in so many of its tiles is kept whole."""
FIRST_TILES = 16
GROWTH = 1.25
MOST_TILES = int(UNKNOWN)


class Tiled(Rows):
    """Handles are twice those of names or of whole rows; odd ones are whole.

    table   [R, S] uint64    tiles by name, each line filled up to whole words
    slots   [P] uint16       open addressing by content: a name, or `UNKNOWN`; P is a power of 2
    names   `Worded`         rows of names, two bytes each
    whole   `Packed` or `Compressed` rows that are too new; None until one comes
    """

    name = "tiles"

    def __init__(
        self, num_envs: int, words: int, tiles: Tiles, new: KindOfRows = Compressed
    ) -> None:
        self.num_envs, self.words, self.tiles = num_envs, words, tiles
        self.table = np.zeros((FIRST_TILES, tiles.words), np.uint64)
        self.slots = np.full(2 * FIRST_TILES, UNKNOWN)
        self.name_words = row_words(2 * tiles.count)
        self.names = Worded(num_envs, self.name_words)
        self._new, self.whole = new, cast("Rows | None", None)
        self._named = np.zeros((num_envs, self.name_words), np.uint64)
        self._is_named = np.zeros(num_envs, np.bool_)
        few = 1 + tiles.count // NEW_SHARE
        self._counts = np.array([0, 0, few, MOST_TILES, *tiles.values])
        self._scratch = np.zeros(words + 1 + 2 * tiles.words + tiles.count, np.uint64)
        drawn = np.random.default_rng(0).integers(1 << 63, size=tiles.words, dtype=np.uint64)
        self._keys[:] = 2 * drawn + np.uint64(1)

    @property
    def _keys(self) -> np.ndarray:
        """What contents are hashed with, a part of the scratch."""
        keys: np.ndarray = split_tile_scratch(self._scratch, self.words, self.tiles.words)[2]
        return keys

    @property
    def known(self) -> int:
        """Tiles of the table."""
        return int(self._counts[0])

    def append(self, rows: np.ndarray, env: np.ndarray, handles: np.ndarray) -> None:
        """Name the tiles of rows."""
        count = len(rows)
        if count > len(self._named):
            self._named = np.zeros((count, self.name_words), np.uint64)
            self._is_named = np.zeros(count, np.bool_)
        named, self._counts[1] = self._named[:count], 0
        done = 0
        while True:
            done = name_rows(
                rows,
                done,
                env,
                self._counts,
                self.table,
                self.slots,
                self._scratch,
                self.names.last,
                named,
                self._is_named,
            )
            if done == count:
                break
            self._widen()
        if self._counts[1]:
            self._append_some(rows, env, handles, named, self._is_named[:count])
            return
        self.names.append(named, env, handles)
        handles *= 2

    def _append_some(
        self,
        rows: np.ndarray,
        env: np.ndarray,
        handles: np.ndarray,
        named: np.ndarray,
        is_named: np.ndarray,
    ) -> None:
        if self.whole is None:
            self.whole = self._new(self.num_envs, self.words)
        for kept, some, odd in ((self.names, is_named, 0), (self.whole, ~is_named, 1)):
            here = np.flatnonzero(some)
            found = np.zeros(len(here), np.int64)
            kept.append(np.ascontiguousarray((rows if odd else named)[here]), env[here], found)
            handles[here] = 2 * found + odd

    def _widen(self) -> None:
        """Room for the new tiles of one more row."""
        wanted = max(self.known + self.tiles.count, int(GROWTH * len(self.table)))
        self.table.resize((min(MOST_TILES, wanted), self.tiles.words), refcheck=False)
        if 4 * wanted > 3 * len(self.slots):
            self.slots = np.full(1 << (4 * wanted // 3).bit_length(), UNKNOWN)
            put_tiles(self.table, self.known, self.slots, self._keys)

    def read(self, handles: np.ndarray, out: np.ndarray, env: np.ndarray | None = None) -> None:
        """Rows painted from their names, or decompressed."""
        flat, into = handles.reshape(-1), out.reshape(-1, out.shape[2])
        into[flat < 0] = 0
        envs = None if env is None else np.repeat(env, handles.shape[1])
        here = np.flatnonzero((flat >= 0) & (flat & 1 == 0))
        self._paint(flat[here], envs, here, into, _NO_PLANES)
        here = np.flatnonzero((flat >= 0) & (flat & 1 == 1))
        if len(here) and self.whole is not None:
            rows = np.empty((len(here), 1, out.shape[2]), np.uint64)
            self.whole.read(flat[here, None] >> 1, rows)
            into[here] = rows[:, 0]

    def read_turned(self, handles: np.ndarray, env: np.ndarray, out: np.ndarray) -> None:
        """Each picture turned as soon as it is painted."""
        flat = handles[:, 0]
        here = np.flatnonzero(flat & 1 == 0)
        self._paint(flat[here], env, here, _NO_ROWS, out)
        here = np.flatnonzero(flat & 1)
        if len(here) and self.whole is not None:
            planes = np.empty((len(here), *out.shape[1:]), np.uint8)
            self.whole.read_turned(flat[here, None] >> 1, env[here], planes)
            out[here] = planes

    def _paint(
        self,
        handles: np.ndarray,
        env: np.ndarray | None,
        places: np.ndarray,
        out: np.ndarray,
        planes: np.ndarray,
    ) -> None:
        if not len(handles):
            return
        names = np.empty((len(handles), 1, self.name_words), np.uint64)
        self.names.read(handles[:, None] >> 1, names, None if env is None else env[places])
        row = np.empty(self.words + 1, np.uint64)
        paint_rows(
            names[:, 0].view(np.uint16),
            reading_order(handles[:, None], None if env is None else env[places], self.end),
            self.tiles.values,
            self.table,
            row,
            row.view(np.uint8),
            places,
            out,
            planes,
        )

    def clear(self) -> None:
        """Forget all rows and tiles."""
        self.names.clear()
        self.slots[:] = UNKNOWN
        self._counts[0] = 0
        if self.whole is not None:
            self.whole.clear()

    def rest(self) -> None:
        """What names and whole rows need as they come."""
        self.names.rest()
        if self.whole is not None:
            self.whole.rest()

    def trim(self) -> None:
        """Give unused tiles and rows back."""
        self.table.resize((self.known, self.tiles.words), refcheck=False)
        self.names.trim()
        if self.whole is not None:
            self.whole.trim()

    @property
    def end(self) -> int:
        """A number above every handle."""
        return 2 * max(self.names.end, 0 if self.whole is None else self.whole.end)

    @property
    def used_bytes(self) -> int:
        """Bytes of the tiles with their part of the slots, of names and of whole rows."""
        tiles = self.known * (WORD_BYTES * self.tiles.words + 4)
        return tiles + self.names.used_bytes + (0 if self.whole is None else self.whole.used_bytes)

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        scratch = (self._named, self._is_named, self._counts, self._scratch)
        kept = self.names.nbytes + (0 if self.whole is None else self.whole.nbytes)
        return kept + sum(int(a.nbytes) for a in (self.table, self.slots, *scratch))


_NO_ROWS, _NO_PLANES = np.empty((0, 0), np.uint64), np.empty((0, 3, 0), np.uint8)


class TiledColumn(PictureColumn):
    """T steps of N environments whose pictures are made of tiles of height x width pixels."""

    rows: Tiled

    def __init__(self, spec: ColumnSpec, steps: int, num_envs: int, tile: tuple[int, int]) -> None:
        super().__init__(spec, steps, num_envs, partial(rows_of_tiles, spec, tile))


def rows_of_tiles(spec: ColumnSpec, tile: tuple[int, int], last: bool) -> partial[Tiled]:
    """Rows of pictures whose channels lie last in memory, or first."""
    size = spec.dtype.itemsize
    packs = can_be_packed(spec.shape, size)
    new = partial(Packed, pixels=pixels_of(spec.shape, last)) if packs else Compressed
    return partial(Tiled, tiles=lying(spec.shape, size, last, *tile), new=new)
