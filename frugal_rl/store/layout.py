"""What a rollout allocates, by arithmetic: one column per stored array."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces

from frugal_rl.errors import ConfigError
from frugal_rl.memory.profile import RolloutLocation
from frugal_rl.observation.choices import FrameStack
from frugal_rl.observation.codecs.pooled import PooledCodec
from frugal_rl.observation.encoding import Encoding
from frugal_rl.observation.spec import EPISODE, Padding

SCALARS = ("rewards", "values", "log_probs", "advantages", "returns")
"""float32 arrays [T, N] beside the observations."""

WORD_BYTES = 8
UNIT_BYTES = 2
"""Pools count in units of two bytes."""
INDEX_BYTES = 8 + 4
"""Of a pooled row: where it begins, and its length or reference."""
ARRAY = "frugal_rl.store.columns:ArrayColumn"
ON_DEVICE = "frugal_rl.store.device:DeviceColumn"
FOUND = "found"
"""The pool that finds out by itself what changes; its codec expects how much that is."""
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

    def pool_units(self, steps: int, num_envs: int) -> int:
        """Units of two bytes that a pool begins with: what its codec expects."""
        share = self.codec.expected_share if self.codec else 1.0
        words = self.rows(steps, num_envs) * self.padded_bytes * share / WORD_BYTES
        return math.ceil(words) * (WORD_BYTES // UNIT_BYTES)

    def nbytes(self, steps: int, num_envs: int) -> int:
        """Bytes allocated at first for T steps of N environments; a pool may grow."""
        rows = self.rows(steps, num_envs)
        if self.codec is None:
            return rows * self.row_bytes
        if self.codec.pool == FOUND:
            return math.ceil(rows * self.row_bytes * self.codec.expected_share)
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


def columns_of(encoding: Encoding, episode_steps: int = 0) -> list[ColumnSpec]:
    """The columns of an encoding; windows stored once or copied, as it says."""
    columns = []
    for r in encoding.rows:
        copied = encoding.frame_stack is FrameStack.copies and r.window > 1
        if copied:
            columns.append(ColumnSpec(r.name, (r.window, *r.shape), r.dtype))
            continue
        lead = episode_steps if r.window == EPISODE else r.window - 1
        codec = r.codec if isinstance(r.codec, PooledCodec) else None
        columns.append(ColumnSpec(r.name, r.shape, r.dtype, r.window, lead, r.padding, codec))
    if encoding.windowed:
        columns.append(ColumnSpec("age", (1,), np.dtype(np.int32)))
    return columns


def columns_of_space(space: spaces.Space[Any]) -> list[ColumnSpec]:
    """One dense column per entry of a plain Gymnasium space, in the types that it declares."""
    entries = dict(space.spaces) if isinstance(space, spaces.Dict) else {"obs": space}
    columns = []
    for name, box in entries.items():
        if isinstance(box, spaces.Discrete):
            columns.append(ColumnSpec(name, (1,), np.dtype(box.dtype)))
        elif isinstance(box, spaces.Box | spaces.MultiDiscrete | spaces.MultiBinary):
            shape = tuple(box.shape) or (1,)  # as SB3 delivers it
            columns.append(ColumnSpec(name, shape, np.dtype(box.dtype)))
        else:
            raise ConfigError(
                f"The rollout cannot store '{name}', a {type(box).__name__}; it stores "
                "Box, Discrete, MultiDiscrete, MultiBinary and flat Dict spaces of them. Put a "
                "wrapper of gymnasium.wrappers around the environment: FlattenObservation, or "
                "FilterObservation without it."
            )
    return columns


def action_layout(space: spaces.Space[Any]) -> tuple[int, np.dtype[Any]]:
    """Numbers per action and the smallest dtype that holds them exactly."""
    if isinstance(space, spaces.Discrete):
        return 1, np.result_type(
            np.min_scalar_type(int(space.start)),
            np.min_scalar_type(int(space.start) + int(space.n) - 1),
        )
    if isinstance(space, spaces.MultiDiscrete):
        return int(np.prod(space.shape)), np.min_scalar_type(int(space.nvec.max()) - 1)
    if isinstance(space, spaces.MultiBinary):
        return int(np.prod(space.shape)), np.dtype(np.int8)
    if isinstance(space, spaces.Box):
        return int(np.prod(space.shape)), np.dtype(space.dtype)
    raise ConfigError(
        f"The rollout cannot store actions of a {type(space).__name__}; it stores Discrete, "
        "MultiDiscrete, MultiBinary and Box. Put a wrapper around the environment that makes it "
        "one of these."
    )


def scalar_bytes(steps: int, num_envs: int, action_space: spaces.Space[Any]) -> int:
    """Bytes of actions, rewards, values, log-probabilities, advantages, returns and starts."""
    size, dtype = action_layout(action_space)
    return steps * num_envs * (size * int(dtype.itemsize) + len(SCALARS) * 4 + 1)


def planned_bytes(
    encoding: Encoding,
    steps: int,
    num_envs: int,
    action_space: spaces.Space[Any],
    episode_steps: int = 0,
) -> int:
    """Bytes that `RolloutBuffer` allocates for T = `steps` of N = `num_envs`, to the byte.

    Pooled columns (ragged, delta) begin with what their codec expects and may grow.
    """
    columns = columns_of(encoding, episode_steps)
    stored = sum(c.nbytes(steps, num_envs) for c in columns)
    return stored + scalar_bytes(steps, num_envs, action_space)


def flatten_bytes(encoding: Encoding, steps: int, num_envs: int, episode_steps: int = 0) -> int:
    """Bytes of the largest array that `shuffle=copy` holds twice while it flattens."""
    columns = [c for c in columns_of(encoding, episode_steps) if not c.lead and c.codec is None]
    return max((c.nbytes(steps, num_envs) for c in columns), default=0)
