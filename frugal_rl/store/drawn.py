"""What is kept in a small form, read as the arrays that SB3 expects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from frugal_rl.store.replay import ReplayBuffer


class Cast:
    """An array in a small type that is read in the type that SB3 keeps it in."""

    def __init__(self, array: np.ndarray, dtype: np.dtype[Any]) -> None:
        self.array, self.dtype = array, dtype
        self.shape, self.nbytes = array.shape, array.nbytes

    def __getitem__(self, at: Any) -> np.ndarray:
        values: np.ndarray = np.asarray(self.array[at]).astype(self.dtype)
        return values

    def __setitem__(self, at: Any, values: Any) -> None:
        self.array[at] = values


class Drawn:
    """Observations by (places in the ring [B], environments [B]), as SB3 reads its arrays."""

    def __init__(self, buffer: ReplayBuffer, name: str, which: int) -> None:
        self.buffer, self.name, self.which = buffer, name, which

    def __getitem__(self, at: Any) -> np.ndarray:
        places, n = np.broadcast_arrays(*at[:2])
        steps = self.buffer.steps_at(places.reshape(-1))
        drawn = self.buffer.columns[self.name].draw(steps, n.reshape(-1))[self.which]
        return drawn.reshape(*places.shape, *drawn.shape[1:])
