"""PPO with a teacher who sees more, as values. Imports no torch: `taught_ppo` has the learner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from fighting.config import DuelConfig
from frugal_rl.errors import ConfigError
from frugal_rl.late import Late
from frugal_rl.learn.on_policy_config import Engine
from frugal_rl.learn.ppo_config import PpoConfig
from frugal_rl.memory.part import Kind, Part
from frugal_rl.ranges import above, between

if TYPE_CHECKING:
    from frugal_rl.learn.learner import Learner
    from frugal_rl.run.config import RunConfig
    from frugal_rl.vec_env.interface import VectorEnv

taught_ppo = Late("fighting.teaching.taught_ppo")


@dataclass(frozen=True)
class TaughtPpo(PpoConfig):
    """PPO whose policy first imitates a teacher where it itself gets to, then follows the reward.

    The teacher sees the game's memory, the learner what `env.obs` shows (kickstarting, Schmitt et
    al. 2018). Who plays afterwards needs no teacher.
    """

    teacher: str = ""
    """Run folder or checkpoint of a policy that plays Duel from memory, with the same actions."""
    imitate: Annotated[float, between(0, 1)] = 0.5
    """Share of the run in which only the teacher is followed, while the value learns."""
    fade: Annotated[float, above(0)] = 0.25
    """Share of the run after it in which the reward takes the teacher's place."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.engine is not Engine.exact:
            raise ConfigError("algo=fighting_taught learns in torch: choose algo.engine=exact.")

    def goes_with(self, run: RunConfig) -> None:
        """Refuse other games, and lessons without a teacher."""
        super().goes_with(run)
        if not isinstance(run.env, DuelConfig):
            raise ConfigError(
                "algo=fighting_taught has lessons for Duel alone: choose env=fighting."
            )
        if not self.teacher:
            raise ConfigError(
                "algo=fighting_taught needs algo.teacher=RUN, the run of a policy that plays from "
                "memory (env.obs=ram) with the same env.actions and env.frame_skip."
            )

    def build(self, run: RunConfig, vec_env: VectorEnv) -> Learner:
        """The learner for these environments, with its teacher."""
        learner: Learner = taught_ppo.TaughtPpoLearner(self, run, vec_env)
        return learner

    def weight(self, done: float) -> float:
        """How much the teacher counts, 1 to 0, when a share `done` of the run is over."""
        return min(1.0, max(0.0, 1.0 - (done - self.imitate) / self.fade))

    def parts(self, run: RunConfig) -> list[Part]:
        """What the teacher would do, for each step of the rollout."""
        if not isinstance(run.env, DuelConfig):
            return []
        actions = int(getattr(run.env.action_space(), "n", 0))
        formula = f"{self.n_steps} steps x {self.num_envs} x {actions} chances x 4 B"
        size = 4 * self.n_steps * self.num_envs * actions
        return [Part("rollout: lessons", formula, size, kind=Kind.rollout)]
