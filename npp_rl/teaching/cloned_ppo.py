"""PPO that begins from a clone: imitation of stored solutions first, then its own experience."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import torch

from frugal_rl.errors import ConfigError
from frugal_rl.learn.policy import FrugalPolicy
from frugal_rl.learn.ppo import PpoConfig, PpoLearner
from frugal_rl.learn.update import Rollout, Terms
from frugal_rl.memory.part import Part, Phase, human
from frugal_rl.run.config import RunConfig
from frugal_rl.vec_env.interface import VectorEnv
from nclone.config import NppConfig
from npp_rl.teaching.cloning import Cloning, Epoch, clone
from npp_rl.teaching.demonstrations import Demonstrations, record, solutions


@dataclass(frozen=True)
class ClonedPpo(PpoConfig):
    """PPO after behaviour cloning; `total_steps=0` iterations of PPO leave the clone alone."""

    cloning: Cloning = field(default_factory=Cloning)
    critic_iterations: int = 4
    """Rollouts after cloning in which only the value learns, so that it fits the clone."""

    def build(self, run: RunConfig, vec_env: VectorEnv) -> ClonedPpoLearner:
        """The learner for these environments, its policy cloned already."""
        if not isinstance(run.env, NppConfig):
            raise ConfigError("algo=cloned_ppo needs stored solutions; choose env=nclone.")
        return ClonedPpoLearner(self, run, vec_env)

    def tiny(self) -> ClonedPpo:
        """Without cloning, which `parts` counts."""
        return replace(self, cloning=replace(self.cloning, epochs=0))

    def parts(self, run: RunConfig) -> list[Part]:
        """What the demonstrations hold before the first rollout."""
        if not self.cloning.epochs or not isinstance(run.env, NppConfig):
            return []
        inputs, encoding = solutions(run.env), run.encoding()
        steps, width = sum(len(actions) for actions in inputs), encoding.row_bytes
        worlds = run.env.parts(len(inputs), encoding, run.memory, None)
        simulators = sum(part.ram_bytes for part in worlds)
        formula = (
            f"{steps:,} steps x {width} B, as recorded and in order of levels, and "
            f"{human(simulators)} of simulators"
        )
        size = 2 * steps * width + simulators
        return [Part("demonstrations", formula, size, phases=frozenset({Phase.rollout}))]

    def rests(self, done: float) -> bool:
        """Whether only the value learns when a share `done` of the run is over."""
        collected = self.critic_iterations * self.num_envs * self.n_steps
        return self.cloning.epochs > 0 and done * self.total_steps < collected + 0.5

    def terms(self, done: float) -> Terms:
        """PPO's numbers; no entropy bonus while the policy rests, it would forget the clone."""
        terms = super().terms(done)
        return replace(terms, ent_coef=0.0) if self.rests(done) else terms


class ClonedPpoLearner(PpoLearner):
    """A PPO learner whose weights begin at those of a clone."""

    config: ClonedPpo

    def __init__(self, config: ClonedPpo, run: RunConfig, vec_env: VectorEnv) -> None:
        super().__init__(config, run, vec_env)
        self.history: list[Epoch] = []
        if config.cloning.epochs and not run.resume:
            self.history = self._imitate(run)

    def _imitate(self, run: RunConfig) -> list[Epoch]:
        env = run.env
        assert isinstance(env, NppConfig)
        torch.set_num_threads(self.threads)
        demos = record(env, self.vec_env.encoding, solutions(env), self.config.gamma, run.memory)
        student = student_policy(self.config, run, demos)
        student.load_state_dict(self.policy.state_dict())
        history = clone(student, demos, self.config.cloning)
        self.policy.load_state_dict(student.state_dict())
        return history

    def learn(self, rollout: Rollout) -> dict[str, float]:
        """All epochs over the last rollout; the policy stands still while the value catches up."""
        if self.config.rests(self.num_steps / self.config.total_steps):
            self._rest_actor()
        metrics = super().learn(rollout)
        if self.history:
            last = self.history[-1]
            metrics |= {
                "cloning/loss": last.validation_loss,
                "cloning/accuracy": last.validation_accuracy,
            }
        return metrics

    def _rest_actor(self) -> None:
        """Advantages of 0 leave the value's gradients and those of the agent's own losses."""
        self.rollout.advantages[:] = 0.0


def student_policy(config: PpoConfig, run: RunConfig, demos: Demonstrations) -> FrugalPolicy:
    """A policy that reads the demonstrations' tables; its weights fit the run's policy."""

    class _Recorded:
        encoding = run.encoding()
        tables = demos.tables
        action_space = run.env.action_space()

    recorded: Any = _Recorded()
    return config.build_policy(run, recorded)
