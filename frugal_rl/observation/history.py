"""The one owner of past rows: windows per environment, none reaching past an episode's start."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from frugal_rl.errors import DataError
from frugal_rl.observation.fields import EPISODE, Padding

if TYPE_CHECKING:
    from frugal_rl.observation.encoding import Encoding, RowSpec

Rows = dict[str, np.ndarray]


class History:
    """Keeps the last rows of N environments and shows them as `encoding.policy_space()` says.

    A window of k rows is [N, k, *shape], oldest first, the newest last. An `EPISODE` window is
    [N, episode_steps + 1, *shape]: row i is the episode's i-th observation, zeros after the newest
    (an episode of S steps has S + 1 observations). `age` [N, 1] int32 counts the steps since the
    episode began. Returned arrays are views, valid until the next push. Without windowed rows
    nothing is kept, and rows pass through unchanged.
    """

    def __init__(self, encoding: Encoding, num_envs: int, episode_steps: int = 0) -> None:
        self.num_envs, self.episode_steps = num_envs, episode_steps
        self.age = np.zeros((num_envs, 1), np.int32)
        self._windows = {
            r.name: _EpisodeWindow(r, num_envs, episode_steps)
            if r.window == EPISODE
            else _SlidingWindow(r, num_envs)
            for r in encoding.windowed
        }

    def reset(self, rows: Mapping[str, np.ndarray]) -> Rows:
        """All N episodes begin with `rows` [N, *shape]; returns the policy form."""
        obs, _ = self.push(rows, np.ones(self.num_envs, np.bool_))
        return obs

    def push(
        self,
        rows: Mapping[str, np.ndarray],
        done: np.ndarray,
        final_index: np.ndarray | None = None,
        final_rows: Mapping[str, np.ndarray] | None = None,
    ) -> tuple[Rows, Rows]:
        """Take in one step.

        Args:
            rows: after the step, of the new episode where `done`; [N, *shape].
            done: [N] bool, an episode ended and a new one has begun.
            final_index: [M] environments whose ended episode's last observation is wanted.
            final_rows: its rows, [M, *shape].

        Returns:
            The policy form of `rows`, and that of `final_rows` (empty without them).
        """
        final: Rows = {}
        if final_index is not None and final_rows is not None and len(final_index):
            final = self._final(final_index, final_rows)
        if not self._windows:
            return dict(rows), final
        np.add(self.age, 1, out=self.age)
        self.age[done] = 0
        obs = dict(rows)
        for name, window in self._windows.items():
            obs[name] = window.push(rows[name], done, self.age[:, 0])
        obs["age"] = self.age
        return obs, final

    def _final(self, index: np.ndarray, rows: Mapping[str, np.ndarray]) -> Rows:
        final = dict(rows)
        if self._windows:
            age = self.age[index] + 1
            for name, window in self._windows.items():
                final[name] = window.extended(index, rows[name], age[:, 0])
            final["age"] = age
        return final

    @property
    def nbytes(self) -> int:
        """Bytes kept."""
        kept = sum(int(w.values.nbytes) for w in self._windows.values())
        return kept + int(self.age.nbytes) if self._windows else 0

    def state(self) -> dict[str, Any]:
        """Ages and windows, for an exact resume."""
        windows = {name: w.current().copy() for name, w in self._windows.items()}
        return {"age": self.age.copy(), "windows": windows}

    def load(self, state: Mapping[str, Any]) -> None:
        """Continue from `state()`."""
        self.age[:] = state["age"]
        for name, window in self._windows.items():
            window.load(state["windows"][name])


class _SlidingWindow:
    """The last k rows, in an array of 2k: shown as a slice that moves, copied every k steps."""

    def __init__(self, row: RowSpec, num_envs: int) -> None:
        self.k = row.window
        self.padding = row.padding
        self.values = np.zeros((num_envs, 2 * self.k, *row.shape), row.dtype)
        self.end = self.k

    def push(self, rows: np.ndarray, done: np.ndarray, age: np.ndarray) -> np.ndarray:
        k = self.k
        if self.end == 2 * k:
            self.values[:, : k - 1] = self.values[:, k + 1 :]
            self.end = k - 1
        self.values[:, self.end] = rows
        self.end += 1
        if done.any():
            repeat = self.padding is Padding.repeat
            self.values[done, self.end - k : self.end - 1] = rows[done][:, None] if repeat else 0
        return self.current()

    def current(self) -> np.ndarray:
        return self.values[:, self.end - self.k : self.end]

    def extended(self, index: np.ndarray, rows: np.ndarray, age: np.ndarray) -> np.ndarray:
        """Windows of some environments as they would be after one more row."""
        return np.concatenate([self.current()[index, 1:], rows[:, None]], axis=1)

    def load(self, windows: np.ndarray) -> None:
        self.end = self.k
        self.values[:, : self.k] = windows


class _EpisodeWindow:
    """All rows of the running episode, the oldest first, zeros behind the newest."""

    def __init__(self, row: RowSpec, num_envs: int, episode_steps: int) -> None:
        self.values = np.zeros((num_envs, episode_steps + 1, *row.shape), row.dtype)
        self.every = np.arange(num_envs)

    def push(self, rows: np.ndarray, done: np.ndarray, age: np.ndarray) -> np.ndarray:
        self.values[done] = 0
        try:
            self.values[self.every, age] = rows
        except IndexError as error:
            raise DataError(
                f"An episode goes on after {age.max() - 1} steps, the most of this environment's."
            ) from error
        return self.values

    def current(self) -> np.ndarray:
        return self.values

    def extended(self, index: np.ndarray, rows: np.ndarray, age: np.ndarray) -> np.ndarray:
        """Windows of some environments as they would be after one more row."""
        windows: np.ndarray = self.values[index]
        windows[np.arange(len(index)), age] = rows
        return windows

    def load(self, windows: np.ndarray) -> None:
        self.values[:] = windows
