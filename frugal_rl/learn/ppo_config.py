"""PPO as values. Imports no torch: `frugal_rl.learn.ppo` has the learner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from frugal_rl.errors import ConfigError
from frugal_rl.late import Late
from frugal_rl.learn.on_policy_config import Engine, OnPolicyConfig, Positive, Terms, Value
from frugal_rl.learn.schedules import value_at
from frugal_rl.ranges import Range, at_least
from frugal_rl.vec_env.episodes import EpisodesEnv

if TYPE_CHECKING:
    from frugal_rl.learn.learner import Learner
    from frugal_rl.run.config import RunConfig
    from frugal_rl.vec_env.interface import VectorEnv

ppo, episodic = Late("frugal_rl.learn.ppo"), Late("frugal_rl.learn.episodic")


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
    overlap: bool = False
    """Learn from one rollout while the next is collected: each update comes one late."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.normalize_advantage and self.num_envs * self.n_steps < 2:
            raise ConfigError(
                "One step of one environment has no deviation to normalise by; raise "
                "algo.n_steps or set algo.normalize_advantage=false."
            )

    def goes_with(self, run: RunConfig) -> None:
        """Refuse switches that exclude each other, before anything is planned.

        Raises:
            ConfigError: naming the one to change.
        """
        super().goes_with(run)
        if self.overlap:
            self._overlaps_with(run)

    def _overlaps_with(self, run: RunConfig) -> None:
        """Refuse to overlap what needs the parameters as they are, or the rollout in one piece."""
        whole, several = getattr(type(run.vec), "whole_episodes", False), run.launch.size > 1
        cases = (
            (self.engine is not Engine.compiled, "algo.engine=exact", "algo.engine=compiled"),
            (type(self) is not PpoConfig, "an algorithm of its own way", "algo=ppo"),
            (whole, "whole episodes", "another vec"),
            (several, "several processes", "launch.processes=1"),
        )
        for wrong, what, instead in cases:
            if wrong:
                raise ConfigError(
                    f"algo.overlap=true does not go with {what}; use {instead}, or leave it false."
                )

    def build(self, run: RunConfig, vec_env: VectorEnv) -> Learner:
        """The learner for these environments: step by step, or from whole trajectories."""
        if isinstance(vec_env, EpisodesEnv):
            whole: Learner = episodic.EpisodeLearner(self, run, vec_env)
            return whole
        learner: Learner = ppo.PpoLearner(self, run, vec_env)
        return learner

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
