"""What algorithms have that learn from their own fresh experience, as values. Imports no torch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Annotated, ClassVar, Self

from frugal_rl.errors import ConfigError
from frugal_rl.late import Late
from frugal_rl.learn.schedules import Constant, Linear, WarmUp
from frugal_rl.ranges import above, at_least, between, check_ranges

if TYPE_CHECKING:
    from frugal_rl.learn.policy import FrugalPolicy
    from frugal_rl.learn.ranks import Ranks
    from frugal_rl.run.config import RunConfig
    from frugal_rl.vec_env.interface import VectorEnv

on_policy = Late("frugal_rl.learn.on_policy")
refusal = Late("frugal_rl.learn.compiled.refusal")
Value = float | Constant | Linear | WarmUp
Count = Annotated[int, at_least(1)]
Factor = Annotated[float, between(0, 1)]
Positive = above(0)


class Engine(Enum):
    """What computes a perceptron's updates and actions."""

    exact = "exact"
    """Torch, equal to Stable-Baselines3 to the bit."""
    compiled = "compiled"
    """Kernels of our own on the CPU, equal to the exact one up to rounding."""


@dataclass(frozen=True)
class Terms:
    """The numbers in the loss, at one moment of the run."""

    clip_range: float
    clip_range_vf: float | None
    ent_coef: float
    vf_coef: float
    normalize_advantage: bool
    max_grad_norm: float
    target_kl: float | None


@dataclass(frozen=True)
class OnPolicyConfig(ABC):
    """What every algorithm that learns from its own fresh experience has."""

    honours: ClassVar[frozenset[str]] = frozenset(
        {
            "shuffle",
            "rollout_location",
            "trajectories",
            "precision",
            "micro_batch",
            "gradient_checkpointing",
        }
    )
    """Switches of the memory profile that it reads."""
    num_envs: Count = 128
    n_steps: Count = 128
    """Steps of each environment per rollout."""
    batch_size: Count = 2048
    """Samples per minibatch."""
    n_epochs: Count = 4
    """Passes over each rollout."""
    total_steps: Count = 1_000_000
    """Environment steps of the whole run."""
    learning_rate: Annotated[Value, Positive] = 3e-4
    """A number, or a schedule: `Constant`, `Linear`, `WarmUp`."""
    gamma: Factor = 0.99
    gae_lambda: Factor = 0.95
    adam_eps: Annotated[float, Positive] = 1e-5
    fused_adam: bool = False
    """Adam in one kernel; parameters differ in the last bits."""
    reward_normalisation: bool = False
    """Divide rewards by the running deviation of the discounted return."""
    batched_bootstrap: bool = True
    """Value truncated episodes together; one by one, as SB3 does, differs in the last bits."""
    compile: bool = False
    """Compile the network with torch.compile; pays off in long runs only."""
    engine: Engine = Engine.exact
    """`compiled` runs perceptrons on the CPU in kernels, equal up to rounding."""

    def __post_init__(self) -> None:
        check_ranges(self, "algo")

    def goes_with(self, run: RunConfig) -> None:
        """Refuse switches that exclude each other, before anything is planned.

        Raises:
            ConfigError: naming the one to change.
        """
        if self.reward_normalisation and getattr(type(run.vec), "whole_episodes", False):
            raise ConfigError(
                "algo.reward_normalisation=true needs steps in time, and vec=episodes collects "
                "whole episodes one after the other: add algo.reward_normalisation=false."
            )
        if self.engine is Engine.compiled:
            refusal.refuse_values(self, run)

    def shared(self, ranks: Ranks) -> Self:
        """One rank's part of the environments and of each minibatch.

        Raises:
            ConfigError: they cannot be split evenly.
        """
        return replace(
            self,
            num_envs=ranks.share(self.num_envs, "algo.num_envs"),
            batch_size=ranks.share(self.batch_size, "algo.batch_size"),
        )

    @abstractmethod
    def terms(self, done: float) -> Terms:
        """The loss's numbers when a share `done` of the run is over."""

    def build_policy(self, run: RunConfig, vec_env: VectorEnv) -> FrugalPolicy:
        """The run's policy on its device, without a learner around it."""
        policy: FrugalPolicy = on_policy.build_policy(self, run, vec_env)
        return policy
