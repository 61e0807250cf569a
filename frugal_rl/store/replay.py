"""Replay buffers for stable-baselines3's off-policy algorithms, unmodified. Imports torch.

They hold the same transitions as SB3's own buffers and draw them with the same random numbers,
bit for bit; only the observations are kept in another form (`frugal_rl.store.replay_column`).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np
import stable_baselines3.common.buffers as stock
import torch
from gymnasium import spaces
from stable_baselines3.common.type_aliases import DictReplayBufferSamples, ReplayBufferSamples

from frugal_rl.errors import ConfigError, DataError
from frugal_rl.memory.choices import RolloutLocation
from frugal_rl.store.drawn import Cast, Drawn
from frugal_rl.store.hindsight import Hindsight
from frugal_rl.store.layout import action_layout
from frugal_rl.store.places import replay_location
from frugal_rl.store.returns import discounted, steps_counted
from frugal_rl.store.stacks import FoundStack

CODEC = 1
"""Version of the form in which rows are kept; a saved replay of another one is refused."""
SCALARS = ("_actions", "rewards", "_dones", "_timeouts")
LOOKED_AT_BYTES = 1 << 23
"""Of a file's observations, looked at together."""


class ReplayBuffer(stock.ReplayBuffer):
    """The newest transitions, each frame once and only what changed: `replay_buffer_class`.

    >>> from gymnasium import spaces
    >>> pixels = spaces.Box(0, 255, (4, 84, 84), np.uint8)
    >>> replay = ReplayBuffer(100_000, pixels, spaces.Discrete(6), "cpu")
    >>> stack, done = np.zeros((1, 4, 84, 84), np.uint8), np.zeros(1, bool)
    >>> for _ in range(100):
    ...     replay.add(stack, stack, np.zeros(1, int), np.zeros(1), done, [{}])
    >>> replay.sample(32).observations.shape
    torch.Size([32, 4, 84, 84])

    Args:
        buffer_size: transitions held, of all environments together.
        observation_space: Box, Discrete, MultiDiscrete or MultiBinary.
        action_space: stored in the smallest dtype that is exact.
        device: where drawn transitions are delivered.
        n_envs: N.
        optimize_memory_usage: refused; every frame is kept once in any case.
        handle_timeout_termination: a time limit is not an end, as in SB3.
        frame_stack: frames that an observation's first axis stacks, by name where it is a
            dictionary; what is not named is found out.
        n_steps: steps whose rewards a drawn transition sums up.
        gamma: discount of those rewards.
        location: `ram`, `memmap` (a file in `folder`), or `device`: once more there, where
            minibatches are then decoded (`frugal_rl.store.mirror`), but for normalised ones.
        folder: where a mapped file lies; the system's temporary folder if empty.
    """

    def __init__(
        self,
        buffer_size: int,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        device: torch.device | str = "auto",
        n_envs: int = 1,
        optimize_memory_usage: bool = False,
        handle_timeout_termination: bool = True,
        *,
        frame_stack: int | Mapping[str, int] | None = None,
        n_steps: int = 1,
        gamma: float = 0.99,
        location: RolloutLocation | str = RolloutLocation.ram,
        folder: str = "",
    ) -> None:
        if optimize_memory_usage:
            raise ConfigError(
                "optimize_memory_usage=True is SB3's own way to keep frames once, and wrong with "
                f"time limits. {type(self).__name__} does so in any case: leave it out."
            )
        stock.BaseBuffer.__init__(
            self, buffer_size, observation_space, action_space, device, n_envs=n_envs
        )
        self.buffer_size = max(buffer_size // n_envs, 1)
        self.optimize_memory_usage = False
        self.handle_timeout_termination = handle_timeout_termination
        self.n_steps, self.gamma = n_steps, gamma
        place = replay_location(location)
        self._mirrored = place is RolloutLocation.device
        self._allocate_scalars()
        self.count = 0
        stacks = {"obs": frame_stack} if isinstance(frame_stack, int) else dict(frame_stack or {})
        self.columns = {
            name: FoundStack(
                shape, space.dtype, self.buffer_size, n_envs, stacks.get(name), place, folder
            )
            for name, (space, shape) in self._entries().items()
        }
        is_single = not isinstance(observation_space, spaces.Dict)
        self._single = self.columns["obs"] if is_single else None

    def _entries(self) -> dict[str, tuple[spaces.Space[Any], tuple[int, ...]]]:
        """Space and shape of each entry as SB3 delivers it."""
        space, shape = self.observation_space, self.obs_shape
        if isinstance(space, spaces.Dict):
            assert isinstance(shape, dict)
            return {name: (space[name], tuple(shape[name])) for name in shape}
        return {"obs": (space, tuple(shape))}

    def _allocate_scalars(self) -> None:
        shape = (self.buffer_size, self.n_envs)
        space = self.action_space
        self._action_dtype = np.dtype(self._maybe_cast_dtype(space.dtype))
        stored = self._action_dtype if isinstance(space, spaces.Box) else action_layout(space)[1]
        self._actions = np.zeros((*shape, self.action_dim), stored)
        self.rewards = np.zeros(shape, np.float32)
        self._dones = np.zeros(shape, np.bool_)
        self._timeouts = np.zeros(shape, np.bool_)

    @property
    def actions(self) -> Cast:  # type: ignore[override]
        """Actions [T, N, dim] in SB3's type where they are read."""
        return Cast(self._actions, self._action_dtype)

    @property
    def dones(self) -> Cast:  # type: ignore[override]
        """Whether each step ended an episode, [T, N], float32 where it is read."""
        return Cast(self._dones, np.dtype(np.float32))

    @property
    def timeouts(self) -> Cast:  # type: ignore[override]
        """Whether it ended by a time limit, [T, N], float32 where it is read."""
        return Cast(self._timeouts, np.dtype(np.float32))

    @property
    def observations(self) -> Any:  # type: ignore[override]
        """Observations by (place in the ring, environment), rebuilt where they are read."""
        return self._drawn(0)

    @property
    def next_observations(self) -> Any:  # type: ignore[override]
        """What each step led to."""
        return self._drawn(1)

    def _drawn(self, which: int) -> Any:
        return Drawn(self, "obs", which)

    def add(
        self,
        obs: Any,
        next_obs: Any,
        action: np.ndarray,
        reward: np.ndarray,
        done: np.ndarray,
        infos: list[dict[str, Any]],
    ) -> None:
        """One step of N environments; nothing that is handed in is kept or changed."""
        limits: Any = False
        if self.handle_timeout_termination:
            for info in infos:
                if info.get("TimeLimit.truncated", False):
                    limits = [info.get("TimeLimit.truncated", False) for info in infos]
                    break
        self.store(obs, next_obs, action, reward, done, limits)

    def store(
        self,
        obs: Any,
        next_obs: Any,
        action: np.ndarray,
        reward: np.ndarray,
        done: np.ndarray,
        timeouts: Any,
    ) -> None:
        """One step of N environments as arrays: `timeouts` [N] says which ends a limit made."""
        if self._single is not None:
            (self._single.column or self._single).add(obs, next_obs)
        else:
            for name, column in self.columns.items():
                column.add(obs[name], next_obs[name])
        pos = self.pos
        self._actions[pos] = action.reshape(self.n_envs, self.action_dim)
        self.rewards[pos] = reward
        self._dones[pos] = done
        self._timeouts[pos] = timeouts
        self.count += 1
        self.pos += 1
        if self.pos == self.buffer_size:
            self.full = True
            self.pos = 0

    def reset(self) -> None:
        """Hold no transition."""
        super().reset()
        self.count = 0
        for column in self.columns.values():
            column.reset()

    def end_episodes(self) -> None:
        """What was being played goes on elsewhere; transitions stand for themselves."""

    def steps_at(self, places: np.ndarray) -> np.ndarray:
        """The absolute steps that lie at places of the ring now."""
        newest = self.count - 1
        steps: np.ndarray = newest - (newest - np.asarray(places)) % self.buffer_size
        return steps

    def _get_samples(self, batch_inds: np.ndarray, env: Any = None) -> Any:
        n = np.random.randint(0, self.n_envs, size=len(batch_inds))  # noqa: NPY002 - SB3's stream
        return self._samples_at(batch_inds, n, env)

    def _samples_at(self, places: np.ndarray, n: np.ndarray, env: Any = None) -> Any:
        """The transitions at places of the ring [B] of environments [B], or returns from there."""
        at, last, discounts = (places, n), places, None
        rewards = self._normalize_reward(self.rewards[at].reshape(-1, 1), env)
        if self.n_steps > 1:
            last, rewards, discounts = self._several(places, n, env)
        now, then = self._observed(places, last, n, self._mirrored and env is None)
        return self._samples_type(
            self._delivered(self._normalize_obs(now, env)),
            self.to_torch(self.actions[at], copy=False),
            self._delivered(self._normalize_obs(then, env)),
            self.to_torch(self._ended((last, n)), copy=False),
            self.to_torch(rewards, copy=False),
            None if discounts is None else self.to_torch(discounts, copy=False),
        )

    _samples_type: ClassVar[Any] = ReplayBufferSamples
    scalars: ClassVar[tuple[str, ...]] = SCALARS
    """What is kept beside the observations, by attribute."""

    def _delivered(self, values: Any) -> Any:
        return self.to_torch(values, copy=False)

    def _observed(
        self, first: np.ndarray, last: np.ndarray, n: np.ndarray, there: bool
    ) -> tuple[Any, Any]:
        """What was observed at places `first`, and what places `last` led to.

        There: as tensors that were decoded on the device.
        """
        return self._drawn_pair(self.columns["obs"], first, last, n, there)

    def _drawn_pair(
        self, column: FoundStack, first: np.ndarray, last: np.ndarray, n: np.ndarray, there: bool
    ) -> tuple[Any, Any]:
        draw: Any = partial(column.draw_there, self.device) if there else column.draw
        now, then = draw(self.steps_at(first), n)
        return now, then if last is first else draw(self.steps_at(last), n)[1]

    def _several(
        self, places: np.ndarray, n: np.ndarray, env: Any
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of `n_steps` from each place: the last place that counts, returns and discounts [B, 1].

        Steps count up to the end of their episode, or to the newest one that is held.
        """
        steps = places[:, None] + np.arange(self.n_steps)
        at = steps % self.buffer_size, n[:, None]
        newest = at[0] == (self.pos - 1) % self.buffer_size
        counted = steps_counted(self._dones[at] | self._timeouts[at] | newest)
        rewards = self._normalize_reward(self.rewards[at], env)
        last = (places + counted - 1) % self.buffer_size
        return last, *discounted(rewards, counted, self.gamma)

    def _ended(self, at: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        """[B, 1] float32, ends that are not due to a time limit."""
        ended: np.ndarray = self._dones[at] & ~self._timeouts[at]
        return ended.astype(np.float32).reshape(-1, 1)

    def state(self) -> dict[str, Any]:
        """All that is held, as plain values and arrays: for checkpoints without pickles."""
        scalars = {name: getattr(self, name).copy() for name in self.scalars}
        return scalars | {
            "form": self._form(),
            "count": self.count,
            "columns": {name: column.state() for name, column in self.columns.items()},
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Continue from `state()`.

        Raises:
            DataError: it is a replay of another capacity, of other observations or another codec,
                or its actions are none of the space's.
        """
        if state["form"] != self._form():
            raise DataError(
                f"the replay that was saved is {state['form']}, this run builds {self._form()}; "
                "give the environment, algo.buffer_size and algo.num_envs of the saved run."
            )
        for name in self.scalars:
            getattr(self, name)[...] = state[name]
        for name, column in self.columns.items():
            column.load(state["columns"][name])
        self.count = int(state["count"])
        if self.count < 0 or any(
            c.decided().rows.count != self.count for c in self.columns.values()
        ):
            raise DataError("its observations are of other steps than its rewards.")
        self.pos, self.full = self.count % self.buffer_size, self.count >= self.buffer_size
        self._check_scalars()

    def held(self, names: Collection[str]) -> Iterator[dict[str, np.ndarray]]:
        """All observations that are held, and what they led to, of these entries; in pieces."""
        columns = {name: column for name, column in self.columns.items() if name in names}
        size = sum(math.prod(c.shape) * c.dtype.itemsize for c in columns.values())
        several = max(1, LOOKED_AT_BYTES // max(1, size))
        first = max(0, self.count - self.buffer_size) * self.n_envs
        end = self.count * self.n_envs if columns else first
        for at in range(first, end, several):
            steps, n = np.divmod(np.arange(at, min(at + several, end)), self.n_envs)
            drawn = {name: column.draw(steps, n) for name, column in columns.items()}
            yield from ({name: pair[i] for name, pair in drawn.items()} for i in (0, 1))

    def _check_scalars(self) -> None:
        """Actions are some of the space's, rewards are numbers, whatever a file says."""
        held, space = slice(0, min(self.count, self.buffer_size)), self.action_space
        actions = self._actions[held]
        if isinstance(space, spaces.Discrete) and actions.size:
            least, most = int(space.start), int(space.start + space.n) - 1
            if not least <= actions.min() <= actions.max() <= most:
                raise DataError(f"a replay holds actions outside of {least} to {most}.")
        for values in (actions, self.rewards[held]):
            if values.dtype.kind == "f" and not np.isfinite(values).all():
                raise DataError("a replay holds an action or a reward that is not finite.")

    def _form(self) -> str:
        """What a saved replay must agree in, in words."""
        entries = ", ".join(f"{n} {c.dtype} {list(c.shape)}" for n, c in self.columns.items())
        held = "steps with episodes' bounds" if len(self.scalars) > len(SCALARS) else "steps"
        return f"codec {CODEC}: {self.buffer_size} {held} of {self.n_envs} environments, {entries}"

    @property
    def nbytes(self) -> int:
        """Bytes that hold memory."""
        return sum(self.parts().values())

    def parts(self) -> dict[str, int]:
        """Bytes by name: each entry of the observation, the scalars beside them."""
        columns = {
            f"replay/{name}/{part}": size
            for name, column in self.columns.items()
            for part, size in column.parts().items()
        }
        return columns | {"replay/scalars": sum(int(getattr(self, s).nbytes) for s in self.scalars)}


class DictReplayBuffer(ReplayBuffer, stock.DictReplayBuffer):  # type: ignore[override]
    """The same for observations that are dictionaries; each entry finds its own form.

    >>> from gymnasium import spaces
    >>> space = spaces.Dict({"clock": spaces.Discrete(9), "at": spaces.Box(-1, 1, (2,))})
    >>> replay = DictReplayBuffer(1_000, space, spaces.Discrete(2), "cpu")
    >>> sorted(part for part in replay.parts() if part.endswith("rows"))
    ['replay/at/rows', 'replay/clock/rows']
    """

    def _drawn(self, which: int) -> Any:
        return {name: Drawn(self, name, which) for name in self.columns}

    def sample(self, batch_size: int, env: Any = None) -> Any:
        """Transitions drawn with SB3's random numbers."""
        return ReplayBuffer.sample(self, batch_size, env)

    _samples_type: ClassVar[Any] = DictReplayBufferSamples

    def _get_samples(self, batch_inds: np.ndarray, env: Any = None) -> Any:
        return ReplayBuffer._get_samples(self, batch_inds, env)

    def _delivered(self, values: Any) -> Any:
        return {name: self.to_torch(entry, copy=False) for name, entry in values.items()}

    def _observed(
        self, first: np.ndarray, last: np.ndarray, n: np.ndarray, there: bool
    ) -> tuple[Any, Any]:
        columns = self.columns.items()
        drawn = {name: self._drawn_pair(column, first, last, n, there) for name, column in columns}
        return tuple({name: pair[i] for name, pair in drawn.items()} for i in (0, 1))  # type: ignore[return-value]


class HerReplayBuffer(Hindsight, DictReplayBuffer):  # type: ignore[override]
    """SB3's hindsight experience replay over the same columns: its goals, our store.

    >>> from stable_baselines3.her.her_replay_buffer import HerReplayBuffer as Stock
    >>> issubclass(HerReplayBuffer, Stock)  # its options hold: goal_selection_strategy and so on
    True
    """

    scalars: ClassVar[tuple[str, ...]] = SCALARS + Hindsight._bounds
