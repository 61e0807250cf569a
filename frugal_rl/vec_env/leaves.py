"""Any Gymnasium observation as named arrays: the leaves of its space."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from frugal_rl.errors import ConfigError, EncodingError

LARGEST_ONE_HOT = 4096


@dataclass(frozen=True)
class Leaf:
    """One array of an observation: where it is found, and what the policy is shown of it.

    `counts` are the numbers of choices of discrete values, shown as one-hot flags behind each
    other; empty for values shown as they are.
    """

    name: str
    path: tuple[Any, ...]
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    low: float = 0.0
    high: float = 1.0
    counts: tuple[int, ...] = ()
    starts: tuple[int, ...] = ()
    choice: bool = False
    """Numbers of choices that are too many for flags."""

    def read(self, observation: Any) -> np.ndarray:
        """The leaf of one observation, [*shape]; refused where it does not fit its space."""
        value = self._as_array(self._found(observation))
        if self.counts:
            return self._one_hot(value)
        if value.shape != self.shape and value.size == math.prod(self.shape) == 1:
            value = value.reshape(self.shape)
        if value.shape != self.shape or not np.can_cast(value.dtype, self.dtype, "same_kind"):
            raise EncodingError(
                f"Observation '{self.name}' is declared as {self.shape} {self.dtype}, but the "
                f"environment gave {value.shape} {value.dtype}. Correct its observation_space, or "
                "put a wrapper into env.wrappers that brings it into this form."
            )
        return value.astype(self.dtype, copy=False)

    def _as_array(self, found: Any) -> np.ndarray:
        try:
            return np.asarray(found)
        except (TypeError, ValueError) as error:  # lists of different lengths inside each other
            raise EncodingError(
                f"Observation '{self.name}' is declared as {self.shape} {self.dtype}, but what the "
                f"environment gave is no array: {error}. Correct the environment."
            ) from error

    def _found(self, observation: Any) -> Any:
        """What lies at the leaf's path."""
        for key in self.path:
            try:
                observation = observation[key]
            except (KeyError, IndexError, TypeError) as error:
                raise EncodingError(
                    f"Observation '{self.name}' is declared, but the environment gave a "
                    f"{type(observation).__name__} without {key!r}. Correct its observation_space, "
                    "or put a wrapper into env.wrappers that fills it in."
                ) from error
        return observation

    def _one_hot(self, value: np.ndarray) -> np.ndarray:
        chosen = value.reshape(-1).astype(np.int64) - np.array(self.starts)
        counts = np.array(self.counts)
        if chosen.shape != counts.shape or (chosen < 0).any() or (chosen >= counts).any():
            raise EncodingError(
                f"Observation '{self.name}' has {counts.tolist()} choices, but the environment "
                f"gave {value.tolist()}. Correct its observation_space."
            )
        flags = np.zeros(self.shape, np.bool_)
        flags[np.cumsum(counts) - counts + chosen] = True
        return flags


def scalar(reward: Any) -> float:
    """A reward, or the number of an array of one; anything else is refused."""
    try:
        return float(np.asarray(reward).item())
    except (TypeError, ValueError, OverflowError) as error:
        raise EncodingError(
            f"The environment gave {np.asarray(reward).tolist()!r:.80} as its reward; one number "
            "is learned from. Put a wrapper into env.wrappers that makes one of it."
        ) from error


def flag(value: Any, name: str) -> bool:
    """Whether an episode has ended, as the environment says; None is no.

    A word would always be yes: it is refused.
    """
    if isinstance(value, bool | np.bool_):
        return bool(value)
    given = np.asarray(False if value is None else value)
    if given.size != 1 or given.dtype.kind not in "biuf":
        raise EncodingError(
            f"The environment gave {given.tolist()!r:.80} as '{name}', which is neither true nor "
            "false. Put a wrapper into env.wrappers that makes it one of them."
        )
    return bool(given.item())


def begun(given: Any) -> Any:
    """The first observation of an episode, of what `reset` gave."""
    if isinstance(given, tuple) and len(given) == 2 and isinstance(given[1], Mapping | None):
        return given[0]
    raise EncodingError(
        f"The environment's reset gave {_kind(given)}, which is not an observation and an info. "
        "Correct it, or put a wrapper into env.wrappers that gives both."
    )


def _kind(given: Any) -> str:
    if isinstance(given, tuple):
        return f"({', '.join(type(part).__name__ for part in given)})"
    return f"a {type(given).__name__}"


