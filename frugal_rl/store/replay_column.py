"""One entry of the observation in a replay: each frame once, what came next derived.

Of an observation [k frames] only the newest frame is kept, as a row; a code of one byte says how
the older ones follow from the rows before. The observation after a step is the next row's, unless
another arrived (an episode ended, an environment was reset): then its newest frame lies beside
the row. What fits no code is kept whole in a side table, so that every value comes back exactly,
whatever arrives.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from frugal_rl.memory.profile import RolloutLocation
from frugal_rl.store.chain import FrameChain
from frugal_rl.store.dense_rows import DenseRows, Rows
from frugal_rl.store.replay_kernels import (
    CONTINUES,
    FOLLOWS,
    REPEATS,
    SHIFTS,
    ZEROS,
    compare_stacks,
)
from frugal_rl.store.side_table import SideTable

CHAIN_FROM_BYTES = 256
"""Smaller frames are kept as they are: a chain's tables would cost more than it saves."""
MOST_FRAMES = 16

BACK = np.uint8(0x0F)
"""Bits of a code: how many older frames are rows before this one."""
PAD_REPEATS = np.uint8(0x10)
"""The frames before those are the oldest of them; zeros where this bit is not set."""
WHOLE_NOW = np.uint8(0x20)
"""The observation is kept whole."""
WHOLE_NEXT = np.uint8(0x40)
"""The next observation is kept whole."""


