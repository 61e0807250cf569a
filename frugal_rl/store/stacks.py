"""Finds out whether an observation stacks frames, before one is kept. Imports torch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from frugal_rl.errors import ConfigError, DataError
from frugal_rl.memory.choices import RolloutLocation
from frugal_rl.store.chain import FrameChain
from frugal_rl.store.mirror import DeviceMirror
from frugal_rl.store.replay_column import CHAIN_FROM_BYTES, MOST_FRAMES, ReplayColumn

LOOKS_AT = 32
"""Steps that are kept as they are before it is decided; the first draw decides earlier."""


class FoundStack:
    """A `ReplayColumn` whose number of frames is declared, or found in the first steps."""

    def __init__(
        self,
        shape: tuple[int, ...],
        dtype: Any,
        steps: int,
        num_envs: int,
        frames: int | None = None,
        location: RolloutLocation = RolloutLocation.ram,
        folder: str = "",
    ) -> None:
        self.shape, self.dtype = tuple(shape), np.dtype(dtype)
        self.where: dict[str, Any] = {"location": location, "folder": folder}
        self.steps, self.num_envs = steps, num_envs
        self.staged: list[tuple[np.ndarray, np.ndarray]] = []
        self.column: ReplayColumn | None = None
        self._mirror: DeviceMirror | None = None
        if frames is not None:
            if not 1 <= frames <= MOST_FRAMES or (frames > 1 and self.shape[0] % frames):
                raise ConfigError(
                    f"frame_stack={frames} does not divide the first axis of an observation of "
                    f"shape {self.shape} into at most {MOST_FRAMES} frames. "
                    "Leave frame_stack out to have it found."
                )
            self.column = self._made(frames)
        elif not self._candidates():
            self.column = self._made(1)

    def _made(self, frames: int) -> ReplayColumn:
        return ReplayColumn(
            self.shape, self.dtype, self.steps, self.num_envs, frames=frames, **self.where
        )

    def _candidates(self) -> list[int]:
        """Numbers of frames that the first axis can hold, most first; none for small vectors."""
        if not self.shape or math.prod(self.shape) * self.dtype.itemsize < CHAIN_FROM_BYTES:
            return []
        most = min(MOST_FRAMES, self.shape[0])
        return [k for k in range(most, 1, -1) if self.shape[0] % k == 0]

    def reset(self) -> None:
        """Hold no step."""
        self.staged, self._mirror = [], None
        if self.column is not None:
            self.column.reset()

    def add(self, observed: np.ndarray, following: np.ndarray) -> None:
        """One step of N environments."""
        if self.column is not None:
            self.column.add(observed, following)
            return
        shape = (self.num_envs, *self.shape)
        pair = tuple(np.array(x, self.dtype).reshape(shape) for x in (observed, following))
        self.staged.append((pair[0], pair[1]))
        if len(self.staged) >= min(LOOKS_AT, self.steps):
            self.decided()

    def decided(self) -> ReplayColumn:
        """The column, which takes over what has been staged."""
        if self.column is None:
            frames = next((k for k in self._candidates() if self._is_stack(k)), 1)
            self.column = self._made(frames)
            for observed, following in self.staged:
                self.column.add(observed, following)
            self.staged = []
        return self.column

    def _is_stack(self, frames: int) -> bool:
        """Whether each next observation is the one before, shifted; and frames ever differed."""
        size = self.shape[0] // frames
        shifts = all(np.array_equal(then[:, :-size], now[:, size:]) for now, then in self.staged)
        return shifts and any(
            not np.array_equal(now[:, :size], now[:, -size:]) for now, _ in self.staged
        )

    def draw(self, steps: np.ndarray, n: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Observations and next observations [B, *shape] of absolute steps."""
        return self.decided().draw(steps, n)

    def draw_there(
        self, device: torch.device, steps: np.ndarray, n: np.ndarray
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The same as tensors on the device, where chains of rows are decoded.

        Rows that are no chain are copied as they are.
        """
        column = self.decided()
        if not isinstance(column.rows, FrameChain):
            now, then = column.draw(steps, n)
            return torch.as_tensor(now, device=device), torch.as_tensor(then, device=device)
        if self._mirror is None:
            self._mirror = DeviceMirror(column, column.rows, device)
        return self._mirror.draw(steps, n)

    def state(self) -> dict[str, Any]:
        """The column with the number of frames that was found, for an exact resume."""
        column = self.decided()
        return {"frames": column.frames, "column": column.state()}

    def load(self, state: Mapping[str, Any]) -> None:
        """Continue from `state()`.

        Raises:
            DataError: observations of this shape stack no such number of frames.
        """
        frames = int(state["frames"])
        if not 1 <= frames <= MOST_FRAMES or (frames > 1 and self.shape[0] % frames):
            raise DataError(f"a replay says that its observations are {frames} frames.")
        if self.column is None or self.column.frames != frames:
            self.column = self._made(frames)
        self.staged, self._mirror = [], None
        self.column.load(state["column"])

    def __getstate__(self) -> dict[str, Any]:
        """For pickles and copies (SB3's `save_replay_buffer`): a region of addresses has none."""
        column = None if self.column is None else self.state()
        return vars(self) | {"column": column, "_mirror": None}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        vars(self).update(kept, column=None)
        if kept["column"] is not None:
            self.load(kept["column"])

    def parts(self) -> dict[str, int]:
        """Bytes by name."""
        staged = sum(int(a.nbytes + b.nbytes) for a, b in self.staged)
        if self.column is None:
            return {"staged": staged}
        return self.column.parts() | (self._mirror.parts() if self._mirror else {})
