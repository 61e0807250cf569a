"""PPO on whole trajectories: `vec=episodes`, merged by `memory.trajectories`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from frugal_rl.learn.on_policy import OnPolicyLearner
from frugal_rl.learn.tally import EpisodeTally
from frugal_rl.memory.choices import Trajectories
from frugal_rl.observation.decoder import to_tensors, torch_dtype
from frugal_rl.store.merged import MergedRollout
from frugal_rl.store.trajectories import Item, Trajectory, TrajectoryBuffer, as_blocks, trimmed
from frugal_rl.vec_env.episodes import Episodes, EpisodesEnv
from frugal_rl.vec_env.trajectory_items import learner_layout

if TYPE_CHECKING:
    from frugal_rl.learn.policy import Actor
    from frugal_rl.learn.ranks import Ranks
    from frugal_rl.run.config import RunConfig


class Apart:
    """Arrays of N workers, written as if they were one [N, steps, ...]."""

    def __init__(self, arrays: Sequence[np.ndarray]) -> None:
        self.arrays = arrays
        self.shape = (len(arrays), *arrays[0].shape)

    def __setitem__(self, at: tuple[np.ndarray, int], values: np.ndarray) -> None:
        workers, t = at
        for place, n in enumerate(workers):
            self.arrays[n][t] = values[place]


class EpisodeCollector:
    """Each collection plays one episode in every environment, from its start.

    Trajectories are written into slots of the merged tensors, at most `steps` long each; longer
    episodes are cut there and valued.
    """

    def __init__(
        self,
        vec_env: EpisodesEnv,
        buffer: TrajectoryBuffer,
        steps: int,
        seed: int,
        gamma: float,
        gae_lambda: float,
    ) -> None:
        self.vec_env, self.buffer, self.steps, self.seed = vec_env, buffer, steps, seed
        self.gamma, self.gae_lambda = gamma, gae_lambda
        self.layout = learner_layout(vec_env.action_space, vec_env.encoding)
        self.tally = EpisodeTally()
        self.collections, self.collected, self.mean_reward = 0, 0, 0.0

    @torch.no_grad()
    def collect(self, policy: Actor) -> MergedRollout:
        """Play, merge, and value."""
        policy.set_training_mode(False)
        vec_env = self.vec_env
        items = [Item(shape, torch_dtype(dtype)) for shape, dtype in self.layout.values()]
        slots = self.buffer.slots(vec_env.num_envs, self.steps, items)
        seed = int(np.random.default_rng([self.seed, self.collections]).integers(2**31))
        told = vec_env.collect(
            partial(act, policy), seed, self._arrays(slots), partial(value, policy)
        )
        self.collections += 1
        for ended in told.ended:
            self.tally.add(ended)
        lengths = told.lengths.tolist()
        self.collected = sum(lengths)
        _, self.mean_reward = self.buffer.update(trimmed(slots, lengths))
        merged = dict(zip(self.layout, self.buffer, strict=True))
        encoding, most, bootstrap = vec_env.encoding, vec_env.episode_steps, told.bootstrap
        gamma, gae_lambda = self.gamma, self.gae_lambda
        return MergedRollout(merged, lengths, bootstrap, encoding, most, gamma, gae_lambda)

    def _arrays(self, slots: list[Trajectory]) -> dict[str, Any]:
        """The slots as [N, steps, ...]; with `list` each worker has tensors of its own."""
        if self.buffer.strategy is Trajectories.list:
            columns: Iterable[Any] = (
                Apart([t.numpy() for t in c]) for c in zip(*slots, strict=True)
            )
        else:
            columns = (block.numpy() for block in as_blocks(slots))
        return dict(zip(self.layout, columns, strict=True))

    def agree(self, ranks: Ranks) -> None:
        """Whole episodes are collected by one process only."""

    def metrics(self) -> dict[str, float]:
        """The last collection's mean reward, and means over its episodes."""
        return {"trajectories/mean_reward": self.mean_reward, **self.tally.read()}

    def parts(self) -> dict[str, int]:
        """Bytes of merged trajectories and windows."""
        merged = {
            f"rollout/{name}": t.nbytes
            for name, t in zip(self.layout, self.buffer.held, strict=False)
        }
        return {**merged, "history": self.vec_env.history.nbytes}

    def state(self) -> dict[str, Any]:
        """The number of collections: each begins new episodes."""
        return {"collections": self.collections}

    def load(self, state: dict[str, Any]) -> None:
        """Continue exactly from `state()`."""
        self.collections = int(state["collections"])


def act(policy: Actor, shown: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Sampled actions with their log-probability and the state's value."""
    acted = policy(to_tensors(shown, policy.device))
    actions, values, log_prob = (x.numpy(force=True) for x in acted)
    return {"action": actions, "value": values.reshape(-1), "log_prob": log_prob}


def value(policy: Actor, shown: Mapping[str, np.ndarray]) -> np.ndarray:
    """Values [M]."""
    return policy.predict_values(to_tensors(shown, policy.device)).flatten().numpy(force=True)


class EpisodeLearner(OnPolicyLearner):
    """Learns from whole trajectories of all environments at once."""

    vec_env: EpisodesEnv

    def collector_for(self, run: RunConfig) -> EpisodeCollector:
        """Trajectories of at most `algo.n_steps` steps."""
        config, vec_env = self.config, self.vec_env
        vec = run.vec if isinstance(run.vec, Episodes) else Episodes()
        self.steps = vec.slot_steps(config.n_steps, vec_env.episode_steps)
        size = vec.max_buffer_size or vec_env.num_envs * self.steps
        buffer = TrajectoryBuffer(run.memory.trajectories, self.policy.device, vec.chunk_size, size)
        return EpisodeCollector(
            vec_env, buffer, self.steps, run.seed, config.gamma, config.gae_lambda
        )
