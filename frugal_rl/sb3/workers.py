"""`vec=sb3`: Stable-Baselines3's own subprocesses, one per environment: the reference for speed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from frugal_rl.errors import WorkerError
from frugal_rl.vec_env.backend import Backend, EnvMaker, Processes
from frugal_rl.vec_env.group import GroupEnv, Layout, places_of, singles_of

if TYPE_CHECKING:
    from frugal_rl.memory.profile import MemoryProfile
    from frugal_rl.observation.encoding import Encoding
    from frugal_rl.vec_env.interface import VectorEnv
    from frugal_rl.vec_env.single import Report


class StartMethod(Enum):
    """How multiprocessing starts a worker; names are its own."""

    forkserver = "forkserver"
    spawn = "spawn"
    fork = "fork"


MIB = 1 << 20
IMPORTING, ONCE_IMPORTING = 172 * MIB, 37 * MIB
"""Until it is weighed: a worker that imports torch, and what all share."""
FORKED, ONCE_FORKED = 7 * MIB, 67 * MIB
"""Until it is weighed: a worker that begins as a copy, and what all share."""


@dataclass(frozen=True)
class Sb3(Backend):
    """Choose it to compare. Each worker imports torch; whole observations are pickled each step."""

    weighed: ClassVar[bool] = True
    start: StartMethod = StartMethod.forkserver

    def build(
        self, env: EnvMaker, num_envs: int, encoding: Encoding, memory: MemoryProfile
    ) -> VectorEnv:
        """One process per environment."""
        return Sb3Env(env, num_envs, encoding, memory, self.start)

    def processes(self, num_envs: int, libraries_bytes: int) -> Processes:
        """One per environment; all but forks import torch and the environment's libraries."""
        if self.start is StartMethod.fork:
            return Processes(num_envs, FORKED, ONCE_FORKED)
        return Processes(num_envs, IMPORTING + libraries_bytes, ONCE_IMPORTING)


class PipedEnv(gym.Env[Any, Any]):
    """One environment that sends its raw fields through SB3's pipe; reports travel in the info."""

    def __init__(self, maker: EnvMaker, layout: Layout) -> None:
        one = {name: np.zeros((1, *shape[1:]), dtype) for name, (shape, dtype) in layout.items()}
        self.places = places_of(one)
        self.singles = singles_of(maker, 1, self.places)
        self.observation_space = spaces.Dict(
            {name: _space(values[0]) for name, values in self.places.raw.items()}
        )
        self.action_space = maker.action_space()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Begin with the seed in `options`; after an episode's end the next one has begun."""
        report = self.singles.reset([options["seed"]]) if options else None
        return _copied(self.places.raw), {"report": report}

    def step(self, action: Any) -> tuple[dict[str, np.ndarray], float, bool, bool, dict[str, Any]]:
        """Where a limit ends the episode, its last observation; the next one's comes by `reset`."""
        self.places.actions[0] = action
        report = self.singles.step()
        terminated, truncated = bool(self.places.terminated[0]), bool(self.places.truncated[0])
        shown = self.places.final if truncated else self.places.raw
        told = {"report": report} if report else {}
        return _copied(shown), float(self.places.reward[0]), terminated, truncated, told

    def close(self) -> None:
        """Close the environment."""
        self.singles.close()


def _space(values: np.ndarray) -> spaces.Space[Any]:
    """Any values of this shape and dtype."""
    if values.dtype == np.bool_:
        return spaces.MultiBinary(values.shape)
    if np.issubdtype(values.dtype, np.floating):
        return spaces.Box(-np.inf, np.inf, values.shape, values.dtype.type)
    limits = np.iinfo(values.dtype)
    return spaces.Box(limits.min, limits.max, values.shape, values.dtype.type)


def _copied(fields: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: values[0].copy() for name, values in fields.items()}


class Sb3Env(GroupEnv):
    """N environments in `SubprocVecEnv`."""

    crosses = True

    def __init__(
        self,
        env: EnvMaker,
        num_envs: int,
        encoding: Encoding,
        memory: MemoryProfile,
        start: StartMethod,
    ) -> None:
        from stable_baselines3.common.vec_env import SubprocVecEnv  # brings torch

        super().__init__(env, num_envs, encoding, memory)
        makers = [partial(PipedEnv, env, self.layout) for _ in range(num_envs)]
        self.vec = SubprocVecEnv(list(makers), start_method=start.value)

    def _reset(self, seeds: list[int]) -> list[tuple[int, Report]]:
        self.vec.set_options([{"seed": seed} for seed in seeds])
        self._keep(self._asked(self.vec.reset), self.places.raw)
        return [(i, info["report"]) for i, info in enumerate(self.vec.reset_infos)]

    def _step(self) -> list[tuple[int, Report]]:
        actions = self.places.actions
        obs, reward, done, infos = self._asked(partial(self.vec.step, actions))
        self._keep(obs, self.places.raw)
        self.places.reward[:] = reward
        cut = [bool(info["TimeLimit.truncated"]) for info in infos]
        self.places.truncated[:] = cut
        self.places.terminated[:] = done & ~self.places.truncated
        for i in np.flatnonzero(self.places.truncated):
            for name, values in infos[i]["terminal_observation"].items():
                self.places.final[name][i] = values
        return [(i, info["report"]) for i, info in enumerate(infos) if "report" in info]

    @staticmethod
    def _keep(obs: Any, into: dict[str, np.ndarray]) -> None:
        for name in obs:
            into[name][...] = obs[name]

    def _asked(self, call: Callable[[], Any]) -> Any:
        """What the workers answer; a dead one as an error in words."""
        try:
            return call()
        except (EOFError, OSError) as gone:
            dead = [i for i, p in enumerate(self.vec.processes) if not p.is_alive()]
            raise WorkerError(
                f"The worker of environment {dead[0] if dead else '?'} died. Choose vec=serial to "
                "see the error in this process."
            ) from gone

    def close(self) -> None:
        """Stop the workers, also where one is gone already."""
        self.vec.waiting = False
        try:
            self.vec.close()
        except (EOFError, OSError):
            for process in self.vec.processes:
                process.kill()
                process.join()
