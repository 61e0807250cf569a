"""`vec=episodes`: whole trajectories, for learners that need an episode from start to end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from frugal_rl.errors import ConfigError
from frugal_rl.memory.profile import MemoryProfile
from frugal_rl.observation.encoding import Encoding
from frugal_rl.observation.history import History
from frugal_rl.vec_env.backend import Backend, EnvMaker
from frugal_rl.vec_env.batch import Batch
from frugal_rl.vec_env.interface import Rows, Step, VectorEnv

Act = Callable[[Rows], np.ndarray]
"""Policy form of N observations to N actions."""
Arrays = dict[str, np.ndarray]
ITEMS = ("action", "reward", "terminated")
"""Items of a trajectory before its rows, in order; the reward's place is the one that
`rollout.trajectories` expects."""


@dataclass(frozen=True)
class Episodes(Backend):
    """Environments run by another backend, collected episode by episode."""

    native: ClassVar[bool] = False
    inner: Backend = field(default_factory=Batch)
    """Who runs the environments."""

    def build(
        self, env: EnvMaker, num_envs: int, encoding: Encoding, memory: MemoryProfile
    ) -> VectorEnv:
        """The inner backend's environments, which can also `collect`."""
        make_vec: Any = getattr(env, "make_vec", None)
        if make_vec is None:
            raise ConfigError(f"{type(env).__name__} has no make_vec, which vec=episodes needs.")
        inner: VectorEnv = make_vec(num_envs, encoding, memory, self.inner, "train")
        return EpisodesEnv(inner, getattr(env, "episode_steps", 0))


class EpisodesEnv(VectorEnv):
    """A vector environment that delivers whole trajectories as well as steps."""

    def __init__(self, inner: VectorEnv, episode_steps: int) -> None:
        self.inner = inner
        self.num_envs = inner.num_envs
        self.encoding = inner.encoding
        self.tables = inner.tables
        self.action_space = inner.action_space
        self.episode_steps = episode_steps
        self.history = History(inner.encoding, inner.num_envs, episode_steps)

    def reset(self, seed: int) -> Rows:
        """Start N new episodes."""
        return self.inner.reset(seed)

    def step(self, actions: np.ndarray) -> Step:
        """One action each."""
        return self.inner.step(actions)

    def item_layout(self) -> dict[str, tuple[tuple[int, ...], np.dtype[Any]]]:
        """Shape and dtype of one step of each item: action, reward, terminated, then rows."""
        action = np.asarray(self.action_space.sample())
        rows = {r.name: (r.shape, r.dtype) for r in self.encoding.rows}
        return {
            "action": (action.shape, action.dtype),
            "reward": ((), np.dtype(np.float32)),
            "terminated": ((), np.dtype(np.bool_)),
            **rows,
        }

    def allocate(self) -> Arrays:
        """Arrays [N, episode_steps, ...] for `collect`, one per item."""
        return {
            name: np.zeros((self.num_envs, self.episode_steps, *shape), dtype)
            for name, (shape, dtype) in self.item_layout().items()
        }

    def collect(self, act: Act, seed: int, into: Arrays) -> np.ndarray:
        """Play one episode in every environment, from its start to its end.

        Args:
            act: the policy; it sees windows in policy form.
            seed: of the N episodes.
            into: arrays of `allocate`, or views of a learner's own memory of that layout; step t
                of environment n is written to [n, t], the rows being those that were acted on.

        Returns:
            The length [N] of each trajectory. Environments that are done wait for the others:
            what they do meanwhile is not kept.
        """
        shown = self.history.reset(self.inner.reset(seed))
        lengths = np.zeros(self.num_envs, np.int64)
        running = np.ones(self.num_envs, np.bool_)
        newest = self._newest(shown)
        for t in range(self.episode_steps):
            index = np.flatnonzero(running)
            for name, row in newest.items():
                into[name][index, t] = row[index]
            actions = np.asarray(act(shown))
            into["action"][index, t] = actions[index]
            step = self.inner.step(actions)
            into["reward"][index, t] = step.reward[index]
            into["terminated"][index, t] = (step.done & ~step.truncated)[index]
            lengths[index] += 1
            running &= ~step.done
            if not running.any():
                break
            newest = step.rows
            shown, _ = self.history.push(step.rows, step.done)
        return lengths

    def _newest(self, shown: Rows) -> Rows:
        """The newest row of each window of the first observation."""
        return {
            r.name: shown[r.name]
            if r.window == 1
            else (shown[r.name][:, 0] if r.window < 0 else shown[r.name][:, -1])
            for r in self.encoding.rows
        }

    def parts(self) -> dict[str, int]:
        """The inner environment's bytes and the windows kept for the policy."""
        return {**self.inner.parts(), "history": self.history.nbytes}

    def state(self) -> dict[str, Any]:
        """The inner environment's state."""
        return self.inner.state()

    def load(self, state: dict[str, Any]) -> Rows:
        """Continue from `state`."""
        return self.inner.load(state)

    def close(self) -> None:
        """Close the inner environment."""
        self.inner.close()
