"""Winning inputs as run lengths: a few bytes that prove a level."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

HOLD_FRAMES = 4
"""Frames per step of the stored inputs: they can be played at frame skip 1, 2 and 4."""


@dataclass(frozen=True)
class Inputs:
    """Actions as run lengths: `actions[k]` (0 to 5) is held for `lengths[k]` steps of 4 frames."""

    actions: np.ndarray
    lengths: np.ndarray

    @property
    def frames(self) -> int:
        """Frames from the start to the end of the last action."""
        return int(self.lengths.sum()) * HOLD_FRAMES

    def per_step(self, frame_skip: int = HOLD_FRAMES) -> np.ndarray:
        """[steps] uint8, one action per environment step of `frame_skip` frames (1, 2 or 4)."""
        if HOLD_FRAMES % frame_skip:
            raise ValueError(
                f"The stored inputs change every {HOLD_FRAMES} frames and cannot be played at "
                f"frame_skip={frame_skip}; use 1, 2 or 4."
            )
        return np.repeat(self.actions, self.lengths.astype(np.int64) * (HOLD_FRAMES // frame_skip))


_OTHER_SIDE = np.array([0, 2, 1, 3, 5, 4], np.uint8)


def mirrored_actions(actions: np.ndarray) -> np.ndarray:
    """Actions 0..5 with left and right exchanged."""
    other: np.ndarray = _OTHER_SIDE[actions]
    return other
