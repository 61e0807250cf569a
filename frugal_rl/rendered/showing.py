"""An environment whose pictures are kept: of each observation, the last of an episode included."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np

from frugal_rl.errors import ConfigError
from frugal_rl.run.evaluate import tried
from frugal_rl.run.watch import Watch
from frugal_rl.vec_env.ending import close_all
from frugal_rl.vec_env.registered import Registered
from frugal_rl.vec_env.serial import Serial, SerialEnv

if TYPE_CHECKING:
    from frugal_rl.learn.policy import FrugalPolicy
    from frugal_rl.run.config import RunConfig

MODE = "rgb_array"
USUAL_RATE = 30.0
"""Pictures per second where an environment names none."""


class Pictures(gym.Wrapper[Any, Any, Any, Any]):
    """Keeps a picture [H, W, 3] uint8 of each observation until it is taken."""

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        super().__init__(env)
        self.kept: list[np.ndarray] = []

    def reset(self, **given: Any) -> tuple[Any, dict[str, Any]]:
        """Start an episode."""
        begun = self.env.reset(**given)
        self._keep()
        return begun

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take one action."""
        seen = self.env.step(action)
        self._keep()
        return seen

    def _keep(self) -> None:
        try:
            picture: Any = self.env.render()
        except Exception as error:  # of a stranger's drawing library: none, or no display for it
            raise ConfigError(
                f"The environment cannot be drawn here: {type(error).__name__}: {error}. Without a "
                "display MuJoCo draws with MUJOCO_GL=egl or osmesa set, others under xvfb-run."
            ) from error
        self.kept.append(np.array(picture, np.uint8)[..., :3])

    def take(self) -> list[np.ndarray]:
        """The pictures since the last time."""
        taken, self.kept = self.kept, []
        return taken


class Rendered(Registered):
    """A registered environment, made so that it draws itself."""

    def plain(self) -> gym.Env[Any, Any]:
        """The environment with its wrappers, and its pictures kept.

        Raises:
            ConfigError: it draws none.
        """
        env = super().plain()
        modes = env.metadata.get("render_modes") or ()
        if MODE in modes:
            return Pictures(env)
        close_all([env])
        raise ConfigError(
            f"env.id={self.id} gives no pictures: it has no render_mode={MODE}, but {list(modes)}."
        )


def rendered(env: Registered) -> Rendered:
    """The same environment with `render_mode=rgb_array`."""
    values = {part.name: getattr(env, part.name) for part in fields(env)}
    return Rendered(**{**values, "kwargs": {**env.kwargs, "render_mode": MODE}})


class Showing:
    """Pictures of a policy at play in one environment, episode by episode."""

    def __init__(self, run: RunConfig, policy: FrugalPolicy, deterministic: bool) -> None:
        env: Any = tried(run)
        self._vec_env = Serial().build(rendered(env), 1, run.encoding(), run.memory)
        assert isinstance(self._vec_env, SerialEnv)
        self._pictures: Pictures = self._vec_env.singles.envs[0].env
        self.watch = Watch(run, policy, self._vec_env, deterministic)
        self.returns: list[float] = []

    @property
    def rate(self) -> float:
        """Pictures per second at which the environment is meant to be seen."""
        return float(self._pictures.metadata.get("render_fps") or USUAL_RATE)

    def one(self) -> Iterator[np.ndarray]:
        """The pictures [H, W, 3] uint8 of an episode, from its beginning to its end."""
        earned, ended = 0.0, False
        while not ended:
            yield from self._pictures.take()
            step = self.watch.step(self.watch.choose())
            earned, ended = earned + float(step.reward[0]), bool(step.done[0])
        *rest, begun = self._pictures.take()
        self._pictures.kept = [begun]  # the next episode's
        yield from rest
        self.returns.append(earned)

    def close(self) -> None:
        """Close the environment."""
        self._vec_env.close()


@contextmanager
def showing(run: RunConfig, policy: FrugalPolicy, deterministic: bool = True) -> Iterator[Showing]:
    """A policy at play; its environment is closed at the end."""
    episodes = Showing(run, policy, deterministic)
    try:
        yield episodes
    finally:
        episodes.close()
