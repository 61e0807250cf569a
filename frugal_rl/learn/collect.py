"""Fills a rollout from a vector environment: no Python per environment, no infos."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from frugal_rl.errors import ConfigError
from frugal_rl.learn.networks import Network
from frugal_rl.learn.policy import FrugalPolicy
from frugal_rl.learn.rewards import RewardScale
from frugal_rl.observation.history import History
from frugal_rl.store.rollout import RolloutBuffer
from frugal_rl.vec_env.episodes import bounded
from frugal_rl.vec_env.interface import EndedEpisodes, Step, VectorEnv

Rows = dict[str, np.ndarray]
LATER = np.float32(0)
"""The reward is known only after the row has been stored and the environments have stepped."""


def to_tensors(rows: Mapping[str, np.ndarray], device: torch.device) -> dict[str, Tensor]:
    """Rows as tensors; on the CPU they share memory with the arrays."""
    if device.type == "cpu":
        return {name: torch.from_numpy(np.asarray(row)) for name, row in rows.items()}
    return {name: torch.from_numpy(np.asarray(row)).to(device) for name, row in rows.items()}


class EpisodeTally:
    """Statistics of the episodes that ended since it was last read."""

    def __init__(self) -> None:
        self._stats: dict[str, list[np.ndarray]] = {}
        self.count = 0

    def add(self, ended: EndedEpisodes | None) -> None:
        """Take in the episodes that ended in one step."""
        if ended is None:
            return
        self.count += len(ended.index)
        for name, values in ended.stats.items():
            self._stats.setdefault(name, []).append(np.array(values))

    def read(self) -> dict[str, float]:
        """Means over the ended episodes as `episode/<name>`, and their number; then begin anew."""
        means = {f"episode/{n}": float(np.concatenate(v).mean()) for n, v in self._stats.items()}
        means["episode/count"] = float(self.count)
        self._stats, self.count = {}, 0
        return means


class EventLog:
    """What happened in each step of a rollout, where the network asks for it."""

    def __init__(self) -> None:
        self.names: tuple[str, ...] = ()
        self._events: dict[str, list[np.ndarray]] = {}
        self._done: list[np.ndarray] = []

    def begin(self, names: tuple[str, ...]) -> None:
        """Forget the last rollout; nothing is kept without `names`."""
        self.names, self._events, self._done = names, {name: [] for name in names}, []

    def add(self, step: Step) -> None:
        """Keep the events of one step."""
        if not self.names:
            return
        self._done.append(step.done.copy())
        for name in self.names:
            if name not in step.events:
                raise ConfigError(
                    f"agent.auxiliary needs the event '{name}', which these environments do not "
                    "report; set its weights to 0, or use vec=batch with memory.level_data=shared."
                )
            self._events[name].append(step.events[name].copy())

    def labels(self, network: Network) -> dict[str, np.ndarray]:
        """The network's labels [T, N] of the steps that were added; then all else is forgotten."""
        if not self.names:
            return {}
        events = {name: np.stack(kept) for name, kept in self._events.items()}
        made = network.labels(events, np.stack(self._done))
        self.begin(self.names)
        return made


class Collector:
    """Acts with a policy and writes what happens into a rollout."""

    def __init__(
        self,
        vec_env: VectorEnv,
        history: History,
        gamma: float,
        scale: RewardScale | None,
        batched_bootstrap: bool,
    ) -> None:
        self.vec_env = vec_env
        self.history = history
        self.gamma = gamma
        self.scale = scale
        self.batched_bootstrap = batched_bootstrap
        self.tally = EpisodeTally()
        self.events = EventLog()
        self.obs: Rows = {}
        self.starts = np.ones(vec_env.num_envs, np.bool_)

    def reset(self, seed: int) -> None:
        """Start all environments."""
        self.obs = self.history.reset(self.vec_env.reset(seed))
        self.starts = np.ones(self.vec_env.num_envs, np.bool_)

    @torch.no_grad()
    def fill(self, rollout: RolloutBuffer, policy: FrugalPolicy) -> None:
        """T steps of N environments, then advantages and returns."""
        policy.set_training_mode(False)
        rollout.reset()
        self.events.begin(policy.network.events)
        device = policy.device
        for t in range(rollout.buffer_size):
            acted = policy(to_tensors(self.obs, device))
            actions, values, log_probs = (x.numpy(force=True) for x in acted)
            rollout.add(self.obs, actions, np.asarray(LATER), self.starts, values, log_probs)
            step = self.vec_env.step(bounded(actions, self.vec_env.action_space))
            rollout.rewards[t] = self.rewarded(step, policy)
            self.tally.add(step.ended)
            self.events.add(step)
        rollout.labels = self.events.labels(policy.network)
        last = policy.predict_values(to_tensors(self.obs, device))
        rollout.compute_returns_and_advantage(last, self.starts)

    def rewarded(self, step: Step, policy: FrugalPolicy) -> np.ndarray:
        """Rewards [N] with the value of the last observation where a limit ended an episode."""
        obs, final = self.history.push(step.rows, step.done, step.final_index, step.final_rows)
        self.obs = obs
        self.starts = step.done.copy()
        reward = self.scale(step.reward, step.done) if self.scale else step.reward.copy()
        if final:
            reward[step.final_index] += self.gamma * self._values(final, policy)
        return reward

    def _values(self, final: Rows, policy: FrugalPolicy) -> np.ndarray:
        """Values [M] of final observations; singly, as SB3 does, their last bits may differ."""
        device = policy.device
        if self.batched_bootstrap:
            values = policy.predict_values(to_tensors(final, device)).flatten()
        else:
            count = len(next(iter(final.values())))
            one = [{k: v[i : i + 1] for k, v in final.items()} for i in range(count)]
            values = torch.cat([policy.predict_values(to_tensors(o, device))[0] for o in one])
        return values.numpy(force=True)

    def state(self) -> dict[str, Any]:
        """Environments, history and scale, between two rollouts.

        Environments that cannot give their state are saved as None: a policy must be saved anyway.
        """
        try:
            environments: Any = self.vec_env.state()
        except NotImplementedError:
            environments = None
        return {
            "obs": {name: row.copy() for name, row in self.obs.items()},
            "vec_env": environments,
            "history": self.history.state(),
            "starts": self.starts.copy(),
            "scale": self.scale.state() if self.scale else None,
        }

    def load(self, state: dict[str, Any]) -> None:
        """Continue exactly from `state()`; without environments in it, in new episodes."""
        if state["vec_env"] is not None:
            self.vec_env.load(state["vec_env"])
            self.history.load(state["history"])
            self.obs = dict(state["obs"])
            self.starts = np.array(state["starts"], np.bool_)
        if self.scale and state["scale"]:
            self.scale.load(state["scale"])
