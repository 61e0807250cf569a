"""The rows of a replay once more on the training device, where minibatches are drawn from them.

The chain in memory says what a row differs in from the row before, and is walked one row after the
other. Here an entry is the value itself, so that rows of a walk are put on each other in any order:
of all entries of a unit the latest one stands (`scatter_reduce` by the largest of order << 16 |
value). A draw is some twenty operations of torch, however long its walks are. Imports torch.

Blocks come here once nothing more is added to them. What lies in newer ones, or is a whole stack in
a side table, is drawn in memory and copied: of a million steps the newest 33 at most.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from frugal_rl.store.chain_kernels import WHOLE
from frugal_rl.store.entry_ring import EntryRing, SlotTable
from frugal_rl.store.mirror_kernels import plan_walks, put_block
from frugal_rl.store.replay_kernels import BACK, PAD_REPEATS, WHOLE_NEXT, WHOLE_NOW
from frugal_rl.store.side_table import SideTable

if TYPE_CHECKING:
    from frugal_rl.store.chain import FrameChain
    from frugal_rl.store.replay_column import ReplayColumn

VALUE = 0xFFFF
SHORT_UNITS = 1 << 15
"""Rows of so many units of two bytes at most have entries of four bytes."""
NOTHING = -1


class DeviceMirror:
    """What a `ReplayColumn` with a `FrameChain` holds, drawn as tensors on a device.

    spans   [blocks, K * N, 2] uint32   where the entries of a row begin and end in its block
    bases   [blocks] int64              where a block begins in the entries
    synced  blocks before this one are here, as far as they are held
    """

    def __init__(self, column: ReplayColumn, chain: FrameChain, device: torch.device) -> None:
        self.column, self.chain, self.device = column, chain, device
        num_envs, self.row_units = chain.num_envs, 4 * chain.last.shape[1]
        is_short = self.row_units <= SHORT_UNITS
        self.entries = EntryRing(torch.int32 if is_short else torch.int64, chain.blocks, device)
        self.wholes = SlotTable(self.row_units, device)
        self.spans = np.zeros((chain.blocks, chain.key_every * num_envs, 2), np.uint32)
        self.bases = self.entries.bases
        self.sides = SideTable(num_envs, (2,), np.int64)
        self.synced = self._freed = chain.freed_blocks
        self._anchor_slots: dict[int, int] = {}
        self._anchor_users: dict[int, int] = {}
        self._used: dict[int, tuple[list[int], list[int]]] = {}
        self._state = np.zeros((num_envs, self.row_units), np.uint16)
        self._dtype = torch.as_tensor(np.zeros(0, column.dtype)).dtype

    def draw(self, steps: np.ndarray, n: np.ndarray) -> tuple[Tensor, Tensor]:
        """Observations and next observations [B, *shape] of absolute steps that are held."""
        self.sync()
        codes = self._codes(steps, n)
        beside = self.chain.has_beside(steps, n)
        last = np.where(beside, steps, steps + 1)
        here = last // self.chain.key_every < self.synced
        here &= codes & (WHOLE_NOW | WHOLE_NEXT) == 0
        if here.all():
            return self._decoded(steps, last, n, codes, beside)
        away = ~here
        shown = (torch.from_numpy(x) for x in self.column.draw(steps[away], n[away]))
        rest = [x.to(self.device) for x in shown]
        if away.all():
            return rest[0], rest[1]
        found = self._decoded(steps[here], last[here], n[here], codes[here], beside[here])
        order = torch.from_numpy(np.argsort(np.append(np.flatnonzero(here), np.flatnonzero(away))))
        order = order.to(self.device)
        now, then = (torch.cat(pair)[order] for pair in zip(found, rest, strict=True))
        return now, then

    def _codes(self, steps: np.ndarray, n: np.ndarray) -> np.ndarray:
        if self.column.frames == 1:
            return np.zeros(len(n), np.uint8)
        codes: np.ndarray = self.column.codes[steps % self.column.steps, n]
        return codes

    def _decoded(
        self,
        steps: np.ndarray,
        last: np.ndarray,
        n: np.ndarray,
        codes: np.ndarray,
        beside: np.ndarray,
    ) -> tuple[Tensor, Tensor]:
        """The same of steps whose rows all lie on the device."""
        back = (codes & BACK).astype(np.int64)
        place = self.column.frames - 1 - back
        side_spans = np.full((len(n), 2), NOTHING, np.int64)
        if beside.any():
            side_spans[beside] = self.sides.find(steps[beside], n[beside])
        rows = self._rows(steps - back, last, n, place, side_spans)
        if place.any():
            rows = self._padded(rows, place, codes & PAD_REPEATS != 0)
        return self._shown(rows[:, :-1]), self._shown(rows[:, 1:])

    def _rows(
        self,
        first: np.ndarray,
        last: np.ndarray,
        n: np.ndarray,
        place: np.ndarray,
        side_spans: np.ndarray,
    ) -> Tensor:
        """Rows first[b] to last[b], and the one beside, from cell place[b] on of [B, k + 1, units].

        Cells before it are zeros; int16.
        """
        cells, key_every = self.column.frames + 1, self.chain.key_every
        most = len(n) * (key_every + cells)
        runs, begun = np.empty((4, most), np.int64), np.empty((3, most), np.int64)
        count, wholes = plan_walks(
            self.spans, self.bases, key_every, first, last, n, place, side_spans, cells, runs, begun
        )
        shape = len(n) * cells, self.row_units
        work = torch.zeros(shape, dtype=torch.int32, device=self.device)
        self._put_wholes(work, begun[:, :wholes])
        self._put_entries(work, runs[:, :count])
        rows = work.view(len(n), cells, self.row_units)
        for j in range(1, cells):
            torch.maximum(rows[:, j], rows[:, j - 1], out=rows[:, j])
        return rows.to(torch.int16)

    def _put_wholes(self, work: Tensor, begun: np.ndarray) -> None:
        """Whole rows into their cells of work [cells, units], each unit behind its order."""
        cell, order, at = self._sent(begun)
        named = self.entries.values[at].long()
        values = self.wholes.values[named].int() & VALUE
        work[cell] = values | (order.int() << 16)[:, None]

    def _put_entries(self, work: Tensor, runs: np.ndarray) -> None:
        """Entries into their units of work; of several the one of the highest order stays."""
        cell, order, begin, length = self._sent(runs)
        total = int(runs[3].sum())
        run = torch.repeat_interleave(length, output_size=total)
        shift = begin - (length.cumsum(0) - length)
        entry = self.entries.values[shift[run] + torch.arange(total, device=self.device)]
        unit = (cell * self.row_units)[run] + (entry >> 16)
        value = (entry & VALUE).int() | (order.int() << 16)[run]
        work.view(-1).scatter_reduce_(0, unit, value, "amax")

    def _padded(self, rows: Tensor, place: np.ndarray, repeats: np.ndarray) -> Tensor:
        """Cells before place[b] repeat the row that lies there; others are zeros as they are."""
        cells = np.arange(rows.shape[1])
        shown = np.where(repeats[:, None], np.maximum(cells, place[:, None]), cells)
        return rows.gather(1, self._sent(shown)[:, :, None].expand(rows.shape))

    def _sent(self, values: np.ndarray) -> Tensor:
        return torch.from_numpy(values).to(self.device)

    def _shown(self, rows: Tensor) -> Tensor:
        """Rows [B, k, units] as observations [B, *shape] in the type of the space."""
        values = rows.view(torch.uint8)[:, :, : self.column.frame]
        flat = values.reshape(len(rows), self.column.size)
        return flat.view(self._dtype).reshape(len(rows), *self.column.shape)

    def sync(self) -> None:
        """Bring what became complete since the last draw, and free what the chain has freed."""
        chain = self.chain
        for block in range(self._freed, min(chain.freed_blocks, self.synced)):
            self._free(block)
        self._freed = chain.freed_blocks
        self.synced = max(self.synced, self._freed)
        self.sides.drop_before(self._freed * chain.key_every)
        while self.synced < (chain.count - 1) // chain.key_every:
            self._bring(self.synced)
            self.synced += 1

    def _bring(self, block: int) -> None:
        """Put one block's rows on the device."""
        chain, at = self.chain, block % self.chain.blocks
        first = block * chain.key_every
        starts = chain.starts[first % len(chain.starts) :][: chain.key_every]
        keys, side_starts = self._beside(first)
        owned = np.count_nonzero(starts & WHOLE) + np.count_nonzero(side_starts & int(WHOLE))
        slots = self.wholes.take(int(owned))
        anchors = chain.anchor_of[at].tolist()
        self._used[block] = slots, anchors
        anchor_slots = np.array([self._anchor_slot(a) for a in anchors])
        whole = np.empty((owned, self.row_units), np.uint16)
        room = (starts.size + len(keys)) * (self.row_units + 1)
        out = np.empty(room, np.int32 if self.entries.values.itemsize == 4 else np.int64)
        side_spans = np.zeros((len(keys), 2), np.uint32)
        count = put_block(
            chain.units, chain.bases[at], starts, keys - first * chain.num_envs, side_starts,
            chain.anchors[anchors], anchor_slots, np.array(slots, np.int64), chain.tops,
            self._state, self.spans[at], side_spans, whole, out,
        )  # fmt: skip
        for key, span in zip(keys, side_spans, strict=True):
            self.sides.append(int(key) // chain.num_envs, int(key) % chain.num_envs, span)
        self.wholes.put(slots, whole)
        self.entries.put(block, out[:count])

    def _beside(self, first: int) -> tuple[np.ndarray, np.ndarray]:
        """Keys and starts of the rows beside those of a block."""
        held, envs = self.chain.beside, self.chain.num_envs
        keys = held.keys[held.begin : held.end]
        begin, end = np.searchsorted(keys, (first * envs, (first + self.chain.key_every) * envs))
        return keys[begin:end], held.values[held.begin + begin : held.begin + end]

    def _anchor_slot(self, anchor: int) -> int:
        """The number of one of the chain's anchors on the device, which one more block uses."""
        if anchor not in self._anchor_slots:
            slots = self.wholes.take(1)
            self.wholes.put(slots, self.chain.anchors[anchor : anchor + 1].view(np.uint16))
            self._anchor_slots[anchor], self._anchor_users[anchor] = slots[0], 0
        self._anchor_users[anchor] += 1
        return self._anchor_slots[anchor]

    def _free(self, block: int) -> None:
        """Give back what only a block's rows needed."""
        slots, anchors = self._used.pop(block)
        self.wholes.free += slots
        for anchor in anchors:
            self._anchor_users[anchor] -= 1
            if not self._anchor_users[anchor]:
                self.wholes.free.append(self._anchor_slots.pop(anchor))
        self.entries.drop_oldest()

    def parts(self) -> dict[str, int]:
        """Bytes by name: on the device, and the tables beside them."""
        tables = self.spans.nbytes + self.bases.nbytes + self.sides.nbytes
        there = self.entries.nbytes + self.wholes.nbytes
        return {"on the device": there, "device tables": int(tables)}
