"""PPO's update by the engine: the same minibatches, losses and stops as the exact one's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from stable_baselines3.common.type_aliases import DictRolloutBufferSamples as Minibatch

from frugal_rl.learn.compiled.kernels import clipped_adam, normalise
from frugal_rl.learn.compiled.losses import ADVANTAGES
from frugal_rl.learn.optimizer import BETA1, BETA2, FlatAdam
from frugal_rl.learn.update import Record, Rollout, Update, normalised
from frugal_rl.store.drawn_rows import DrawnSamples, DrawnTogether

if TYPE_CHECKING:
    from torch import Tensor

    from frugal_rl.doing import Work
    from frugal_rl.learn.compiled.engine import CompiledPerceptron
    from frugal_rl.learn.on_policy_config import Terms
    from frugal_rl.learn.policy import FrugalPolicy
    from frugal_rl.learn.ranks import Moments


class CompiledAdam(FlatAdam):
    """Clipping and Adam in one pass over parameters, gradient and moments; the same state."""

    def step(self, max_grad_norm: float) -> None:
        """Clip the gradient's norm, then update the parameters."""
        clipped_adam(*self.arrays(), *self.rates(1, max_grad_norm))

    def rates(self, steps: int, max_grad_norm: float) -> np.ndarray:
        """The numbers [steps, 7] of the next steps, as `clipped_adam` reads them; counts those."""
        begin = self.begin()["step"]
        before = int(begin)
        begin += steps
        return np.array(
            [
                (
                    1 - BETA1,
                    BETA2,
                    1 - BETA2,
                    (1 - BETA2**step) ** 0.5,
                    self.eps,
                    self.rate / (1 - BETA1**step),
                    max_grad_norm,
                )
                for step in range(before + 1, before + steps + 1)
            ],
            np.float32,
        )

    def arrays(self) -> tuple[np.ndarray, ...]:
        """What a step writes, as NumPy sees it: parameters, gradient, both moments, largest norm.

        New tensors come with new moments only.
        """
        state = self.begin()
        if self._seen is not state:
            moments = (state["exp_avg"], state["exp_avg_sq"])
            tensors = (self.flat.data, self.gradient, *moments, self.largest)
            self._seen, self._views = state, tuple(tensor.numpy() for tensor in tensors)
        return self._views

    _seen: dict[str, Tensor] | None = None
    _views: tuple[np.ndarray, ...] = ()


class CompiledUpdate(Update):
    """All epochs of one update, each minibatch's gradient from the engine."""

    optimizer: CompiledAdam

    def __init__(
        self, policy: FrugalPolicy, optimizer: CompiledAdam, engine: CompiledPerceptron
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

    def minibatches(self, rollout: Rollout, order: list[np.ndarray]) -> Iterator[Any]:
        """Floats are read where the rollout keeps them, if it can tell."""
        lying = getattr(rollout, "samples_where_they_lie", None)
        return lying(order) if lying else super().minibatches(rollout, order)

    def epoch(
        self,
        rollout: Rollout,
        order: list[np.ndarray],
        terms: Terms,
        record: Record,
        work: Work,
    ) -> bool:
        """As the exact one; several minibatches at once where nothing is asked between them."""
        source: Any = rollout
        asked = terms.target_kl is not None or self.ranks.size > 1
        if asked or not self.engine.steps or not getattr(source, "lies_open", False):
            return super().epoch(rollout, order, terms, record, work)
        for drawn in source.drawn_together(order, self.engine.read.gathered(source)):
            for log_ratio, losses in zip(*self._steps(drawn, terms), strict=True):
                record.keep(losses, log_ratio, 1.0)
                work.done += 1
        return True

    def _steps(self, drawn: DrawnTogether, terms: Terms) -> tuple[np.ndarray, np.ndarray]:
        """One step for each minibatch; log-ratios [M, B] and losses [M, 4]."""
        adam = self.optimizer
        rates = adam.rates(len(drawn.actions), terms.max_grad_norm)
        return self.engine.learn(
            drawn.rows, drawn.actions, drawn.scalars, terms, adam.arrays(), rates
        )

    def differentiate(
        self, batch: Any, terms: Terms, record: Record, moments: Moments | None
    ) -> None:
        """The gradient of one minibatch's loss into the optimiser's."""
        samples = batch if isinstance(batch, DrawnSamples) else laid_out(batch)
        self._normalise(samples.scalars[ADVANTAGES], terms, moments)
        log_ratio, losses = self.engine.differentiate(*samples, terms)
        record.keep(losses, log_ratio, 1.0)

    def _normalise(self, advantages: np.ndarray, terms: Terms, moments: Moments | None) -> None:
        """As the exact one, in place; of a rank that is alone without a detour by tensors."""
        if terms.normalize_advantage and self.ranks.size == 1:
            normalise(advantages)
        else:
            own = torch.from_numpy(advantages)
            own.copy_(normalised(own, terms, self.ranks, moments))

    def parts(self) -> dict[str, int]:
        """Bytes held between updates, by name."""
        return self.engine.parts()


def laid_out(batch: Minibatch) -> DrawnSamples:
    """A minibatch of tensors."""
    count = len(batch.actions)
    columns = (batch.old_log_prob, batch.old_values, batch.advantages, batch.returns)
    scalars = np.stack([column.reshape(-1).numpy() for column in columns])
    return DrawnSamples(batch.observations, batch.actions.reshape(count, -1).numpy(), scalars)
