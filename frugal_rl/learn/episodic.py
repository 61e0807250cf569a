"""PPO on whole trajectories: `vec=episodes`, merged by `memory.trajectories`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from frugal_rl.errors import ConfigError
from frugal_rl.learn.collect import EpisodeTally, to_tensors
from frugal_rl.learn.optimizer import FlatAdam
from frugal_rl.learn.schedules import value_at
from frugal_rl.learn.update import Update, update_threads
from frugal_rl.memory.part import Phase
from frugal_rl.memory.profile import Trajectories
from frugal_rl.observation.decoder import torch_dtype
from frugal_rl.run.config import RunConfig
from frugal_rl.store.merged import MergedRollout
from frugal_rl.store.trajectories import Item, Trajectory, TrajectoryBuffer, as_blocks, trimmed
from frugal_rl.vec_env.episodes import Episodes, EpisodesEnv, learner_layout

if TYPE_CHECKING:
    from frugal_rl.learn.ppo import PpoConfig


class Apart:
    """Arrays of N workers, written as if they were one [N, steps, ...]."""

    def __init__(self, arrays: Sequence[np.ndarray]) -> None:
        self.arrays = arrays
        self.shape = (len(arrays), *arrays[0].shape)

    def __setitem__(self, at: tuple[np.ndarray, int], values: np.ndarray) -> None:
        workers, t = at
        for place, n in enumerate(workers):
            self.arrays[n][t] = values[place]


class EpisodeLearner:
    """Each iteration plays one episode in every environment and learns from all of them at once.

    Trajectories are written into slots of the merged tensors, at most `algo.n_steps` steps each;
    longer episodes are cut there and valued.
    """

    def __init__(self, config: PpoConfig, run: RunConfig, vec_env: EpisodesEnv) -> None:
        if config.reward_normalisation:
            raise ConfigError(
                "algo.reward_normalisation needs steps in time; with vec=episodes switch it off."
            )
        self.config, self.vec_env, self.num_steps, self.collections = config, vec_env, 0, 0
        self.seed = run.seed
        self.policy = config.build_policy(run, vec_env)
        at_once = min(run.memory.micro_batch or config.batch_size, config.batch_size)
        self.threads = update_threads(run.hardware.threads, self.policy, at_once)
        rate = value_at(config.learning_rate, 0.0)
        self.optimizer = FlatAdam(
            self.policy.parameters(), rate, config.adam_eps, config.fused_adam
        )
        self.update = Update(self.policy, self.optimizer, run.memory.micro_batch)
        vec = run.vec if isinstance(run.vec, Episodes) else Episodes()
        self.steps = vec.slot_steps(config.n_steps, vec_env.episode_steps)
        self.layout = learner_layout(vec_env.action_space, vec_env.encoding)
        self.buffer = TrajectoryBuffer(
            run.memory.trajectories,
            self.policy.device,
            vec.chunk_size,
            vec.max_buffer_size or vec_env.num_envs * self.steps,
        )
        self.tally = EpisodeTally()

    def iterate(self, phase: Any) -> dict[str, float]:
        """One collection on one torch thread, one update on all."""
        with phase(Phase.rollout):
            torch.set_num_threads(1)
            rollout, reward = self.collect()
        self.num_steps += len(rollout)
        with phase(Phase.update):
            torch.set_num_threads(self.threads)
            metrics = self.learn(rollout)
        return {**metrics, "trajectories/mean_reward": reward, **self.tally.read()}

    @torch.no_grad()
    def collect(self) -> tuple[MergedRollout, float]:
        """Play, merge, and value; the rollout and its mean reward."""
        self.policy.set_training_mode(False)
        items = [Item(shape, torch_dtype(dtype)) for shape, dtype in self.layout.values()]
        slots = self.buffer.slots(self.vec_env.num_envs, self.steps, items)
        seed = int(np.random.default_rng([self.seed, self.collections]).integers(2**31))
        told = self.vec_env.collect(self.act, seed, self._arrays(slots), self.value)
        self.collections += 1
        for ended in told.ended:
            self.tally.add(ended)
        lengths = told.lengths.tolist()
        _, reward = self.buffer.update(trimmed(slots, lengths))
        merged = dict(zip(self.layout, self.buffer, strict=True))
        rollout = MergedRollout(
            merged, lengths, told.bootstrap, self.vec_env.encoding, self.vec_env.episode_steps,
            self.config.gamma, self.config.gae_lambda,
        )  # fmt: skip
        return rollout, reward

    def act(self, shown: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Sampled actions with their log-probability and the state's value."""
        acted = self.policy(to_tensors(shown, self.policy.device))
        actions, values, log_prob = (x.numpy(force=True) for x in acted)
        return {"action": actions, "value": values.reshape(-1), "log_prob": log_prob}

    def value(self, shown: Mapping[str, np.ndarray]) -> np.ndarray:
        """Values [M]."""
        values = self.policy.predict_values(to_tensors(shown, self.policy.device))
        return values.flatten().numpy(force=True)

    def _arrays(self, slots: list[Trajectory]) -> dict[str, Any]:
        """The slots as [N, steps, ...]; with `list` each worker has tensors of its own."""
        if self.buffer.strategy is Trajectories.list:
            columns: Iterable[Any] = (
                Apart([t.numpy() for t in c]) for c in zip(*slots, strict=True)
            )
        else:
            columns = (block.numpy() for block in as_blocks(slots))
        return dict(zip(self.layout, columns, strict=True))

    def learn(self, rollout: MergedRollout) -> dict[str, float]:
        """All epochs over the merged trajectories."""
        config = self.config
        done = min(1.0, self.num_steps / config.total_steps)
        rate = value_at(config.learning_rate, done)
        self.optimizer.set_learning_rate(rate)
        metrics = self.update.run(rollout, config.batch_size, config.n_epochs, config.terms(done))
        return {**metrics, "train/learning_rate": rate}

    def parts(self) -> dict[str, int]:
        """Bytes held, by name."""
        merged = {
            f"rollout/{name}": t.nbytes
            for name, t in zip(self.layout, self.buffer.held, strict=False)
        }
        return {
            **merged,
            **self.optimizer.parts(),
            "history": self.vec_env.history.nbytes,
            "tables_on_device": self.policy.decoder.nbytes,
        }

    def state(self) -> dict[str, Any]:
        """Weights, optimiser and counts: every iteration begins new episodes."""
        return {
            "num_steps": self.num_steps,
            "collections": self.collections,
            "policy": dict(self.policy.state_dict()),
            "optimizer": self.optimizer.state(),
        }

    def load(self, state: dict[str, Any]) -> None:
        """Continue exactly from `state()`."""
        self.num_steps, self.collections = int(state["num_steps"]), int(state["collections"])
        self.policy.load_state_dict(state["policy"])
        self.optimizer.load(state["optimizer"])
