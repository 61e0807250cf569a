"""The choice `vec=`: how many environments are run side by side."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from gymnasium import spaces

from frugal_rl.memory.choices import Buffers

if TYPE_CHECKING:
    from frugal_rl.memory.profile import MemoryProfile
    from frugal_rl.observation.encoding import Encoding
    from frugal_rl.observation.spec import ObservationSpec
    from frugal_rl.vec_env.interface import VectorEnv


class EnvMaker(Protocol):
    """What a backend needs of an `EnvConfig`; it travels to workers by pickle."""

    def spec(self) -> ObservationSpec:
        """The observation, declared."""

    def action_space(self) -> spaces.Space[Any]:
        """The actions."""

    def make(self, seed: int | None = None) -> Any:
        """One plain Gymnasium environment."""


@dataclass(frozen=True)
class Processes:
    """Processes beside the main one, as the plan counts them: bytes of each, and bytes of all."""

    count: int = 0
    each_bytes: int = 0
    once_bytes: int = 0


@dataclass(frozen=True)
class Backend(ABC):
    """A way to run single environments side by side.

    `native` says that the environment's own batch is meant, which `make_vec` builds itself;
    `whole_episodes` that trajectories are collected from start to end.
    """

    native: ClassVar[bool] = False
    whole_episodes: ClassVar[bool] = False
    weighed: ClassVar[bool] = False
    """Whether its workers are measured once for a plan, by `frugal_rl.run.weigh_workers`."""
    honours: ClassVar[frozenset[str]] = frozenset({"shuffle", "rollout_location", "frame_stack"})
    """Switches of the memory profile that are read where its steps are stored."""

    @abstractmethod
    def build(
        self, env: EnvMaker, num_envs: int, encoding: Encoding, memory: MemoryProfile
    ) -> VectorEnv:
        """`num_envs` environments of one configuration."""

    def stepping(self) -> Backend:
        """The backend whose environments an evaluation steps."""
        return self

    def processes(self, num_envs: int, libraries_bytes: int) -> Processes:
        """What it starts for so many environments that load so much; here nothing."""
        return Processes()


def reuses(memory: MemoryProfile) -> bool:
    """Whether the profile wants arrays to be reused."""
    return memory.buffers is Buffers.reused
