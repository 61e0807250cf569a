"""What the trainer asks of a learning algorithm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

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