def leaves_of(space: spaces.Space[Any]) -> list[Leaf]:
    """The leaves of a space, named by the keys on the way; `observation` where there are none.

    Leaves of no bytes hold nothing and are left out.
    """
    found = [leaf for leaf in _leaves(space, ()) if 0 not in leaf.shape]
    if not found:
        raise ConfigError("The observation space is empty; there is nothing to store.")
    paths: dict[str, tuple[Any, ...]] = {}
    for leaf in found:
        if leaf.name in paths:
            raise ConfigError(
                f"Observations at {paths[leaf.name]} and {leaf.path} would both be named "
                f"'{leaf.name}'. Rename one of them by a wrapper in env.wrappers."
            )
        paths[leaf.name] = leaf.path
    return found


def _leaves(space: spaces.Space[Any], path: tuple[Any, ...]) -> Iterator[Leaf]:
    if isinstance(space, spaces.Dict):
        for key, inner in space.spaces.items():
            yield from _leaves(inner, (*path, key))
    elif isinstance(space, spaces.Tuple):
        for place, inner in enumerate(space.spaces):
            yield from _leaves(inner, (*path, place))
    else:
        yield _leaf(space, path)


def _leaf(space: spaces.Space[Any], path: tuple[Any, ...]) -> Leaf:
    name = "_".join(str(key) for key in path) or "observation"
    if isinstance(space, spaces.Box):
        low, high = float(space.low.min(initial=0)), float(space.high.max(initial=0))
        dtype = np.dtype(space.dtype)
        dtype = np.dtype(np.float64) if dtype.kind == "f" and dtype.itemsize > 8 else dtype
        return Leaf(name, path, space.shape or (1,), dtype, low, high)
    if isinstance(space, spaces.MultiBinary):
        return Leaf(name, path, tuple(map(int, space.shape)), np.dtype(np.int8))
    if isinstance(space, spaces.Discrete | spaces.MultiDiscrete):
        counts = np.atleast_1d(np.asarray(getattr(space, "nvec", getattr(space, "n", 0)))).ravel()
        starts = np.broadcast_to(np.atleast_1d(space.start).ravel(), counts.shape)
        if counts.sum() <= LARGEST_ONE_HOT:
            shape = (int(counts.sum()),)
            ways = tuple(map(int, counts)), tuple(map(int, starts))
            return Leaf(name, path, shape, np.dtype(np.bool_), 0, 1, *ways)
        number, most = np.dtype(np.int64), float(counts.max())
        return Leaf(name, path, space.shape or (1,), number, 0, most, choice=True)
    raise ConfigError(
        f"Observation '{name}' is a {type(space).__name__} space, which has no fixed size in "
        "bytes. Stored are Box, Discrete, MultiDiscrete, MultiBinary, and Dict and Tuple of them: "
        "put a wrapper into env.wrappers that turns it into one of these."
    )


def actions_from_zero(space: spaces.Space[Any]) -> tuple[spaces.Space[Any], Any]:
    """The space as learners count it, each choice from 0, and what to add to its actions.

    Raises:
        ConfigError: no learner chooses such actions.
    """
    flat = isinstance(space, spaces.MultiDiscrete | spaces.MultiBinary) and len(space.shape) == 1
    numbers = isinstance(space, spaces.Box) and 0 not in space.shape
    if not (flat or numbers or isinstance(space, spaces.Discrete)):
        words = " ".join(str(space).split())
        raise ConfigError(
            f"Actions are {words}, which no algorithm chooses: put a wrapper into env.wrappers, "
            "one that makes a Discrete, a Box, a MultiDiscrete or MultiBinary of one axis of them."
        )
    if isinstance(space, spaces.Discrete) and space.start:
        return spaces.Discrete(space.n), space.start
    if isinstance(space, spaces.MultiDiscrete) and space.start.any():
        return spaces.MultiDiscrete(space.nvec), space.start
    return space, None


class LeavesEnv(gym.Wrapper[dict[str, np.ndarray], Any, Any, Any]):
    """An environment that hands out the leaves of its observations, by name, as arrays.

    Discrete actions count from 0, whatever the environment begins them with.
    """

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        super().__init__(env)
        self.leaves = leaves_of(env.observation_space)
        self.action_space, self._first = actions_from_zero(env.action_space)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Start an episode."""
        given = self.env.reset(seed=seed, options=options)
        return self._read(begun(given)), given[1]

    def step(self, action: Any) -> tuple[dict[str, np.ndarray], float, bool, bool, dict[str, Any]]:
        """Take one action."""
        if self._first is not None:
            action = action + self._first
        observation, reward, terminated, truncated, info = self.env.step(action)
        ends = flag(terminated, "terminated"), flag(truncated, "truncated")
        return self._read(observation), scalar(reward), *ends, info

    def _read(self, observation: Any) -> dict[str, np.ndarray]:
        return {leaf.name: leaf.read(observation) for leaf in self.leaves}
