"""Steps of N environments into a replay, no Python per environment."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from gymnasium import spaces

from frugal_rl.learn.collect import kept_of
from frugal_rl.learn.tally import EpisodeTally
from frugal_rl.observation.borders import check_going_on, check_rows, followed
from frugal_rl.observation.decoder import to_tensors
from frugal_rl.observation.fields import EPISODE

if TYPE_CHECKING:
    from frugal_rl.learn.stored_rows import Source
    from frugal_rl.observation.history import History
    from frugal_rl.store.replay import DictReplayBuffer
    from frugal_rl.vec_env.interface import Step, VectorEnv

Rows = dict[str, np.ndarray]
Choose = Callable[[Rows, np.ndarray], np.ndarray]
"""Rows and random actions [N, ...] in the algorithm's units -> those that are taken."""


class TransitionCollector:
    """Plays one step at a time; windows and time limits as in an on-policy run."""

    obs: Rows
    """The newest rows, from `reset` on."""
    seed: int
    """Of the environments and of random actions."""
    rng: np.random.Generator
    """Draws random actions."""

    def __init__(
        self, vec_env: VectorEnv, replay: DictReplayBuffer, history: History, source: Source
    ) -> None:
        self.vec_env, self.replay, self.history, self.source = vec_env, replay, history, source
        self.mask_name = vec_env.encoding.spec.action_mask
        windows = vec_env.encoding.windowed
        self.stacked = {r.name for r in windows if r.window != EPISODE}
        self.tally = EpisodeTally()

    def reset(self, seed: int) -> None:
        """Start all environments."""
        self.seed, self.rng = seed, np.random.default_rng(seed)
        self.obs = _kept(self.history.reset(self.vec_env.reset(seed)))

    def step(self, choose: Choose) -> None:
        """One step of all environments."""
        chosen = choose(self.obs, self.random_actions())
        step = self.vec_env.step(self._in_units(chosen))
        now, following = self._shown(step)
        limits = step.truncated
        self.replay.store(self.obs, following, chosen, step.reward, step.done, limits)
        self.obs = now
        self.tally.add(step.ended)

    def _shown(self, step: Step) -> tuple[Rows, Rows]:
        """What is observed next, and what the step led to: an episode's end where a limit cut it.

        What an episode that ended by itself led to is never looked at, as its value is nothing:
        the last observation, shifted, takes its place, since that costs the replay least. Where
        it is looked at, environments tell all ends.
        """
        shown, final = self.history.push(step.rows, step.done, step.final_index, step.final_rows)
        now = _kept(shown)
        over = np.flatnonzero(step.done)
        if not len(over):
            return now, now
        following = _kept(now)
        for name, rows in following.items():
            rows[over] = self.obs[name][over]
            if name in self.stacked:
                rows[over, :-1] = self.obs[name][over, 1:]
            if name in final:
                rows[step.final_index] = final[name]
        return now, following

    def random_actions(self) -> np.ndarray:
        """Uniform among those that are allowed, [N, ...]; boxes scaled to [-1, 1]."""
        space, count = self.vec_env.action_space, self.vec_env.num_envs
        if isinstance(space, spaces.Box):
            return self.rng.uniform(-1, 1, (count, *space.shape)).astype(np.float32)
        assert isinstance(space, spaces.Discrete)
        scores = self.rng.random((count, int(space.n)))
        if self.mask_name:
            fields = self.source.decoder(to_tensors(self.obs, torch.device("cpu")))
            scores[~fields[self.mask_name].bool().numpy()] = -1
        return np.asarray(scores.argmax(axis=1) + int(space.start))

    def _in_units(self, chosen: np.ndarray) -> np.ndarray:
        """Actions as the environments take them."""
        space = self.vec_env.action_space
        if not isinstance(space, spaces.Box):
            return chosen
        units = space.low + 0.5 * (chosen + 1.0) * (space.high - space.low)
        return np.asarray(units.astype(space.dtype))

    def metrics(self) -> dict[str, float]:
        """Means over the episodes that ended since they were last read."""
        return self.tally.read()

    def state(self) -> dict[str, Any]:
        """Environments, windows, replay and random numbers."""
        environments, static = kept_of(self.vec_env)
        return {
            "obs": _kept(self.obs),
            "vec_env": environments,
            "static": [static],
            "history": self.history.state(),
            "random": self.rng.bit_generator.state,
            "replay": [self.replay.state()],  # its arrays are as long as what is in them
        }

    def load(self, state: dict[str, Any]) -> None:
        """Continue exactly from `state()`; without environments in it, in new episodes."""
        self.vec_env.number_again(state.get("static", [None])[0])
        if state["vec_env"] is None:
            self.reset(self.seed)
        else:
            self.vec_env.load(state["vec_env"])
            self.history.load(state["history"])
            check_going_on(self.vec_env, self.history, state["obs"])
            self.obs = dict(state["obs"])
        self.rng.bit_generator.state = state["random"]
        self.replay.load(state["replay"][0])
        encoding, tables = self.vec_env.encoding, self.vec_env.tables
        for rows in self.replay.held(followed(encoding)):
            check_rows(encoding, tables, rows, self.history.episode_steps)
        if state["vec_env"] is None:
            self.replay.end_episodes()


def _kept(rows: Rows) -> Rows:
    """Copies: what an environment shows is valid until its next step only."""
    return {name: np.array(values) for name, values in rows.items()}
