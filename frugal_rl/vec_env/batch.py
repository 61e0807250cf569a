"""`vec=batch`: the environment's own batched simulator, all in one process and one call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from frugal_rl.errors import ConfigError
from frugal_rl.vec_env.backend import Backend, EnvMaker

if TYPE_CHECKING:
    from frugal_rl.memory.profile import MemoryProfile
    from frugal_rl.observation.encoding import Encoding
    from frugal_rl.vec_env.interface import VectorEnv


@dataclass(frozen=True)
class Batch(Backend):
    """Asks the environment for its own batch."""

    native: ClassVar[bool] = True

    def build(
        self, env: EnvMaker, num_envs: int, encoding: Encoding, memory: MemoryProfile
    ) -> VectorEnv:
        """Refused: an environment that lands here has no batch of its own."""
        raise ConfigError(
            f"{type(env).__name__} has no batched simulator. "
            "Choose vec=serial, vec=threads or vec=shared_memory."
        )
