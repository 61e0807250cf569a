"""PPO that begins from a clone: imitation of stored solutions first, then its own experience."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import torch

from frugal_rl.learn.ppo import PpoLearner
from frugal_rl.learn.update import ALONE
from npp_rl.teaching.cloning import Epoch, clone
from npp_rl.teaching.shares import recorded

if TYPE_CHECKING:
    from frugal_rl.learn.policy import FrugalPolicy
    from frugal_rl.learn.ppo_config import PpoConfig
    from frugal_rl.learn.update import Rollout
    from frugal_rl.run.config import RunConfig
    from frugal_rl.vec_env.interface import VectorEnv
    from nclone.config import NppConfig
    from npp_rl.teaching.config import ClonedPpo
    from npp_rl.teaching.demonstrations import Demonstrations


class ClonedPpoLearner(PpoLearner):
    """A PPO learner whose weights begin at those of a clone."""

    config: ClonedPpo

    def __init__(self, config: ClonedPpo, run: RunConfig, vec_env: VectorEnv) -> None:
        super().__init__(config, run, vec_env)
        self.history: list[Epoch] = []
        self.ranks = run.ranks or ALONE
        if config.cloning.epochs and not run.resume:
            self.history = self._imitate(run)

    def _imitate(self, run: RunConfig) -> list[Epoch]:
        env = cast("NppConfig", run.env)  # `ClonedPpo.build` has looked
        torch.set_num_threads(self.threads)
        ranks, encoding = self.ranks, self.vec_env.encoding
        inputs = ranks.from_first(self.config.shown(env) if ranks.first else [])
        demos = recorded(env, encoding, inputs, self.config.gamma, run.memory, ranks)
        ranks.copy_from_first(self.optimizer.flat.data)
        student = student_policy(self.config, run, demos)
        student.load_state_dict(self.policy.state_dict())
        history = clone(student, demos, self.config.cloning, ranks=ranks)
        history += self._teach(run, env, student, demos)
        self.policy.load_state_dict(student.state_dict())
        return history

    def _teach(
        self, run: RunConfig, env: NppConfig, student: FrugalPolicy, demos: Demonstrations
    ) -> list[Epoch]:
        """What a learner with a teacher does after cloning; a clone has none."""
        return []

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
