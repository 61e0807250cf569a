"""Where experience comes from: a rollout filled step by step, no Python per environment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch

from frugal_rl.doing import doing
from frugal_rl.learn.bootstrap import Bootstraps
from frugal_rl.learn.tally import EpisodeTally, EventLog
from frugal_rl.observation.borders import check_going_on
from frugal_rl.observation.decoder import to_tensors
from frugal_rl.vec_env.episodes import bounded

if TYPE_CHECKING:
    from frugal_rl.learn.policy import Actor
    from frugal_rl.learn.ranks import Ranks
    from frugal_rl.learn.rewards import RewardScale
    from frugal_rl.learn.update import Rollout
    from frugal_rl.observation.history import History
    from frugal_rl.store.rollout import RolloutBuffer
    from frugal_rl.vec_env.interface import Step, VectorEnv

Rows = dict[str, np.ndarray]
LATER = np.float32(0)
"""The reward is known only after the row has been stored and the environments have stepped."""


def kept_of(vec_env: VectorEnv) -> tuple[Any, Any]:
    """Environments' state and the numbering of static rows; None for what cannot be given.

    A policy must be saved anyway. Without the numbering, a state would lead to other rows.
    """
    try:
        static = vec_env.numbering()
    except NotImplementedError:
        return None, None
    try:
        return vec_env.state(), static
    except NotImplementedError:
        return None, static


class Collector(Protocol):
    """What an on-policy learner asks of the place that its experience comes from."""

    collected: int
    """Environment steps of the last collection."""

    def collect(self, policy: Actor) -> Rollout:
        """Act with the policy; what happened, with advantages and returns."""

    def agree(self, ranks: Ranks) -> None:
        """Share with the other ranks what all go on with: the reward's scale, a curriculum."""

    def metrics(self) -> dict[str, float]:
        """Statistics since they were last read."""

    def parts(self) -> dict[str, int]:
        """Bytes held, by name."""

    def state(self) -> dict[str, Any]:
        """All that an exact resume needs, between two collections."""

    def load(self, state: dict[str, Any]) -> None:
        """Continue exactly from `state()`."""


class StepCollector:
    """Writes T steps of N environments into one rollout, episodes running on from the last."""

    obs: Rows
    """The newest rows, from `reset` on."""
    starts: np.ndarray
    """[N] bool: whether they begin an episode."""

    def __init__(
        self,
        vec_env: VectorEnv,
        rollout: RolloutBuffer,
        history: History,
        scale: RewardScale | None,
        batched_bootstrap: bool,
    ) -> None:
        self.vec_env, self.rollout, self.history = vec_env, rollout, history
        self.scale = scale
        self.bootstraps = Bootstraps(vec_env.num_envs if batched_bootstrap else 1)
        self.collected = rollout.buffer_size * vec_env.num_envs
        self.tally, self.events = EpisodeTally(), EventLog()

    def reset(self, seed: int) -> None:
        """Start all environments."""
        self.obs = self.history.reset(self.vec_env.reset(seed))
        self.starts = np.ones(self.vec_env.num_envs, np.bool_)

    @torch.no_grad()
    def collect(self, policy: Actor) -> RolloutBuffer:
        """T steps of N environments, then advantages and returns."""
        rollout, device = self.rollout, policy.device
        policy.set_training_mode(False)
        rollout.reset()
        self.events.begin(policy.network.events)
        with doing("collecting", rollout.buffer_size, "steps of each environment") as work:
            for t in range(rollout.buffer_size):
                torch.set_num_threads(1)  # kernels of a step set OpenMP's number for torch, too
                acted = policy(to_tensors(self.obs, device))
                actions, values, log_probs = (x.numpy(force=True) for x in acted)
                rollout.add(self.obs, actions, np.asarray(LATER), self.starts, values, log_probs)
                step = self.vec_env.step(bounded(actions, self.vec_env.action_space))
                rollout.rewards[t] = self.rewarded(step, t)
                if self.bootstraps.full:
                    self.bootstraps.pay(rollout, policy)
                self.tally.add(step.ended)
                self.events.add(step)
                work.done += 1
        self.bootstraps.pay(rollout, policy)
        rollout.labels = self.events.labels(policy.network)
        last = policy.predict_values(to_tensors(self.obs, device))
        rollout.compute_returns_and_advantage(last, self.starts)
        return rollout

    def rewarded(self, step: Step, t: int) -> np.ndarray:
        """Rewards [N]; what a limit cut off is added later."""
        obs, final = self.history.push(step.rows, step.done, step.final_index, step.final_rows)
        self.obs = obs
        self.starts = step.done.copy()
        if final:
            self.bootstraps.add(t, step.final_index, final)
        return self.scale(step.reward, step.done) if self.scale else step.reward.copy()

    def agree(self, ranks: Ranks) -> None:
        """One reward scale for all, and whatever the environments share."""
        if self.scale is not None:
            self.scale.agree(ranks)
        agree = getattr(self.vec_env, "agree", None)
        if agree is not None:
            agree(ranks)

    def metrics(self) -> dict[str, float]:
        """Means over the episodes that ended since they were last read."""
        return self.tally.read()

    def parts(self) -> dict[str, int]:
        """Bytes of rollout and windows."""
        return {**self.rollout.parts(), "history": self.history.nbytes}

    def state(self) -> dict[str, Any]:
        """Environments, history and scale, between two rollouts.

        Environments that cannot give their state are saved as None: a policy must be saved anyway.
        """
        environments, static = kept_of(self.vec_env)
        return {
            "obs": {name: row.copy() for name, row in self.obs.items()},
            "vec_env": environments,
            "static": [static],  # its arrays are as long as what is in them
            "history": self.history.state(),
            "starts": self.starts.copy(),
            "scale": self.scale.state() if self.scale else None,
            "common": self.vec_env.common() if hasattr(self.vec_env, "common") else None,
        }

    def load(self, state: dict[str, Any]) -> None:
        """Continue exactly from `state()`; without environments in it, in new episodes."""
        if state["vec_env"] is None:
            if state.get("common") is not None and hasattr(self.vec_env, "go_on"):
                self.vec_env.go_on(state["common"])
        else:
            self.vec_env.number_again(state.get("static", [None])[0])
            self.vec_env.load(state["vec_env"])
            self.history.load(state["history"])
            check_going_on(self.vec_env, self.history, state["obs"])
            self.obs = dict(state["obs"])
            self.starts = np.array(state["starts"], np.bool_)
        if self.scale and state.get("scale"):
            self.scale.load(state["scale"])