class ReplayColumn:
    """The newest T steps of N environments of observations [*shape], as rows of one frame.

    codes   [T, N] uint8            how the older frames follow from the rows before
    before  [N, k * frame] uint8    what the newest step led to
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        dtype: Any,
        steps: int,
        num_envs: int,
        *,
        frames: int = 1,
        location: RolloutLocation = RolloutLocation.ram,
        folder: str = "",
    ) -> None:
        self.shape, self.dtype, self.frames = tuple(shape), np.dtype(dtype), frames
        self.steps, self.num_envs = steps, num_envs
        self.size = math.prod(shape) * self.dtype.itemsize
        self.frame = self.size // frames
        chained = self.frame >= CHAIN_FROM_BYTES
        kind: Any = FrameChain if chained else DenseRows
        held = steps + frames - 1  # the oldest observation's older frames
        self.rows: Rows = kind(self.frame, held, num_envs, location=location, folder=folder)
        self.codes = np.zeros((steps if frames > 1 else 0, num_envs), np.uint8)
        self.before = np.zeros((num_envs, self.size), np.uint8)
        self._found = np.zeros(num_envs, np.uint8)
        self._told = np.zeros((num_envs, self.frame), np.uint8)
        self.reset()

    def reset(self) -> None:
        """Hold no step."""
        self.rows.reset()
        self.whole_now = SideTable(self.num_envs, (self.size,), np.uint8)
        self.whole_next = SideTable(self.num_envs, (self.size,), np.uint8)

    def add(self, observed: np.ndarray, following: np.ndarray) -> None:
        """One step of N environments: observations [N, *shape] and what the step led to."""
        now, then = self._bytes(observed), self._bytes(following)
        step = self.rows.count
        follow = compare_stacks(now, then, self.before, self.frame, self._found, self._told)
        if step and not follow:
            for n in np.flatnonzero(self._found & FOLLOWS == 0):
                self.rows.append_beside(int(n), self._told[n])
        if self.frames > 1:
            self._code(step, now, then)
        self.rows.append(now[:, self.size - self.frame :])

    def _bytes(self, values: np.ndarray) -> np.ndarray:
        """Observations as bytes [N, k * frame], in the type of the space."""
        rows = np.ascontiguousarray(values, self.dtype).reshape(self.num_envs, -1)
        return rows.view(np.uint8)

    def _code(self, step: int, now: np.ndarray, then: np.ndarray) -> None:
        """Say how each observation follows from the rows before; keep it whole where none does."""
        found, codes = self._found, self.codes[step % self.steps]
        if step >= self.steps:
            self.whole_now.drop_before(step - self.steps + 1)
            self.whole_next.drop_before(step - self.steps + 1)
        last = self.codes[(step - 1) % self.steps].copy() if step else None
        continues = (found & CONTINUES != 0) & (step > 0)
        codes[:] = np.where((found & REPEATS != 0) & (found & ZEROS == 0), PAD_REPEATS, 0)
        codes[found & (REPEATS | ZEROS) == 0] = WHOLE_NOW
        if last is not None:
            back = np.minimum((last & BACK) + 1, self.frames - 1)
            codes[continues] = (back | last & (PAD_REPEATS | WHOLE_NOW))[continues]
            codes[continues & (last & WHOLE_NEXT != 0)] = WHOLE_NOW
            codes[continues & (codes & BACK == self.frames - 1)] = self.frames - 1
        codes[found & SHIFTS == 0] |= WHOLE_NEXT
        for n in np.flatnonzero(codes & WHOLE_NOW):
            self.whole_now.append(step, int(n), now[n])
        for n in np.flatnonzero(codes & WHOLE_NEXT):
            self.whole_next.append(step, int(n), then[n])

    def draw(self, steps: np.ndarray, n: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Observations and next observations [B, *shape] of absolute steps that are held.

        Both are views of one array of k + 1 frames where the next one is the first one shifted.
        """
        codes = self.codes[steps % self.steps, n] if self.frames > 1 else np.zeros(1, np.uint8)
        back = (codes & BACK).astype(np.int64) + np.zeros(len(n), np.int64)
        window = np.empty((len(n), self.frames + 1, self.frame), np.uint8)
        place = self.frames - 1 - back
        beside = self.rows.has_beside(steps, n)
        newest = steps == self.rows.count - 1
        last = np.where(beside | newest, steps, steps + 1)
        self.rows.gather(steps - back, last, n, window, place, beside)
        if newest.any():
            window[newest, self.frames] = self.before[n[newest], self.size - self.frame :]
        return self._finish(window, codes, place, steps, n)

    def _finish(
        self,
        window: np.ndarray,
        codes: np.ndarray,
        place: np.ndarray,
        steps: np.ndarray,
        n: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Fill in the frames that no row is for, and show both halves in the space's type."""
        k, whole = self.frames, None
        if k > 1:
            self._pad(window[:, :k], codes & PAD_REPEATS != 0, place)
            if (at := np.flatnonzero(codes & WHOLE_NOW)).size:
                kept = self.whole_now.find(steps[at], n[at])
                window[at, :k] = kept.reshape(len(at), k, self.frame)
            if (at := np.flatnonzero(codes & WHOLE_NEXT)).size:
                whole = window[:, 1:].copy()
                kept = self.whole_next.find(steps[at], n[at])
                whole[at] = kept.reshape(len(at), k, self.frame)
        return self._shown(window[:, :k]), self._shown(window[:, 1:] if whole is None else whole)

    def _pad(self, shown: np.ndarray, repeats: np.ndarray, place: np.ndarray) -> None:
        """Fill places before place[b] with zeros, or with the frame that lies there."""
        padded = np.arange(self.frames) < place[:, None]
        if padded.any():
            shown[padded & ~repeats[:, None]] = 0
            b, j = np.nonzero(padded & repeats[:, None])
            shown[b, j] = shown[b, place[b]]

    def _shown(self, frames: np.ndarray) -> np.ndarray:
        """[B, k, frame] uint8 as observations [B, *shape].

        Floating point rows are made contiguous: a network may multiply them where they lie, and
        rounds the same only if they lie as they would in a dense buffer.
        """
        if self.dtype.kind == "f":
            frames = np.ascontiguousarray(frames)
        values: np.ndarray = frames.view(self.dtype).reshape(len(frames), *self.shape)
        return values

    def parts(self) -> dict[str, int]:
        """Bytes by name."""
        whole = self.whole_now.nbytes + self.whole_next.nbytes
        return self.rows.parts() | {"codes": int(self.codes.nbytes + self.before.nbytes) + whole}
