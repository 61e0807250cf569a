"""Which observations stock Stable-Baselines3 takes: the others are refused before it trips."""

from __future__ import annotations

import math
from typing import Any

from gymnasium import spaces

from frugal_rl.errors import ConfigError
from frugal_rl.store.layout import columns_of_space


def check_space(space: spaces.Space[Any]) -> None:
    """Nothing, for a space that Stable-Baselines3's own networks and our columns can hold.

    Raises:
        ConfigError: names the entry and the wrapper that helps.
    """
    entries = dict(space.spaces) if isinstance(space, spaces.Dict) else {"obs": space}
    if not entries:
        raise ConfigError("The observation is a Dict without an entry; there is nothing to learn.")
    for name, inner in entries.items():
        trouble = _trouble(inner)
        if trouble:
            raise ConfigError(f"Observation '{name}' {trouble}")
    columns_of_space(space)


def _trouble(space: spaces.Space[Any]) -> str:
    """What Stable-Baselines3 cannot do with an entry, and the remedy; empty where it can."""
    if isinstance(space, spaces.Dict | spaces.Tuple):
        return (
            f"is a nested {type(space).__name__}, which Stable-Baselines3 does not take. "
            "Flatten it: gymnasium.wrappers.FlattenObservation."
        )
    if isinstance(space, spaces.Box) and not math.prod(space.shape):
        return (
            f"has the shape {space.shape}, which holds no number. Leave it out: "
            "gymnasium.wrappers.FilterObservation."
        )
    if isinstance(space, spaces.Box) and not space.shape:
        return (
            "is a single number without an axis, which Stable-Baselines3 does not read. Give it "
            "one: gymnasium.wrappers.ReshapeObservation(env, (1,))."
        )
    if space.dtype is not None and not space.dtype.isnative:
        return (
            f"comes as {space.dtype.str}, in the byte order of another machine, which torch does "
            "not read. Turn it: gymnasium.wrappers.TransformObservation(env, lambda obs: "
            f"obs.astype('{space.dtype.name}'), ...)."
        )
    if isinstance(space, spaces.Discrete) and space.start:
        return (
            f"counts from {space.start}; Stable-Baselines3 reads choices from 0. Shift it: "
            f"gymnasium.wrappers.TransformObservation(env, ..., Discrete({space.n}))."
        )
    if isinstance(space, spaces.MultiDiscrete) and (space.nvec.ndim > 1 or space.start.any()):
        return (
            "is a MultiDiscrete of several axes or one that does not count from 0, which "
            "Stable-Baselines3 does not read. Make it flat, from 0: "
            "gymnasium.wrappers.TransformObservation."
        )
    return ""
