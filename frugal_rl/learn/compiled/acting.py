"""Acting by the engine; what is sampled comes from the same random numbers as the exact one's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor

from frugal_rl.learn.actions import mask_logits

if TYPE_CHECKING:
    from frugal_rl.learn.compiled.engine import CompiledPerceptron
    from frugal_rl.learn.networks import Network

Rows = Mapping[str, Tensor]


class CompiledActor:
    """A policy as collectors call it."""

    def __init__(self, engine: CompiledPerceptron) -> None:
        self.engine, self.policy = engine, engine.policy

    @property
    def device(self) -> torch.device:
        """The CPU."""
        return self.policy.device

    @property
    def network(self) -> Network:
        """The policy's."""
        return self.policy.network

    def set_training_mode(self, mode: bool) -> None:
        """Nothing in a perceptron differs; the policy is told nevertheless."""
        self.policy.set_training_mode(mode)

    def __call__(self, obs: Rows, deterministic: bool = False) -> tuple[Tensor, Tensor, Tensor]:
        """Actions [B, ...], values [B, 1], log-probabilities [B]."""
        x, mask = self.engine.read(obs)
        logits, values = (torch.from_numpy(a) for a in self.engine.outputs_of(x))
        masked = mask_logits(logits, torch.from_numpy(mask) if mask.shape[1] else None)
        actions, log_prob = self.policy.head.act(masked, deterministic)
        shape = cast(Any, self.policy.action_space.shape)
        return actions.reshape((-1, *shape)), values[:, None], log_prob

    def predict_values(self, obs: Rows) -> Tensor:
        """Values [B, 1]."""
        x, _ = self.engine.read(obs)
        return torch.from_numpy(self.engine.outputs_of(x)[1])[:, None]
