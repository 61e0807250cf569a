"""DQN from prioritised draws: errors are weighted, and go back as priorities."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from stable_baselines3 import DQN
from torch import Tensor
from torch.nn.functional import smooth_l1_loss
from torch.nn.utils import clip_grad_norm_


class PrioritisedDQN(DQN):
    """DQN whose replay draws what surprises; `importance_exponent` rises to 1 within the run."""

    replay_buffer: Any

    def __init__(self, *args: Any, importance_exponent: float = 0.4, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.importance_exponent = importance_exponent

    def train(self, gradient_steps: int, batch_size: int = 100) -> None:
        """Some updates of the values; all else is DQN's."""
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        weaker = (1.0 - self.importance_exponent) * self._current_progress_remaining
        self.replay_buffer.beta = 1.0 - weaker
        losses = [self._update(batch_size) for _ in range(gradient_steps)]
        self._n_updates += gradient_steps
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        self.logger.record("train/loss", np.mean(losses))

    def _update(self, batch_size: int) -> float:
        """One minibatch; returns its loss."""
        drawn = self.replay_buffer.sample(batch_size, env=self._vec_normalize_env)
        weights = torch.as_tensor(self.replay_buffer.weights, device=self.device)
        values, targets = self._values(drawn), self._targets(drawn)
        loss = (weights * smooth_l1_loss(values, targets, reduction="none")).mean()
        self.replay_buffer.learned((values - targets).detach().abs().numpy(force=True))
        self.policy.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        clip_grad_norm_(self.policy.parameters(), self.max_grad_norm)
        self.policy.optimizer.step()
        return float(loss.item())

    def _values(self, drawn: Any) -> Tensor:
        return self.q_net(drawn.observations).gather(1, drawn.actions.long())  # type: ignore[no-any-return]

    @torch.no_grad()
    def _targets(self, drawn: Any) -> Tensor:
        discounts = self.gamma if drawn.discounts is None else drawn.discounts
        best = self.q_net_target(drawn.next_observations).amax(dim=1, keepdim=True)
        return drawn.rewards + (1 - drawn.dones) * discounts * best  # type: ignore[no-any-return]
