"""PPO: Stable-Baselines3's algorithm with our collection, our rollout and our update."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from frugal_rl.errors import ConfigError
from frugal_rl.learn.collect import StepCollector
from frugal_rl.learn.episodic import EpisodeLearner
from frugal_rl.learn.on_policy import OnPolicyConfig, OnPolicyLearner, Positive, Value
from frugal_rl.learn.rewards import RewardScale
from frugal_rl.learn.schedules import value_at
from frugal_rl.learn.update import Terms
from frugal_rl.memory.profile import Buffers
from frugal_rl.observation.history import History
from frugal_rl.ranges import Range, at_least
from frugal_rl.run.config import RunConfig
from frugal_rl.store.rollout import RolloutBuffer
from frugal_rl.vec_env.episodes import EpisodesEnv
from frugal_rl.vec_env.interface import VectorEnv


@dataclass(frozen=True)
class PpoConfig(OnPolicyConfig):
    """Proximal policy optimisation; names and defaults as in Stable-Baselines3."""

    clip_range: Annotated[Value, Positive] = 0.2
    clip_range_vf: Annotated[Value | None, Positive] = None
    """Clips the change of values as well; None does not."""
    ent_coef: Annotated[float, Range()] = 0.0
    vf_coef: Annotated[float, at_least(0)] = 0.5
    max_grad_norm: Annotated[float, Positive] = 0.5
    normalize_advantage: bool = True
    target_kl: Annotated[float | None, Positive] = None
    """Ends an update whose divergence exceeds 1.5 times this."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.normalize_advantage and self.num_envs * self.n_steps < 2:
            raise ConfigError(
                "One step of one environment has no deviation to normalise by; raise "
                "algo.n_steps or set algo.normalize_advantage=false."
            )

    def build(self, run: RunConfig, vec_env: VectorEnv) -> PpoLearner | EpisodeLearner:
        """The learner for these environments: step by step, or from whole trajectories."""
        if isinstance(vec_env, EpisodesEnv):
            return EpisodeLearner(self, run, vec_env)
        return PpoLearner(self, run, vec_env)

    def terms(self, done: float) -> Terms:
        """The loss's numbers when a share `done` of the run is over."""
        clip_vf = self.clip_range_vf
        return Terms(
            value_at(self.clip_range, done),
            None if clip_vf is None else value_at(clip_vf, done),
            self.ent_coef,
            self.vf_coef,
            self.normalize_advantage,
            self.max_grad_norm,
            self.target_kl,
        )


class PpoLearner(OnPolicyLearner):
    """Learns from rollouts of T steps of N environments."""

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
