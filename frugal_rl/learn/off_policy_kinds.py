"""DQN, QR-DQN, SAC, TD3, TQC and CrossQ: what is theirs, with SB3's names and defaults."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np

from frugal_rl.errors import ConfigError
from frugal_rl.late import Late
from frugal_rl.learn.off_policy_config import Count, Factor, OffPolicyConfig
from frugal_rl.ranges import above, at_least

if TYPE_CHECKING:
    from frugal_rl.store.replay import DictReplayBuffer

prioritised = Late("frugal_rl.learn.prioritised")
priorities = Late("frugal_rl.store.priorities")


@dataclass(frozen=True)
class DqnConfig(OffPolicyConfig):
    """Deep Q-learning."""

    tau: Factor = 1.0
    target_update_interval: Count = 10_000
    """Environment steps between two updates of the target."""
    exploration_fraction: Factor = 0.1
    """Share of the run in which the share of random actions falls."""
    exploration_initial_eps: Factor = 1.0
    exploration_final_eps: Factor = 0.05
    max_grad_norm: Annotated[float, above(0)] = 10.0
    prioritised: bool = False
    """Draw what surprises: in proportion to the last error, with importance weights."""
    priority_exponent: Factor = 0.6
    """How strongly errors decide; 0 draws uniformly."""
    importance_exponent: Factor = 0.4
    """How far importance weights make up for it at first; fully at the end of the run."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.prioritised and self.her:
            raise ConfigError(
                "algo.prioritised=true and algo.her=true draw in two ways. Leave one out."
            )

    kind: ClassVar[str] = "DQN"
    discrete: ClassVar[bool] = True

    def algorithm(self) -> Any:
        """SB3's class, or the one that weighs errors."""
        if not self.prioritised:
            return super().algorithm()
        return partial(prioritised.PrioritisedDQN, importance_exponent=self.importance_exponent)

    def replay_class(self) -> Callable[..., DictReplayBuffer]:
        """The store, with priorities where they are asked for."""
        if not self.prioritised:
            return super().replay_class()
        return partial(priorities.PrioritisedDictReplayBuffer, alpha=self.priority_exponent)

    def options(self) -> dict[str, Any]:
        """Target network and exploration."""
        return {
            "tau": self.tau,
            "target_update_interval": self.target_update_interval,
            "exploration_fraction": self.exploration_fraction,
            "exploration_initial_eps": self.exploration_initial_eps,
            "exploration_final_eps": self.exploration_final_eps,
            "max_grad_norm": self.max_grad_norm,
        }

    def explore(
        self, model: Any, best: np.ndarray, drawn: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """Each environment takes a random action with SB3's present rate."""
        return np.where(rng.random(len(best)) < model.exploration_rate, drawn, best)


@dataclass(frozen=True)
class QrDqnConfig(DqnConfig):
    """Q-learning of quantiles."""

    exploration_final_eps: Factor = 0.01
    room: ClassVar[str] = "sb3_contrib"
    kind: ClassVar[str] = "QRDQN"
    quantiles: ClassVar[int] = 200
    quantile_pairs: ClassVar[int] = 200 * 200
    """Of each sample, in the loss: quantiles that are learned, and those of the target."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.prioritised:
            raise ConfigError(
                "algo.prioritised=true is offered by algo=dqn; QR-DQN draws uniformly. "
                "Choose algo=dqn, or leave it out."
            )


@dataclass(frozen=True)
class SacConfig(OffPolicyConfig):
    """Soft actor-critic."""

    batch_size: Count = 256
    train_freq: Count = 1
    learning_starts: Annotated[int, at_least(0)] = 100

    kind: ClassVar[str] = "SAC"
    networks: ClassVar[tuple[int, int]] = (3, 2)
    embeddings: ClassVar[tuple[int, int]] = (2, 1)

    def options(self) -> dict[str, Any]:
        """The targets' pace."""
        return {"tau": self.tau}


@dataclass(frozen=True)
class TqcConfig(SacConfig):
    """Truncated quantile critics."""

    room: ClassVar[str] = "sb3_contrib"
    kind: ClassVar[str] = "TQC"
    quantiles: ClassVar[int] = 25
    quantile_pairs: ClassVar[int] = 2 * 25 * (2 * 25 - 2 * 2)
    """Of each sample, in the loss: those of both critics, and of the target the lower ones."""


@dataclass(frozen=True)
class CrossQConfig(SacConfig):
    """Soft actor-critic with batch normalisation and no targets."""

    room: ClassVar[str] = "sb3_contrib"
    kind: ClassVar[str] = "CrossQ"
    joins_observations: ClassVar[bool] = True
    networks: ClassVar[tuple[int, int]] = (3, 0)
    embeddings: ClassVar[tuple[int, int]] = (2, 0)

    def options(self) -> dict[str, Any]:
        """There is no target to move."""
        return {}


@dataclass(frozen=True)
class Td3Config(SacConfig):
    """Twin delayed policy gradient."""

    action_noise: Annotated[float, at_least(0)] = 0.1
    """Deviation of the noise on actions, which are scaled to [-1, 1]."""
    kind: ClassVar[str] = "TD3"
    networks: ClassVar[tuple[int, int]] = (3, 3)
    embeddings: ClassVar[tuple[int, int]] = (2, 2)

    def explore(
        self, model: Any, best: np.ndarray, drawn: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """The policy's actions with noise."""
        noise = rng.normal(0.0, self.action_noise, best.shape)
        return np.clip(best + noise, -1, 1).astype(np.float32)
