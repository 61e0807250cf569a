"""PPO: Stable-Baselines3's algorithm with our collection, our rollout and our update."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from frugal_rl.errors import ConfigError
from frugal_rl.late import Late
from frugal_rl.learn.collect import StepCollector
from frugal_rl.learn.on_policy import OnPolicyLearner
from frugal_rl.learn.ppo_config import PpoConfig
from frugal_rl.learn.rewards import RewardScale
from frugal_rl.memory.choices import Buffers
from frugal_rl.observation.history import History
from frugal_rl.store.rollout import RolloutBuffer

if TYPE_CHECKING:
    from frugal_rl.learn.overlap import Overlap
    from frugal_rl.run.config import RunConfig
    from frugal_rl.vec_env.interface import VectorEnv

overlap = Late("frugal_rl.learn.overlap")
__all__ = ["PpoConfig", "PpoLearner"]  # plug-ins import both from here


class PpoLearner(OnPolicyLearner):
    """Learns from rollouts of T steps of N environments."""

    config: PpoConfig
    collector: StepCollector
    overlap: Overlap | None = None

    def __init__(self, config: PpoConfig, run: RunConfig, vec_env: VectorEnv) -> None:
        super().__init__(config, run, vec_env)
        if config.overlap:
            refuse_moving(vec_env)
            self.overlap = overlap.Overlap(self, self.new_rollout(run))

    def iterate(self, phase: Any) -> dict[str, float]:
        """One collection and one update: one after the other, or side by side."""
        return self.overlap.iterate(phase) if self.overlap else super().iterate(phase)

    def state(self) -> dict[str, Any]:
        """All that an exact resume needs, when everything was learned from."""
        if self.overlap:
            self.overlap.settle()
        return super().state()

    def parts(self) -> dict[str, int]:
        """Bytes held, by name."""
        return {**super().parts(), **(self.overlap.parts() if self.overlap else {})}

    def collector_for(self, run: RunConfig) -> StepCollector:
        """One rollout, filled again and again; the environments begin here."""
        config, vec_env = self.config, self.vec_env
        scale = RewardScale(vec_env.num_envs, config.gamma) if config.reward_normalisation else None
        history = History(vec_env.encoding, vec_env.num_envs, run.env.episode_steps)
        rollout, batched = self.new_rollout(run), config.batched_bootstrap
        collector = StepCollector(vec_env, rollout, history, scale, batched)
        collector.reset(run.seed)
        return collector

    def new_rollout(self, run: RunConfig) -> RolloutBuffer:
        """Memory for T steps of N environments."""
        config, vec_env, memory = self.config, self.vec_env, run.memory
        return RolloutBuffer(
            config.n_steps,
            self.policy.observation_space,
            vec_env.action_space,
            device=self.policy.device,
            gae_lambda=config.gae_lambda,
            gamma=config.gamma,
            n_envs=vec_env.num_envs,
            encoding=vec_env.encoding,
            episode_steps=run.env.episode_steps,
            location=memory.rollout_location,
            shuffle=memory.shuffle,
            reuse=memory.buffers is Buffers.reused,
            folder=run.run_dir,
        )

    @property
    def rollout(self) -> RolloutBuffer:
        """The rollout that each iteration fills."""
        return self.collector.rollout


def refuse_moving(vec_env: VectorEnv) -> None:
    """Two threads read the static tables: rows must stay where they are.

    Raises:
        ConfigError: a table drops rows that were not read for long.
    """
    for name, table in vec_env.tables.items():
        if table.moves:
            raise ConfigError(
                f"algo.overlap=true does not go with the table '{name}', which drops rows to stay "
                "within its bound; leave it false."
            )
