"""PPO's update by the engine: the same minibatches, losses and stops as the exact one's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from stable_baselines3.common.type_aliases import DictRolloutBufferSamples as Minibatch
from torch import Tensor

from frugal_rl.learn.compiled.kernels import clipped_adam
from frugal_rl.learn.compiled.losses import ENTROPY, POLICY, VALUE
from frugal_rl.learn.optimizer import BETA1, BETA2, FlatAdam
from frugal_rl.learn.update import Losses, Record, Rollout, Update
from frugal_rl.store.rollout import RolloutBuffer

if TYPE_CHECKING:
    from frugal_rl.learn.compiled.engine import CompiledPerceptron
    from frugal_rl.learn.on_policy_config import Terms
    from frugal_rl.learn.policy import FrugalPolicy


class CompiledAdam(FlatAdam):
    """Clipping and Adam in one pass over parameters, gradient and moments; the same state."""

    def step(self, max_grad_norm: float) -> None:
        """Clip the gradient's norm, then update the parameters."""
        state = self.begin()
        state["step"] += 1
        steps = float(state["step"])
        root, pace = (1 - BETA2**steps) ** 0.5, self.rate / (1 - BETA1**steps)
        rates = (1 - BETA1, BETA2, 1 - BETA2, root, self.eps, pace)
        norm = clipped_adam(
            self.flat.detach().numpy(),
            self.gradient.numpy(),
            state["exp_avg"].numpy(),
            state["exp_avg_sq"].numpy(),
            np.float32(max_grad_norm),
            np.array(rates, np.float32),
        )
        largest = self.largest.numpy()
        np.maximum(largest, norm, out=largest)


class CompiledUpdate(Update):
    """All epochs of one update, each minibatch's gradient from the engine."""

    def __init__(
        self, policy: FrugalPolicy, optimizer: FlatAdam, engine: CompiledPerceptron
    ) -> None:
        super().__init__(policy, optimizer)
        self.engine = engine

    def run(
        self, rollout: Rollout, batch_size: int, n_epochs: int, terms: Terms
    ) -> dict[str, float]:
        """As the exact one; threads of torch's would spin on the cores of the engine's."""
        torch.set_num_threads(1)
        return super().run(rollout, batch_size, n_epochs, terms)

    def whole(self) -> CompiledUpdate:
        """The same: it has no micro-batches."""
        return self

    def drawn(self, rollout: Rollout, indices: np.ndarray) -> Any:
        """One minibatch whose floats are read where the rollout keeps them."""
        if isinstance(rollout, RolloutBuffer):
            return rollout.samples_where_they_lie(indices)
        return rollout.samples(indices)

    def differentiate(
        self, batch: Minibatch, advantages: Tensor, terms: Terms, record: Record
    ) -> None:
        """The gradient of one minibatch's loss into the optimiser's."""
        count = len(batch.actions)
        old = (batch.old_log_prob, batch.old_values, advantages, batch.returns)
        log_ratio, sums = self.engine.differentiate(
            batch.observations,
            batch.actions.reshape(count, -1).numpy(),
            torch.stack([column.reshape(-1) for column in old]).numpy(),
            terms,
        )
        record.add(losses_of(sums / count, log_ratio, terms), 1.0)

    def parts(self) -> dict[str, int]:
        """Bytes held between updates, by name."""
        return self.engine.parts()


def losses_of(means: np.ndarray, log_ratio: np.ndarray, terms: Terms) -> Losses:
    """What the record keeps of a minibatch."""
    total = means[POLICY] + terms.ent_coef * means[ENTROPY] + terms.vf_coef * means[VALUE]
    values = np.array((total, means[POLICY], means[VALUE], means[ENTROPY]), np.float32)
    total, policy, value, entropy = torch.from_numpy(values).unbind()
    return Losses(total, policy, value, entropy, torch.from_numpy(log_ratio), {})
