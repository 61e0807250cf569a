"""`vec=threads`: single environments on a fixed pool of threads, in this process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from frugal_rl.ranges import at_least
from frugal_rl.vec_env.backend import Backend, EnvMaker
from frugal_rl.vec_env.serial import SerialEnv
from frugal_rl.vec_env.shares import Shares

if TYPE_CHECKING:
    from frugal_rl.memory.profile import MemoryProfile
    from frugal_rl.observation.encoding import Encoding
    from frugal_rl.vec_env.interface import VectorEnv
    from frugal_rl.vec_env.single import Report


@dataclass(frozen=True)
class Threads(Backend):
    """Choose it for simulators that release the interpreter's lock, as PyBoy's `tick` does."""

    threads: Annotated[int, at_least(0)] = 0
    """Threads of the pool; 0 takes one per core."""

    def build(
        self, env: EnvMaker, num_envs: int, encoding: Encoding, memory: MemoryProfile
    ) -> VectorEnv:
        """Environments in this process, on threads."""
        return ThreadedEnv(env, num_envs, encoding, memory, self.threads)


class ThreadedEnv(SerialEnv):
    """N environments in equal shares, one per thread."""

    def __init__(
        self,
        env: EnvMaker,
        num_envs: int,
        encoding: Encoding,
        memory: MemoryProfile,
        threads: int,
    ) -> None:
        super().__init__(env, num_envs, encoding, memory)
        self._shares = Shares(threads)

    def _step(self) -> list[tuple[int, Report]]:
        steps = self._shares.each(self.num_envs, self.singles.step)
        return [(0, report) for report in steps]

    def close(self) -> None:
        """Stop the threads, close all environments."""
        self._shares.close()
        super().close()
