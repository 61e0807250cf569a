"""Goals in hindsight: what an environment must offer, and rewards for goals reached by chance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from frugal_rl.errors import ConfigError

if TYPE_CHECKING:
    import gymnasium as gym

    from frugal_rl.observation.encoding import Encoding
    from frugal_rl.run.config import RunConfig
    from frugal_rl.vec_env.interface import VectorEnv

REACHED, WANTED = "achieved_goal", "desired_goal"
ENTRIES = ("observation", REACHED, WANTED)


def check_goals(run: RunConfig, held: int | None) -> None:
    """Refuse an environment in which no goal can be changed afterwards.

    Args:
        run: what is to be trained.
        held: steps of each environment in the replay; None where they are not known yet.

    Raises:
        ConfigError: it shows no goals, shows them in two forms, or in stacks; or the replay cannot
            hold an episode.
    """
    rows = run.encoding().by_name
    missing = [name for name in ENTRIES if name not in rows]
    if missing:
        raise ConfigError(
            f"algo.her=true needs observations with {', '.join(ENTRIES)}; env={run.env.name} shows "
            f"no {' and no '.join(missing)}. Leave algo.her out, or choose an environment with "
            "goals, such as those of gymnasium-robotics."
        )
    reached, wanted = rows[REACHED], rows[WANTED]
    if (reached.shape, reached.dtype) != (wanted.shape, wanted.dtype):
        raise ConfigError(
            f"algo.her=true puts {REACHED} in place of {WANTED}, but these are kept as "
            f"{reached.dtype} {list(reached.shape)} and {wanted.dtype} {list(wanted.shape)}. Give "
            f"env.fields.{REACHED} and env.fields.{WANTED} the same form."
        )
    if reached.window != 1:
        raise ConfigError(
            "algo.her=true changes one goal per observation, and env.frame_stack shows several: "
            "leave env.frame_stack at 1."
        )
    limit = run.env.episode_steps
    if held is not None and held < limit < UNLIMITED:
        raise ConfigError(
            f"algo.buffer_size holds {held} steps of each environment, less than an episode of "
            f"{limit}, and hindsight draws from whole ones. Raise algo.buffer_size "
            "or lower algo.num_envs."
        )


UNLIMITED = 1 << 20
"""Steps from which on an episode is said to have no limit."""


class GoalRewards:
    """An environment's `compute_reward` on stored rows, asked as SB3 asks a vector environment."""

    def __init__(self, env: gym.Env[Any, Any], encoding: Encoding) -> None:
        try:
            self._rewards = env.get_wrapper_attr("compute_reward")
        except AttributeError as error:
            raise ConfigError(
                "algo.her=true needs the environment's compute_reward(achieved_goal, desired_goal, "
                "info), and it has none. Add it to the environment, or leave algo.her out."
            ) from error
        self._codecs = [encoding.by_name[name].codec.rows for name in (REACHED, WANTED)]

    def env_method(
        self, _name: str, reached: np.ndarray, wanted: np.ndarray, infos: Any, **_indices: Any
    ) -> list[np.ndarray]:
        """Rewards [B] of goals [B, *row shape]."""
        goals = [c.decode(x) for c, x in zip(self._codecs, (reached, wanted), strict=True)]
        rewards = np.asarray(self._rewards(*goals, infos))
        if rewards.shape != (len(reached),):
            raise ConfigError(
                f"compute_reward gave {list(rewards.shape)} for {len(reached)} goals at once; "
                "algo.her=true asks for many: let it compute along the last axis."
            )
        return [rewards]


def reward_goals(replay: Any, run: RunConfig, vec_env: VectorEnv) -> None:
    """Let a replay ask an environment of its own for rewards, and see how every episode ends."""
    vec_env.tell_ends()
    replay.env = GoalRewards(run.env.make(), vec_env.encoding)
