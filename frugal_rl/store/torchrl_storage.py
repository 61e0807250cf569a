"""TorchRL's storage interface over found rollouts: `ReplayBuffer(storage=FoundStorage(4096))`.

Needs `pip install 'frugal-rl[torchrl]'`. Imports torch, as TorchRL does.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from gymnasium import spaces

from frugal_rl.errors import ConfigError
from frugal_rl.invocation import installing
from frugal_rl.store.found.array import FoundArray

try:
    from tensordict import TensorDict
    from torchrl.data import Storage
except ImportError as error:
    raise ConfigError(f"FoundStorage needs TorchRL ({error}): {installing('torchrl')}") from error

LARGE = 256
"""Bytes of a row from which an entry is searched for what repeats."""


class FoundStorage(Storage):  # type: ignore[misc]  # TorchRL may be missing
    """One rollout of at most `max_size` rows, large entries in the smallest exact form.

    Rows are written in their order; place 0 begins anew and forgets what was there, as a rollout
    of PPO does. Rows that follow each other in time should lie behind each other.
    """

    def __init__(self, max_size: int) -> None:
        super().__init__(max_size)
        self._found: dict[Any, FoundArray] = {}
        self._plain: dict[Any, torch.Tensor] = {}
        self._length = 0

    def set(self, cursor: Any, data: Any, *, set_cursor: bool = True) -> None:
        """Keep the rows of a TensorDict at places that follow each other."""
        places = np.atleast_1d(self._places(cursor))
        rows = data if data.batch_size else data.unsqueeze(0)
        if places[0] == 0:
            self._length = 0
        if not np.array_equal(places, self._length + np.arange(len(places))):
            raise ConfigError(
                f"FoundStorage keeps a rollout: place {self._length} or 0 comes next, not "
                f"{places[0]}. Extend it by whole rollouts of at most max_size={self.max_size}."
            )
        for key in rows.keys(include_nested=True, leaves_only=True):
            self._keep(key, places, rows.get(key).detach().cpu())
        self._length += len(places)
        if set_cursor:
            self._set_last_cursor(cursor)

    def _keep(self, key: Any, places: np.ndarray, values: torch.Tensor) -> None:
        """Rows [B, ...] of one entry."""
        if values[0].nbytes < LARGE or values.dtype is torch.bfloat16:
            if key not in self._plain:
                self._plain[key] = values.new_zeros((self.max_size, *values.shape[1:]))
            self._plain[key][torch.from_numpy(places)] = values
            return
        rows = values.numpy()
        if key not in self._found:
            space = spaces.Box(0, 1, rows.shape[1:], np.float32)
            space.dtype = rows.dtype  # bounds play no part
            self._found[key] = FoundArray(self.max_size, 1, space)
        for place, row in zip(places.tolist(), rows, strict=True):
            self._found[key][place] = row[None]

    def get(self, index: Any) -> Any:
        """The rows at these places as a TensorDict."""
        places = self._places(index)
        if places.max(initial=-1) >= self._length:
            raise IndexError(f"Place {places.max()} is not written yet; {self._length} are.")
        rows: Any = TensorDict({}, batch_size=places.shape)
        for key, column in self._found.items():
            rows.set(key, torch.from_numpy(column.at(places)))
        for key, values in self._plain.items():
            rows.set(key, values[torch.from_numpy(places)])
        return rows

    def _places(self, index: Any) -> np.ndarray:
        """Places of any way to index."""
        if isinstance(index, slice):
            index = range(*index.indices(self._length))
        index = index[0] if isinstance(index, tuple) and len(index) == 1 else index
        return np.asarray(index, np.int64)

    def __len__(self) -> int:
        return self._length

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        found = sum(column.nbytes for column in self._found.values())
        return found + sum(int(values.nbytes) for values in self._plain.values())

    def state_dict(self) -> dict[str, Any]:
        """All rows as they came."""
        return {"rows": self.get(slice(None)).to_dict(), "length": self._length}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Keep the rows of `state_dict()` in the place of those of now."""
        length = int(state_dict["length"])
        self._empty()
        if length:
            self.set(range(length), TensorDict(state_dict["rows"], batch_size=[length]))

    def _empty(self) -> None:
        self._length = 0
