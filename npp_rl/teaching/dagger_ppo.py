"""PPO after cloning and lessons: the searcher wins from states that the policy lost from."""

from __future__ import annotations

from dataclasses import astuple, replace
from typing import TYPE_CHECKING

import numpy as np

from npp_rl.teaching.cloned_ppo import ClonedPpoLearner
from npp_rl.teaching.cloning import Epoch, clone
from npp_rl.teaching.teacher import Round, joined, taught

if TYPE_CHECKING:
    from frugal_rl.learn.policy import FrugalPolicy
    from frugal_rl.learn.update import Rollout
    from frugal_rl.run.config import RunConfig
    from nclone.config import NppConfig
    from npp_rl.teaching.config import DaggerPpo
    from npp_rl.teaching.demonstrations import Demonstrations


class DaggerPpoLearner(ClonedPpoLearner):
    """A PPO learner whose weights begin at those of a clone that was taught where it failed."""

    config: DaggerPpo
    rounds: tuple[Round, ...] = ()

    def _teach(
        self, run: RunConfig, env: NppConfig, student: FrugalPolicy, demos: Demonstrations
    ) -> list[Epoch]:
        teacher, first = self.config.teacher, len(demos)
        cloning, ranks = replace(self.config.cloning, epochs=teacher.epochs), self.ranks
        history: list[Epoch] = []
        for number in range(teacher.rounds):
            new, told = taught(
                student,
                env,
                self.vec_env.encoding,
                run.memory,
                teacher,
                self.config.gamma,
                number,
                ranks,
            )
            told = Round(*np.sum([astuple(each) for each in ranks.gathered(told)], axis=0).tolist())
            self.rounds = (*self.rounds, told)
            if not told.shown:
                break
            if new is not None:
                demos = joined(demos, new, teacher.most_samples // ranks.size, first)
            history += clone(student, demos, cloning, ranks=ranks)
        return history

    def learn(self, rollout: Rollout) -> dict[str, float]:
        """As a cloned learner's, with what came of the lessons."""
        metrics = super().learn(rollout)
        if self.rounds:
            last = self.rounds[-1]
            metrics["teacher/lost"] = last.lost / last.episodes
            metrics["teacher/shown"] = sum(r.shown for r in self.rounds)
            metrics["teacher/samples"] = sum(r.samples for r in self.rounds)
        return metrics
