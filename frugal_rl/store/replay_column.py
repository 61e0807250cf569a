"""One entry of the observation in a replay: each frame once, what came next derived.

Of an observation [k frames] only the newest frame is kept, as a row; a code of one byte says how
the older ones follow from the rows before. The observation after a step is the next row's, unless
another arrived (an episode ended, an environment was reset): then its newest frame lies beside
the row. What fits no code is kept whole in a side table, so that every value comes back exactly,
whatever arrives.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from frugal_rl.errors import DataError
from frugal_rl.memory.choices import RolloutLocation
from frugal_rl.store.chain import FrameChain
from frugal_rl.store.chain_check import check_chain
from frugal_rl.store.dense_rows import DenseRows, Rows
from frugal_rl.store.replay_kernels import (
    APART,
    BACK,
    NOT_ADDED,
    PAD_REPEATS,
    WHOLE_NEXT,
    WHOLE_NOW,
    add_step,
    code_stacks,
    draw_steps,
)
from frugal_rl.store.side_table import SideTable

CHAIN_FROM_BYTES = 256
"""Smaller frames are kept as they are: a chain's tables would cost more than it saves."""
MOST_FRAMES = 16


class ReplayColumn:
    """The newest T steps of N environments of observations [*shape], as rows of one frame.

    codes   [T, N] uint8            how the older frames follow from the rows before
    before  [N, k * frame] uint8    what the newest step led to; its newest frame in slot
                                    step % k, the oldest one behind it
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
        self._codes = np.zeros(num_envs, np.uint8)
        self._told = np.zeros((num_envs, self.frame), np.uint8)
        self._unit = np.uint64 if self.frame % 8 == 0 else np.uint8
        self._compared = self.before.view(self._unit), self._told.view(self._unit)
        self._units_shape = self._compared[0].shape
        self._chain: Any = None
        self._written: tuple[Any, ...] = ()
        if isinstance(self.rows, FrameChain) and self._unit is np.uint64:
            self._chain = self.rows
            coded = self._codes, frames, self.codes, *self._compared
            self._written = *coded, *self.rows.written
        self.reset()

    def reset(self) -> None:
        """Hold no step."""
        self.rows.reset()
        most = self.steps * self.num_envs
        self.whole_now = SideTable(self.num_envs, (self.size,), np.uint8, most)
        self.whole_next = SideTable(self.num_envs, (self.size,), np.uint8, most)
        self._keeps_whole = False

    def add(self, observed: np.ndarray, following: np.ndarray) -> None:
        """One step of N environments: observations [N, *shape] and what the step led to."""
        now, then = self._units(observed, following)
        chain, step = self._chain, self.rows.count
        if chain is None or step % chain.key_every == 0:
            before, told = self._compared
            code_stacks(now, then, before, told.shape[1], self.frames, step, self._codes, told)
            self._add_coded(step, now, then)
            return
        if chain.pool.in_file:
            chain.make_room(self.num_envs)
        end = add_step(now, then, step, chain.base, chain.used, *self._written)
        if end == NOT_ADDED:
            self._add_coded(step, now, then)
            return
        chain.used, chain.count = end, step + 1
        if self._keeps_whole:
            self._drop_whole(step)

    def _add_coded(self, step: int, now: np.ndarray, then: np.ndarray) -> None:
        """A step whose codes are known, with what its rows have besides."""
        seen = np.bitwise_or.reduce(self._codes)
        if seen & APART:
            for n in np.flatnonzero(self._codes & APART):
                self.rows.append_beside(int(n), self._told[n])
        if self.frames > 1:
            self.codes[step % self.steps] = self._codes
            if self._keeps_whole:
                self._drop_whole(step)
            if seen & (WHOLE_NOW | WHOLE_NEXT):
                self._keep_whole(step, now, then)
        self.rows.append(now[:, now.shape[1] - self._compared[1].shape[1] :].view(np.uint8))

    def _units(self, *observations: np.ndarray) -> list[np.ndarray]:
        """Observations in the type of the space, as units [N, k * frame] that are compared."""
        found = []
        for values in observations:
            plain = type(values) is np.ndarray and values.dtype == self.dtype
            if not plain or values.nbytes != self.before.nbytes or not values.flags.carray:
                values = self._plain(values)
            found.append(np.ndarray(self._units_shape, self._unit, values))
        return found

    def _plain(self, values: np.ndarray) -> np.ndarray:
        """A copy in the type and shape of the space, in order."""
        values = np.asarray(values, self.dtype)
        if values.nbytes != self.before.nbytes:  # as an assignment to an array would have it
            values = np.broadcast_to(values, (self.num_envs, *self.shape))
        return np.array(values, order="C")  # a kernel knows writable arrays only

    def _drop_whole(self, step: int) -> None:
        """Forget what the ring overwrites with this step."""
        self.whole_now.drop_before(step - self.steps + 1)
        self.whole_next.drop_before(step - self.steps + 1)
        self._keeps_whole = bool(len(self.whole_now) or len(self.whole_next))

    def _keep_whole(self, step: int, now: np.ndarray, then: np.ndarray) -> None:
        """What follows from no row, in order of steps; once, where it is what was led to before."""
        self._keeps_whole = True
        self._forget_shared(step - 1, now)
        kept = ((WHOLE_NOW, self.whole_now, now), (WHOLE_NEXT, self.whole_next, then))
        for bit, table, values in kept:
            for n in np.flatnonzero(self._codes & bit):
                table.append(step, int(n), values[n].view(np.uint8))

    def _forget_shared(self, step: int, now: np.ndarray) -> None:
        """Of what a step led to and keeps whole: those that come again as whole observations."""
        every = np.full(self.num_envs, step), np.arange(self.num_envs)
        whole = (self._codes & WHOLE_NOW != 0) & self.whole_next.holds(*every)
        for n in np.flatnonzero(whole):
            led = self.whole_next.find(np.array([step]), np.array([n]))[0]
            if np.array_equal(led, now[n].view(np.uint8)):
                self.whole_next.forget(step, int(n))

    def _led_to(self, steps: np.ndarray, n: np.ndarray) -> np.ndarray:
        """What steps led to and keep whole [B, k * frame]: in its table, or as the next `now`."""
        led = np.empty((len(n), self.size), np.uint8)
        own = self.whole_next.holds(steps, n)
        led[own] = self.whole_next.find(steps[own], n[own])
        led[~own] = self.whole_now.find(steps[~own] + 1, n[~own])
        return led

    def draw(self, steps: np.ndarray, n: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Observations and next observations [B, *shape] of absolute steps that are held.

        Both are views of one array of k + 1 frames where the next one is the first one shifted.
        """
        window = np.empty((len(n), self.frames + 1, self.frame), np.uint8)
        if self._chain is not None:
            seen = self._draw_words(self._chain, steps, n, window)
            if seen & (WHOLE_NOW | WHOLE_NEXT):
                codes = self.codes[steps % self.steps, n]
                return self._shown_whole(window, codes, steps, n)
            return self._shown(window[:, :-1]), self._shown(window[:, 1:])
        codes = self.codes[steps % self.steps, n] if self.frames > 1 else np.zeros(1, np.uint8)
        back = (codes & BACK).astype(np.int64) + np.zeros(len(n), np.int64)
        place = self.frames - 1 - back
        beside = self.rows.has_beside(steps, n)
        newest = steps == self.rows.count - 1
        last = np.where(beside | newest, steps, steps + 1)
        self.rows.gather(steps - back, last, n, window, place, beside)
        if newest.any():
            at = (self.rows.count - 1) % self.frames * self.frame
            window[newest, self.frames] = self.before[n[newest], at : at + self.frame]
        if self.frames > 1:
            self._pad(window[:, :-1], codes & PAD_REPEATS != 0, place)
        return self._shown_whole(window, codes, steps, n)

    def _draw_words(
        self, chain: FrameChain, steps: np.ndarray, n: np.ndarray, window: np.ndarray
    ) -> Any:
        """Fill the window [B, k + 1, frame] in one call; returns all bits of all codes."""
        sides = chain.beside
        held = slice(sides.begin, sides.end)
        walks = np.empty((4, len(n)), np.int64)
        return draw_steps(
            steps,
            n,
            walks,
            self.codes,
            self._compared[0],
            sides.keys[held],
            sides.values[held],
            *chain.read,
            chain.key_every,
            chain.count,
            *chain.scratch_of_a_walk,
            window.view(np.uint64),
        )

    def _shown_whole(
        self, window: np.ndarray, codes: np.ndarray, steps: np.ndarray, n: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Both halves in the space's type, with the stacks that are kept whole in their places."""
        k = self.frames
        if (at := np.flatnonzero(codes & WHOLE_NOW)).size:
            window[at, :k] = self.whole_now.find(steps[at], n[at]).reshape(len(at), k, self.frame)
        now, then = window[:, :k], window[:, 1:]
        if (at := np.flatnonzero(codes & WHOLE_NEXT)).size:
            then = then.copy()
            then[at] = self._led_to(steps[at], n[at]).reshape(len(at), k, self.frame)
        return self._shown(now), self._shown(then)

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

    def state(self) -> dict[str, Any]:
        """All rows and how they follow, for an exact resume."""
        return {
            "rows": self.rows.state(),
            "codes": self.codes.copy(),
            "newest_codes": self._codes.copy(),
            "before": self._turned(self.before, -self.rows.count),
            "whole_now": self.whole_now.state(),
            "whole_next": self.whole_next.state(),
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Continue from `state()`.

        Raises:
            DataError: its codes or rows lead outside of what it holds.
        """
        self.rows.load(state["rows"])
        if isinstance(self.rows, FrameChain):
            check_chain(self.rows)
        self.codes[...] = state["codes"]
        self._codes[...] = state["newest_codes"]
        self._check_codes()
        self.before[...] = self._turned(np.asarray(state["before"]), self.rows.count)
        self.whole_now.load(state["whole_now"])
        self.whole_next.load(state["whole_next"])
        self._keeps_whole = bool(len(self.whole_now) or len(self.whole_next))
        count = self.rows.count
        self.whole_now.check_held(self.codes & WHOLE_NOW != 0, count)
        self.whole_next.check_held(self.codes & WHOLE_NEXT != 0, count, self.whole_now)

    def _check_codes(self) -> None:
        """Codes lead back to frames of the same observation, whatever a file says."""
        for codes in (self.codes, self._codes):
            if codes.size and int((codes & BACK).max()) >= self.frames:
                raise DataError("a replay's code leads back behind its observation.")

    def _turned(self, stacks: np.ndarray, slots: int) -> np.ndarray:
        """Stacks [N, k * frame] whose frames are moved on by so many slots."""
        in_frames = stacks.reshape(self.num_envs, self.frames, self.frame)
        return np.roll(in_frames, slots, axis=1).reshape(self.num_envs, self.size)

    def parts(self) -> dict[str, int]:
        """Bytes by name."""
        whole = self.whole_now.nbytes + self.whole_next.nbytes
        return self.rows.parts() | {"codes": int(self.codes.nbytes + self.before.nbytes) + whole}
