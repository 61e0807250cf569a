"""PPO: Stable-Baselines3's algorithm with our collection, our rollout and our update."""

from __future__ import annotations

from typing import TYPE_CHECKING

from frugal_rl.learn.collect import StepCollector
from frugal_rl.learn.on_policy import OnPolicyLearner
from frugal_rl.learn.ppo_config import PpoConfig
from frugal_rl.learn.rewards import RewardScale
from frugal_rl.memory.choices import Buffers
from frugal_rl.observation.history import History
from frugal_rl.store.rollout import RolloutBuffer

if TYPE_CHECKING:
    from frugal_rl.run.config import RunConfig

__all__ = ["PpoConfig", "PpoLearner"]  # plug-ins import both from here


class PpoLearner(OnPolicyLearner):
    """Learns from rollouts of T steps of N environments."""

    config: PpoConfig
    collector: StepCollector

    def collector_for(self, run: RunConfig) -> StepCollector:
        """One rollout, filled again and again; the environments begin here."""
        config, vec_env, memory = self.config, self.vec_env, run.memory
        encoding, steps = vec_env.encoding, run.env.episode_steps
        rollout = RolloutBuffer(
            config.n_steps,
            self.policy.observation_space,
            vec_env.action_space,
            device=self.policy.device,
            gae_lambda=config.gae_lambda,
            gamma=config.gamma,
            n_envs=vec_env.num_envs,
            encoding=encoding,
            episode_steps=steps,
            location=memory.rollout_location,
            shuffle=memory.shuffle,
            reuse=memory.buffers is Buffers.reused,
            folder=run.run_dir,
        )
        scale = RewardScale(vec_env.num_envs, config.gamma) if config.reward_normalisation else None
        history = History(encoding, vec_env.num_envs, steps)
        collector = StepCollector(vec_env, rollout, history, scale, config.batched_bootstrap)
        collector.reset(run.seed)
        return collector

    @property
    def rollout(self) -> RolloutBuffer:
        """The rollout that each iteration fills."""
        return self.collector.rollout
