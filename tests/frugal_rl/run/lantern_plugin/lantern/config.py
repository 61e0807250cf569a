"""The environment as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gymnasium import spaces

from frugal_rl.memory.part import Part
from frugal_rl.vec_env.game_env import GameEnv, GameVecEnv
from lantern.game import SPEC, WINDOWS, LanternGame


@dataclass(frozen=True)
class Lantern:
    """Lanterns to light."""

    name: str = "lantern"
    fields: Mapping[str, str] = field(default_factory=dict)
    episode_steps: int = 30

    def spec(self) -> Any:
        """The observation, declared."""
        return SPEC

    def action_space(self) -> spaces.Space[Any]:
        """Which flame to turn up."""
        return spaces.Discrete(WINDOWS)

    def make(self, seed: int | None = None) -> GameEnv:
        """One lantern."""
        env = GameEnv(LanternGame(1, self.episode_steps), SPEC, self.episode_steps)
        if seed is not None:
            env.reset(seed=seed)
        return env

    def make_vec(self, num_envs: int, encoding: Any, memory: Any, vec: Any, split: str) -> Any:
        """All lanterns at once, or one after the other."""
        if vec is None or vec.native:
            return GameVecEnv(LanternGame(num_envs, self.episode_steps), encoding)
        return vec.build(self, num_envs, encoding, memory)

    def parts(self, num_envs: int, encoding: Any, memory: Any, vec: Any) -> list[Part]:
        """Bytes by arithmetic."""
        world = WINDOWS + 8
        return [Part("simulators", f"{num_envs} x {world} B", num_envs * world)]
