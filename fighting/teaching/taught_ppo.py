"""PPO that imitates a teacher on the states that the learner itself reaches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from fighting.opponents.saved_player import memory_policy
from fighting.signals import SIGNALS, look_all
from fighting.vec_env import DuelVecEnv
from frugal_rl.errors import ConfigError
from frugal_rl.learn.ppo import PpoLearner
from frugal_rl.learn.update import Losses, Update, loss_of
from frugal_rl.observation.decoder import to_tensors

if TYPE_CHECKING:
    from fighting.config import DuelConfig
    from fighting.game import DuelGame
    from fighting.teaching.config import TaughtPpo
    from frugal_rl.learn.optimizer import FlatAdam
    from frugal_rl.learn.policy import FrugalPolicy, Rows
    from frugal_rl.learn.update import Minibatch, Rollout
    from frugal_rl.run.config import RunConfig
    from frugal_rl.vec_env.interface import VectorEnv

LESSON = "lesson"
"""The row of a sample that holds the teacher's chances."""
SAME = ("actions", "frame_skip", "press_frames")
"""Options of the environment that give an action its meaning."""


class TaughtActor:
    """The learner's policy in its seat; notes what the teacher would have done there.

    lessons  (T, N, A) float32   the teacher's chances of each action; 0 where no choice counts
    """

    def __init__(self, policy: FrugalPolicy, teacher: FrugalPolicy, game: DuelGame, steps: int):
        self.policy, self.teacher, self.game = policy, teacher, game
        self.signals = np.zeros((game.rows, SIGNALS), np.uint8)
        self.lessons = np.zeros((steps, game.rows, policy.action_space.n), np.float32)  # type: ignore[attr-defined]
        self.step = 0

    @property
    def device(self) -> torch.device:
        """Where rows are wanted."""
        return self.policy.device

    @property
    def network(self) -> Any:
        """The learner's."""
        return self.policy.network

    def set_training_mode(self, mode: bool) -> None:
        """Called as a rollout begins: the first lesson is next."""
        self.policy.set_training_mode(mode)
        self.step = 0

    @torch.no_grad()
    def __call__(self, obs: Rows, deterministic: bool = False) -> tuple[Tensor, Tensor, Tensor]:
        """As the policy acts; one more lesson."""
        game = self.game
        look_all(game.emulators.ram, game.machine, game.seats, self.signals)
        seen = to_tensors({"signals": self.signals}, self.teacher.device)
        chances = self.teacher.actor_output(seen).softmax(-1)
        lesson = self.lessons[self.step]
        lesson[:] = chances.numpy(force=True)
        lesson[game.hands.left > 0] = 0  # a macro goes on whatever is chosen
        self.step += 1
        return self.policy(obs, deterministic)

    def predict_values(self, obs: Rows) -> Tensor:
        """Values [B, 1]."""
        return self.policy.predict_values(obs)


class TaughtUpdate(Update):
    """PPO's loss and the cross-entropy to the teacher, one taking the other's place."""

    weight = 1.0
    """How much the teacher counts, 0 to 1; the rest is the reward's."""

    def loss(self, batch: Minibatch, advantages: Tensor, terms: Any) -> Losses:
        """Cross-entropy of the teacher's chances, and what is left of PPO's surrogate."""
        out = self.policy.outputs(batch.observations)
        error = -(batch.observations[LESSON] * F.log_softmax(out.logits, -1)).sum(-1).mean()
        out.losses[LESSON] = self.weight * error
        out.metrics["lesson_error"] = error
        return loss_of(self.policy, out, batch, (1 - self.weight) * advantages, terms)


class TaughtPpoLearner(PpoLearner):
    """A PPO learner with a frozen teacher beside it."""

    config: TaughtPpo
    update: TaughtUpdate

    def __init__(self, config: TaughtPpo, run: RunConfig, vec_env: VectorEnv) -> None:
        super().__init__(config, run, vec_env)
        if not isinstance(vec_env, DuelVecEnv):
            raise ConfigError("A teacher sees the cartridges' memory: choose vec=batch.")
        teacher = teacher_for(vec_env.game.config, config.teacher)
        teacher.set_training_mode(False)
        self.taught = TaughtActor(self.policy, teacher, vec_env.game, config.n_steps)
        self.actor = self.taught

    def engine(self, run: RunConfig) -> tuple[FlatAdam, Update]:
        """The exact one, its loss with the teacher in it."""
        optimizer, update = super().engine(run)
        return optimizer, TaughtUpdate(self.policy, optimizer, update.micro_batch)

    def learn(self, rollout: Rollout) -> dict[str, float]:
        """All epochs over the last rollout and its lessons."""
        self.rollout.labels = {LESSON: self.taught.lessons}
        weight = self.config.weight(min(1.0, self.num_steps / self.config.total_steps))
        self.update.weight = weight
        return {**super().learn(rollout), "train/teacher": weight}


def teacher_for(env: DuelConfig, path: str) -> FrugalPolicy:
    """The teacher of a checkpoint, where its actions mean what this environment's mean."""
    own, policy = memory_policy(path)
    for name in SAME:
        his, mine = getattr(own, name), getattr(env, name)
        if his != mine:
            words = (getattr(his, "value", his), getattr(mine, "value", mine))
            raise ConfigError(
                f"algo.teacher: {path} plays with env.{name}={words[0]}, this run has "
                f"env.{name}={words[1]}; set env.{name}={words[0]}, or train another teacher."
            )
    return policy
