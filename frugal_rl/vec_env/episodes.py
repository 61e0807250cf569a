"""`vec=episodes`: whole trajectories, for learners that need an episode from start to end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from gymnasium import spaces

from frugal_rl.errors import ConfigError
from frugal_rl.observation.history import History
from frugal_rl.ranges import at_least
from frugal_rl.vec_env.backend import Backend, EnvMaker, Processes
from frugal_rl.vec_env.batch import Batch
from frugal_rl.vec_env.interface import EndedEpisodes, Rows, Step, VectorEnv
from frugal_rl.vec_env.trajectory_items import Layout, item_layout

if TYPE_CHECKING:
    from frugal_rl.memory.profile import MemoryProfile
    from frugal_rl.observation.encoding import Encoding

Arrays = dict[str, np.ndarray]
Act = Callable[[Rows], Mapping[str, np.ndarray]]
"""Policy form of N observations to `action` [N, ...] and further items of the learner's own."""
Value = Callable[[Rows], np.ndarray]
"""Policy form of M observations to their values [M]."""


@dataclass
class Collected:
    """What `collect` says of the trajectories that it wrote.

    lengths    [N] int64     steps of each
    bootstrap  [N] float32   value of the last observation where a limit ended it, else 0
    ended      statistics of each episode that came to its end
    """

    lengths: np.ndarray
    bootstrap: np.ndarray
    ended: list[EndedEpisodes]


@dataclass(frozen=True)
class Episodes(Backend):
    """Environments run by another backend, collected episode by episode."""

    native: ClassVar[bool] = False
    whole_episodes: ClassVar[bool] = True
    honours: ClassVar[frozenset[str]] = frozenset({"trajectories"})
    inner: Backend = field(default_factory=Batch)
    """Who runs the environments."""
    chunk_size: Annotated[int, at_least(1)] = 256
    """Steps copied at once where trajectories are streamed."""
    max_buffer_size: Annotated[int, at_least(0)] = 0
    """Merged steps that are allocated; 0 takes as many as a collection can bring."""

    def build(
        self, env: EnvMaker, num_envs: int, encoding: Encoding, memory: MemoryProfile
    ) -> VectorEnv:
        """The inner backend's environments, which can also `collect`."""
        make_vec: Any = getattr(env, "make_vec", None)
        if make_vec is None:
            raise ConfigError(f"{type(env).__name__} has no make_vec, which vec=episodes needs.")
        inner: VectorEnv = make_vec(num_envs, encoding, memory, self.inner, "train")
        return EpisodesEnv(inner, getattr(env, "episode_steps", 0))

    def slot_steps(self, n_steps: int, episode_steps: int) -> int:
        """Steps that a trajectory may have: `n_steps`, or a whole episode where that is less."""
        return min(n_steps, episode_steps or n_steps)

    def stepping(self) -> Backend:
        """The inner backend: an evaluation steps its environments."""
        return self.inner

    def processes(self, num_envs: int, libraries_bytes: int) -> Processes:
        """Those of the inner backend."""
        return self.inner.processes(num_envs, libraries_bytes)


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

    def item_layout(self) -> Layout:
        """Shape and dtype of one step of each item."""
        return item_layout(self.action_space, self.encoding)

    def allocate(self, steps: int = 0) -> Arrays:
        """Arrays [N, steps, ...] for `collect`, one per item; a whole episode by default."""
        return {
            name: np.zeros((self.num_envs, steps or self.episode_steps, *shape), dtype)
            for name, (shape, dtype) in self.item_layout().items()
        }

    def collect(self, act: Act, seed: int, into: Arrays, value: Value | None = None) -> Collected:
        """Play one episode in every environment, from its start to its end.

        Environments that are done wait for the others: what they do meanwhile is not kept.

        Args:
            act: the policy; it sees windows in policy form.
            seed: of the N episodes.
            into: arrays of `allocate`, or views of a learner's own memory of that layout; step t
                of environment n is written to [n, t], the rows being those that were acted on.
                Episodes longer than the arrays are cut there.
            value: values the last observation of episodes that a limit ended, or that were cut.
        """
        n, steps = self.num_envs, into["reward"].shape[1]
        told = Collected(np.zeros(n, np.int64), np.zeros(n, np.float32), [])
        shown = self.history.reset(self.inner.reset(seed))
        newest = self._newest(shown)
        running = np.ones(n, np.bool_)
        for t in range(steps):
            index = np.flatnonzero(running)
            acted = act(shown)
            _keep(into, {**newest, **acted}, index, t)
            step = self.inner.step(bounded(np.asarray(acted["action"]), self.action_space))
            _keep(into, {"reward": step.reward}, index, t)
            into["terminated"][index, t] = (step.done & ~step.truncated)[index]
            told.lengths[index] += 1
            _tell(told.ended, step.ended, running)
            shown, final = self.history.push(
                step.rows, step.done, step.final_index, step.final_rows
            )
            if final and value is not None:
                late = running[step.final_index]
                told.bootstrap[step.final_index[late]] = value(final)[late]
            running &= ~step.done
            if not running.any():
                break
            newest = step.rows
        if running.any() and value is not None:
            told.bootstrap[running] = value(shown)[running]
        return told

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

    def numbering(self) -> Any:
        """That of the inner environment."""
        return self.inner.numbering()

    def number_again(self, kept: Any) -> None:
        """Number the inner environment's rows."""
        self.inner.number_again(kept)

    def close(self) -> None:
        """Close the inner environment."""
        self.inner.close()


def bounded(actions: np.ndarray, space: spaces.Space[Any]) -> np.ndarray:
    """Sampled actions as the environment takes them: continuous ones clipped to their box."""
    return np.clip(actions, space.low, space.high) if isinstance(space, spaces.Box) else actions


def _keep(into: Arrays, items: Mapping[str, np.ndarray], index: np.ndarray, t: int) -> None:
    """Step t of the environments `index`, all items that `into` has room for."""
    for name, values in items.items():
        into[name][index, t] = values[index]


def _tell(ended: list[EndedEpisodes], now: EndedEpisodes | None, running: np.ndarray) -> None:
    """Keep the statistics of those episodes that were still being collected."""
    if now is None:
        return
    kept = running[now.index]
    if kept.any():
        stats = {name: values[kept].copy() for name, values in now.stats.items()}
        ended.append(EndedEpisodes(now.index[kept], stats))
