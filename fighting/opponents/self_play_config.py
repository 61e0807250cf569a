"""Self-play as values. Imports no torch: `fighting.opponents.self_play` has the learner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from fighting.spec import View
from frugal_rl.errors import ConfigError
from frugal_rl.late import Late
from frugal_rl.learn.ppo_config import PpoConfig
from frugal_rl.ranges import at_least

if TYPE_CHECKING:
    from frugal_rl.learn.learner import Learner
    from frugal_rl.run.config import RunConfig
    from frugal_rl.vec_env.interface import VectorEnv

self_play = Late("fighting.opponents.self_play")


@dataclass(frozen=True)
class SelfPlayConfig(PpoConfig):
    """PPO whose past selves join the pool of opponents. Needs env.opponent=self_play or mixed."""

    snapshot_every_steps: Annotated[int, at_least(1)] = 50_000
    """Environment steps between two past selves."""
    pool_size: Annotated[int, at_least(1)] = 20
    """Past selves that are kept; the oldest go first."""

    def goes_with(self, run: RunConfig) -> None:
        """Refuse other games and opponents, and observations that past selves do not see."""
        super().goes_with(run)
        env: Any = run.env
        if not getattr(env, "plays_itself", False):
            raise ConfigError(
                "algo=fighting_self_play needs env.opponent=self_play or mixed, with env=fighting, "
                "or with env=fighting_game_boy and a profile that has pads:."
            )
        if env.obs is not View.ram:
            raise ConfigError("Past selves see the game's memory: choose env.obs=ram.")

    def kept_weights(self, run: RunConfig) -> int:
        """How many past selves there are at the end."""
        rollout = self.n_steps * self.num_envs
        steps = -(-self.total_steps // rollout) * rollout
        return min(self.pool_size, steps // max(self.snapshot_every_steps, rollout))

    def build(self, run: RunConfig, vec_env: VectorEnv) -> Learner:
        """The learner for these environments."""
        learner: Learner = self_play.SelfPlayLearner(self, run, vec_env)
        return learner
