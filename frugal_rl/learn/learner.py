"""What the trainer asks of a learning algorithm."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

from frugal_rl.memory.part import Phase

if TYPE_CHECKING:
    from frugal_rl.vec_env.interface import VectorEnv


class Learner(Protocol):
    """PPO, evolution strategies, policy gradient on whole schedules: one step each."""

    policy: Any
    vec_env: VectorEnv
    num_steps: int
    """Environment steps taken so far."""

    def iterate(self, phase: Any) -> dict[str, float]:
        """Collect and learn once; `phase(Phase)` is a context that the meter listens to."""

    def parts(self) -> dict[str, int]:
        """Bytes held, by name: rollout, parameters, gradients, optimiser."""

    def state(self) -> dict[str, Any]:
        """All that an exact resume needs: tensors, arrays and plain values.

        They may be the learner's own: write or copy them before it goes on.
        """

    def load(self, state: dict[str, Any]) -> None:
        """Continue exactly from `state`, which stays as it is whatever follows."""


def settle(
    learner: object, phase: Callable[[Phase], AbstractContextManager[Any]]
) -> dict[str, float]:
    """Let a learner learn from what it collected and has not learned from yet, if it has such."""
    overlap = getattr(learner, "overlap", None)
    if overlap is None or overlap.waiting is None:
        return {}
    with phase(Phase.update):
        told: dict[str, float] = overlap.settle()
    return told
