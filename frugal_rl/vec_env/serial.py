"""`vec=serial`: single environments one after the other, in this process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from frugal_rl.vec_env.backend import Backend, EnvMaker
from frugal_rl.vec_env.group import GroupEnv, singles_of

if TYPE_CHECKING:
    from frugal_rl.memory.profile import MemoryProfile
    from frugal_rl.observation.encoding import Encoding
    from frugal_rl.vec_env.interface import VectorEnv
    from frugal_rl.vec_env.single import Report


@dataclass(frozen=True)
class Serial(Backend):
    """Choose it to debug, and for simulators that are cheap."""

    def build(
        self, env: EnvMaker, num_envs: int, encoding: Encoding, memory: MemoryProfile
    ) -> VectorEnv:
        """Environments in this process."""
        return SerialEnv(env, num_envs, encoding, memory)


class SerialEnv(GroupEnv):
    """N environments in a loop."""

    def __init__(
        self, env: EnvMaker, num_envs: int, encoding: Encoding, memory: MemoryProfile
    ) -> None:
        super().__init__(env, num_envs, encoding, memory)
        self.singles = singles_of(env, num_envs, self.places)

    def tell_ends(self) -> None:
        """Tell the last observation of every episode from now on."""
        self.tells_ends = self.singles.tells_ends = True

    def _reset(self, seeds: list[int]) -> list[tuple[int, Report]]:
        return [(0, self.singles.reset(seeds))]

    def _step(self) -> list[tuple[int, Report]]:
        return [(0, self.singles.step())]

    def _states(self) -> list[Any]:
        return self.singles.state()

    def _load(self, states: list[Any]) -> list[tuple[int, Report]]:
        return [(0, self.singles.load(states))]

    def close(self) -> None:
        """Close all environments."""
        self.singles.close()
