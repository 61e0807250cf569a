"""One stored row type: its shape, its bytes, where it lies, and who allocates it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from frugal_rl.memory.choices import RolloutLocation
from frugal_rl.observation.aligned import WORD_BYTES
from frugal_rl.observation.fields import Padding

if TYPE_CHECKING:
    from frugal_rl.observation.codecs.pooled import PooledCodec

UNIT_BYTES = 2
"""Pools count in units of two bytes."""
INDEX_BYTES = 8 + 4
"""Of a pooled row: where it begins, and its length or reference."""
ARRAY = "frugal_rl.store.columns:ArrayColumn"
ON_DEVICE = "frugal_rl.store.device:DeviceColumn"
FOUND = "found"
"""The pool that finds out by itself what changes; its codec expects how much that is."""
FIRST_LOOK = 16
"""Steps after which it looks at the rows of the first rollout."""
POOLS = {
    "ragged": "frugal_rl.store.ragged:RaggedColumn",
    "delta": "frugal_rl.store.delta:DeltaColumn",
    FOUND: "frugal_rl.store.found.column:FoundColumn",
}
"""Who allocates a column, by the pool that its codec asks for."""


@dataclass(frozen=True)
class ColumnSpec:
    """One stored row type: [lead + T, N, *shape] dtype, shown as a window of `window` rows.

    `lead` rows belong to the rollout before: the past of windows that begin there.
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    window: int = 1
    lead: int = 0
    padding: Padding = Padding.zero
    codec: PooledCodec | None = None

    @property
    def row_bytes(self) -> int:
        """Bytes of one row as the policy receives it, without its window."""
        return math.prod(self.shape) * int(self.dtype.itemsize)

    @property
    def padded_bytes(self) -> int:
        """Bytes of a pooled row, filled up to whole words."""
        return -(-self.row_bytes // WORD_BYTES) * WORD_BYTES

    def rows(self, steps: int, num_envs: int) -> int:
        """Rows of T steps of N environments, with those of the past that windows need."""
        return (self.lead + steps) * num_envs

    def dense_bytes(self, steps: int, num_envs: int) -> int:
        """Bytes of T steps of N environments as they are, whatever a codec expects."""
        return self.rows(steps, num_envs) * self.row_bytes

    def pool_units(self, steps: int, num_envs: int) -> int:
        """Units of two bytes that a pool begins with: what its codec expects."""
        share = self.codec.expected_share if self.codec else 1.0
        words = self.rows(steps, num_envs) * self.padded_bytes * share / WORD_BYTES
        return math.ceil(words) * (WORD_BYTES // UNIT_BYTES)

    def nbytes(self, steps: int, num_envs: int) -> int:
        """Bytes allocated at first for T steps of N environments; a pool may grow."""
        rows, dense = self.rows(steps, num_envs), self.dense_bytes(steps, num_envs)
        if self.codec is None:
            return dense
        if self.codec.pool == FOUND:
            return math.ceil(dense * self.codec.expected_share)
        references = num_envs * self.padded_bytes if self.codec.pool == "delta" else 0
        return self.pool_units(steps, num_envs) * UNIT_BYTES + rows * INDEX_BYTES + references

    def formula(self, steps: int, num_envs: int) -> str:
        """The same in words; its numbers multiply to `nbytes`."""
        count = f"({self.lead} + {steps})" if self.lead else f"{steps}"
        rows = f"{count} steps x {num_envs} envs"
        if self.codec is None:
            shape = " x ".join(str(n) for n in self.shape) or "1"
            return f"{rows} x {shape} x {self.dtype.name}"
        if self.codec.pool == FOUND:
            return f"{rows} x {self.row_bytes} B x {self.codec.expected_share:g} that change"
        pool = self.pool_units(steps, num_envs) * UNIT_BYTES
        references = f" + {num_envs} x {self.padded_bytes} B" if self.codec.pool == "delta" else ""
        return (
            f"{rows} x {INDEX_BYTES} B of index + a {self.codec.pool} pool of {pool:,} B "
            f"({self.codec.expected_share:.0%} of {self.padded_bytes} B rows expected)" + references
        )

    def place(self, wanted: RolloutLocation) -> RolloutLocation:
        """Where the column lies: pools grow, so they stay in memory whatever is wanted."""
        return wanted if self.codec is None else RolloutLocation.ram

    def allocated_by(self, wanted: RolloutLocation) -> str:
        """The class that allocates it, as `module:name`."""
        if self.codec is not None:
            return POOLS[self.codec.pool]
        return ON_DEVICE if wanted is RolloutLocation.device else ARRAY

    def shown(self) -> tuple[int, ...]:
        """Shape of one sample as the policy receives it."""
        if self.window == 1:
            return self.shape
        return (self.lead + 1, *self.shape)
