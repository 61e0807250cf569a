"""What a rollout allocates, by arithmetic: one column per stored array."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from gymnasium import spaces

from frugal_rl.errors import ConfigError
from frugal_rl.observation.choices import FrameStack
from frugal_rl.observation.fields import EPISODE
from frugal_rl.observation.integers import smallest_integer
from frugal_rl.store.column_spec import FOUND, ColumnSpec

if TYPE_CHECKING:
    from frugal_rl.observation.codecs.pooled import FoundCodec, PooledCodec
    from frugal_rl.observation.encoding import Encoding

SCALARS = ("rewards", "values", "log_probs", "advantages", "returns")
"""float32 arrays [T, N] beside the observations."""


def columns_of(encoding: Encoding, episode_steps: int = 0) -> list[ColumnSpec]:
    """The columns of an encoding; windows stored once or copied, as it says."""
    columns = []
    for r in encoding.rows:
        copied = encoding.frame_stack is FrameStack.copies and r.window > 1
        shape = (r.window, *r.shape)
        if copied:
            columns.append(ColumnSpec(r.name, shape, r.dtype))
            continue
        lead = episode_steps if r.window == EPISODE else r.window - 1
        codec = cast("PooledCodec", r.codec) if r.codec.pool else None
        if codec is not None and codec.pool == FOUND and r.window > 1:  # it finds stacks itself
            share = codec.expected_share / r.window
            form = codec.form and codec.form.stacked(r.window, r.nbytes)
            kept = replace(cast("FoundCodec", codec), expected_share=share, form=form)
            columns.append(ColumnSpec(r.name, shape, r.dtype, codec=kept))
            continue
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
        return 1, smallest_integer(int(space.start), int(space.start) + int(space.n) - 1)
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
