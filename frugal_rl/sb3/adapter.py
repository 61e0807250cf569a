"""Our vector environments under an unmodified Stable-Baselines3 algorithm."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from stable_baselines3.common.vec_env import VecEnv

from frugal_rl.observation.encoder import Encoder
from frugal_rl.observation.history import History

if TYPE_CHECKING:
    from frugal_rl.observation.encoding import Encoding
    from frugal_rl.vec_env.interface import VectorEnv
    from frugal_rl.vec_env.plain import SpecEnv


class Sb3VecEnv(VecEnv):
    """A `VectorEnv` with Stable-Baselines3's interface; observations in policy form.

    For comparisons and for SB3's own algorithms: every step copies its rows and makes N info
    dictionaries, which our collector does not. `FrugalPolicy` decodes what this hands out.
    """

    def __init__(self, vec_env: VectorEnv, episode_steps: int = 0) -> None:
        self.vec_env = vec_env
        self.history = History(vec_env.encoding, vec_env.num_envs, episode_steps)
        self._actions = np.empty(0)
        self._seed = 0
        space = vec_env.encoding.policy_space(episode_steps)
        super().__init__(vec_env.num_envs, space, vec_env.action_space)

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Seed of the next reset."""
        self._seed = seed or 0
        return [seed] * self.num_envs

    def reset(self) -> dict[str, np.ndarray]:
        """Start all environments with the seed that was given last."""
        return _copied(self.history.reset(self.vec_env.reset(self._seed)))

    def step_async(self, actions: np.ndarray) -> None:
        """Keep the actions for `step_wait`."""
        self._actions = actions

    def step_wait(
        self,
    ) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Advance all environments; infos carry what SB3 needs for truncated episodes."""
        step = self.vec_env.step(self._actions)
        obs, final = self.history.push(step.rows, step.done, step.final_index, step.final_rows)
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for place, env in enumerate(step.final_index):
            infos[env]["TimeLimit.truncated"] = True
            infos[env]["terminal_observation"] = {k: v[place].copy() for k, v in final.items()}
        for place, env in enumerate(step.ended.index if step.ended else ()):
            stats = {k: float(v[place]) for k, v in step.ended.stats.items()} if step.ended else {}
            infos[env]["episode"] = {"r": stats["return"], "l": stats["length"], "t": 0.0}
            infos[env]["is_success"] = stats["success"]
        return _copied(obs), step.reward.copy(), step.done.copy(), infos

    def close(self) -> None:
        """Release the environments."""
        self.vec_env.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Environments share one object: its attribute, once per index; None where it has none."""
        return [getattr(self.vec_env, attr_name, None) for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Refused: batched environments have no attributes of their own."""
        raise NotImplementedError(f"Sb3VecEnv cannot set '{attr_name}' per environment.")

    def env_method(
        self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any
    ) -> list[Any]:
        """Refused: batched environments have no methods of their own."""
        raise NotImplementedError(f"Sb3VecEnv cannot call '{method_name}' per environment.")

    def env_is_wrapped(
        self, wrapper_class: type[gym.Wrapper[Any, Any, Any, Any]], indices: Any = None
    ) -> list[bool]:
        """No wrappers."""
        return [False for _ in self._get_indices(indices)]

    def _get_indices(self, indices: int | Iterable[int] | None) -> Iterable[int]:
        return super()._get_indices(indices)


class PolicyFormEnv(gym.Wrapper[dict[str, np.ndarray], Any, dict[str, np.ndarray], Any]):
    """A plain environment whose observation is the policy form of an encoding, for DummyVecEnv.

    Ids refer to the environment's own `tables`: several of them under one policy need encodings
    that store static fields themselves (`dense`).
    """

    def __init__(self, env: SpecEnv, encoding: Encoding, episode_steps: int) -> None:
        super().__init__(env)
        self.plain = env
        self.tables = env.tables
        self.observation_space: Any = encoding.policy_space(episode_steps)
        self._edge = Encoder(encoding, env.tables, 1)
        self._history = History(encoding, 1, episode_steps)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Start an episode."""
        _, info = self.plain.reset(seed=seed, options=options)
        return self._observe(begins=True), info

    def step(self, action: Any) -> tuple[dict[str, np.ndarray], float, bool, bool, dict[str, Any]]:
        """Take one action."""
        _, reward, terminated, truncated, info = self.plain.step(action)
        return self._observe(begins=False), reward, terminated, truncated, info

    def _observe(self, begins: bool) -> dict[str, np.ndarray]:
        raw = {name: np.asarray(value)[None] for name, value in self.plain.raw().items()}
        rows, _ = self._history.push(self._edge.encode(raw), np.array([begins]))
        return {name: np.array(row[0]) for name, row in rows.items()}


def _copied(rows: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: np.array(row) for name, row in rows.items()}
