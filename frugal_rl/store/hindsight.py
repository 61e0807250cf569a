"""Episodes' bounds and goals in hindsight over a compact replay. Imports torch."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.her.goal_selection_strategy import (
    KEY_TO_GOAL_STRATEGY,
    GoalSelectionStrategy,
)
from stable_baselines3.her.her_replay_buffer import HerReplayBuffer as StockHerReplayBuffer

from frugal_rl.errors import ConfigError, DataError


class Hindsight(StockHerReplayBuffer):
    """SB3's choice of goals, in front of a replay that keeps transitions in another form.

    Args:
        env: whose first environment computes rewards of goals in hindsight.
        n_sampled_goal: virtual transitions for each real one.
        goal_selection_strategy: `future`, `final` or `episode`.
        copy_info_dict: keep each step's `info` for `compute_reward`; such a replay is not saved.
        kept: what `DictReplayBuffer` takes beside.
    """

    _bounds: ClassVar[tuple[str, ...]] = ("ep_start", "ep_length", "_current_ep_start")

    def __init__(
        self,
        buffer_size: int,
        observation_space: spaces.Dict,
        action_space: spaces.Space[Any],
        env: Any = None,
        device: torch.device | str = "auto",
        n_envs: int = 1,
        optimize_memory_usage: bool = False,
        handle_timeout_termination: bool = True,
        n_sampled_goal: int = 4,
        goal_selection_strategy: GoalSelectionStrategy | str = "future",
        copy_info_dict: bool = False,
        **kept: Any,
    ) -> None:
        if kept.get("n_steps", 1) > 1:
            raise ConfigError(
                "Returns of several steps belong to the goal that was pursued, and hindsight draws "
                "others: leave n_steps (algo.return_steps) at 1, or do without hindsight."
            )
        super(StockHerReplayBuffer, self).__init__(
            buffer_size, observation_space, action_space, device, n_envs,
            optimize_memory_usage, handle_timeout_termination, **kept,
        )  # fmt: skip
        self.env, self.copy_info_dict = env, copy_info_dict
        self.goal_selection_strategy = chosen_strategy(goal_selection_strategy)
        self.n_sampled_goal = n_sampled_goal
        self.her_ratio = 1 - 1.0 / (n_sampled_goal + 1)
        shape = (self.buffer_size, n_envs)
        self.infos = np.full(shape if copy_info_dict else (0, n_envs), None, object)
        self.ep_start, self.ep_length = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
        self._current_ep_start = np.zeros(n_envs, np.int64)

    def add(self, obs: Any, next_obs: Any, action: Any, reward: Any, done: Any, infos: Any) -> None:
        """One step of N environments; nothing that is handed in is kept or changed."""
        if self.copy_info_dict:
            self.infos[self.pos] = infos
        super(StockHerReplayBuffer, self).add(obs, next_obs, action, reward, done, infos)

    def store(self, obs: Any, next_obs: Any, *step: Any) -> None:
        """One step as arrays; an episode counts as soon as it has ended, and until it is cut."""
        pos = self.pos
        for n in np.flatnonzero(self.ep_length[pos]):
            end = self.ep_start[pos, n] + self.ep_length[pos, n]
            self.ep_length[np.arange(pos, end) % self.buffer_size, n] = 0
        self.ep_start[pos] = self._current_ep_start
        super().store(obs, next_obs, *step)  # type: ignore[misc]
        for n in np.flatnonzero(self.dones[pos]):
            self._compute_episode_length(int(n))

    def sample(self, batch_size: int, env: Any = None) -> Any:
        """Transitions drawn with SB3's random numbers, four in five with other goals."""
        if not self.ep_length.any():
            raise ConfigError(
                "Hindsight draws from episodes that have ended, and none has yet: raise "
                "learning_starts above the steps of an episode of each environment."
            )
        return super().sample(batch_size, env)

    def reset(self) -> None:
        """Hold no transition."""
        super().reset()
        for name in self._bounds:
            getattr(self, name)[...] = 0

    def end_episodes(self) -> None:
        """Let what is being played count as ended by a limit."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # SB3 asks whether that is meant
            self.truncate_last_trajectory()

    def state(self) -> dict[str, Any]:
        """All that is held; refused where that is also what environments told beside."""
        if self.copy_info_dict:
            raise ConfigError("A replay with copy_info_dict=True is not saved: leave that out.")
        state: dict[str, Any] = super().state()  # type: ignore[misc]
        return state

    def load(self, state: Any) -> None:
        """Continue from `state()`.

        Raises:
            DataError: an episode of it reaches beyond what is held.
        """
        super().load(state)  # type: ignore[misc]
        size, held = self.buffer_size, min(self.count, self.buffer_size)  # type: ignore[attr-defined]
        place, n = np.nonzero(self.ep_length)
        start, length = self.ep_start[place, n], self.ep_length[place, n]
        inside = (start >= 0) & (start < size) & (length > 0) & (length <= size)
        inside &= (place - start) % size < length
        inside &= (place < held) & ((held == size) | (start + length <= held))
        going_on = self._current_ep_start
        if not inside.all() or not ((going_on >= 0) & (going_on < size)).all():
            raise DataError("a replay's episode reaches beyond what is held of it.")

    def parts(self) -> dict[str, int]:
        """Bytes by name, with the episodes' bounds."""
        parts: dict[str, int] = super().parts()  # type: ignore[misc]
        parts["replay/scalars"] -= sum(int(getattr(self, name).nbytes) for name in self._bounds)
        held = self.ep_start.nbytes + self.ep_length.nbytes + self.infos.nbytes
        return parts | {"replay/episodes": int(held)}


def chosen_strategy(strategy: GoalSelectionStrategy | str) -> GoalSelectionStrategy:
    """SB3's way to choose goals, by name."""
    if isinstance(strategy, GoalSelectionStrategy):
        return strategy
    if strategy.lower() not in KEY_TO_GOAL_STRATEGY:
        raise ConfigError(
            f"goal_selection_strategy is '{strategy}'; choose {', '.join(KEY_TO_GOAL_STRATEGY)}."
        )
    chosen: GoalSelectionStrategy = KEY_TO_GOAL_STRATEGY[strategy.lower()]
    return chosen
