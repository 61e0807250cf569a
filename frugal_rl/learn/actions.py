"""What a policy's last layer means: sampling, log-probability and entropy of actions.

Discrete and box actions repeat the arithmetic of Stable-Baselines3's distributions operation by
operation, so that numbers are equal to the bit, without their objects and argument checks.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import torch
from gymnasium import spaces
from stable_baselines3.common.distributions import (
    Distribution,
    make_proba_distribution,
)
from torch import Tensor, nn

HALF_LOG_TWO_PI = math.log(math.sqrt(2 * math.pi))


class ActionHead(nn.Module, ABC):
    """Reads the policy's output [B, size] as a distribution over actions."""

    size: int
    """Numbers that the network must give per sample."""

    @abstractmethod
    def act(self, output: Tensor, deterministic: bool) -> tuple[Tensor, Tensor]:
        """Actions [B, ...] and their log-probability [B]."""

    @abstractmethod
    def evaluate(self, output: Tensor, actions: Tensor, entropy: bool) -> tuple[Tensor, Tensor]:
        """Log-probability [B] and entropy [B] of given actions; no gradient without `entropy`."""

    @abstractmethod
    def distribution(self, output: Tensor) -> Distribution:
        """The same as Stable-Baselines3's object."""


def mask_logits(logits: Tensor, mask: Tensor | None) -> Tensor:
    """Forbidden actions get the dtype's minimum: probability 0, no gradient, no NaN."""
    if mask is None:
        return logits
    return torch.where(mask.bool(), logits, torch.finfo(logits.dtype).min)


class CategoricalHead(ActionHead):
    """One of n actions; the output holds logits."""

    def __init__(self, space: spaces.Discrete) -> None:
        super().__init__()
        self.size = int(space.n)

    def act(self, output: Tensor, deterministic: bool) -> tuple[Tensor, Tensor]:
        """Output [B, n] -> actions [B] int64, log-probability [B]."""
        logits = output - output.logsumexp(dim=-1, keepdim=True)
        probs = torch.softmax(logits, dim=-1)
        if deterministic:
            actions = probs.argmax(dim=1)
        else:
            actions = torch.multinomial(probs, 1, True).reshape(-1)
        return actions, logits.gather(-1, actions.unsqueeze(-1)).squeeze(-1)

    def evaluate(self, output: Tensor, actions: Tensor, entropy: bool) -> tuple[Tensor, Tensor]:
        """Output [B, n], actions [B] int64."""
        logits = output - output.logsumexp(dim=-1, keepdim=True)
        log_prob = logits.gather(-1, actions.reshape(-1, 1).long()).squeeze(-1)
        with torch.set_grad_enabled(entropy and torch.is_grad_enabled()):
            spread = -(logits * torch.softmax(logits, dim=-1)).sum(-1)
        return log_prob, spread

    def distribution(self, output: Tensor) -> Distribution:
        """The same as Stable-Baselines3's object."""
        return make_proba_distribution(spaces.Discrete(self.size)).proba_distribution(
            action_logits=output
        )


class GaussianHead(ActionHead):
    """Continuous actions, independent normals; the output holds means, the deviation is learned."""

    def __init__(self, space: spaces.Box) -> None:
        super().__init__()
        self.space = space
        self.size = math.prod(space.shape)
        self.log_std = nn.Parameter(torch.zeros(self.size))

    def act(self, output: Tensor, deterministic: bool) -> tuple[Tensor, Tensor]:
        """Output [B, A] -> actions [B, A], not clipped, log-probability [B]."""
        std = torch.ones_like(output) * self.log_std.exp()
        noise = 0.0 if deterministic else torch.normal(torch.zeros_like(output), 1.0) * std
        actions = output + noise
        return actions, self._log_prob(output, std, actions)

    def evaluate(self, output: Tensor, actions: Tensor, entropy: bool) -> tuple[Tensor, Tensor]:
        """Output [B, A], actions [B, A]."""
        std = torch.ones_like(output) * self.log_std.exp()
        log_prob = self._log_prob(output, std, actions.reshape(output.shape))
        with torch.set_grad_enabled(entropy and torch.is_grad_enabled()):
            spread = (0.5 + 0.5 * math.log(2 * math.pi) + torch.log(std)).sum(dim=1)
        return log_prob, spread

    @staticmethod
    def _log_prob(mean: Tensor, std: Tensor, actions: Tensor) -> Tensor:
        log_prob = -((actions - mean) ** 2) / (2 * std**2) - std.log() - HALF_LOG_TWO_PI
        return log_prob.sum(dim=1)

    def distribution(self, output: Tensor) -> Distribution:
        """The same as Stable-Baselines3's object."""
        return make_proba_distribution(self.space).proba_distribution(output, self.log_std)


class FactoredHead(ActionHead):
    """Several discrete or binary choices at once, by Stable-Baselines3's distributions."""

    def __init__(self, space: spaces.MultiDiscrete | spaces.MultiBinary) -> None:
        super().__init__()
        self.space = space
        if isinstance(space, spaces.MultiDiscrete):
            self.size = int(space.nvec.sum())
        else:
            self.size = math.prod(space.shape)

    def act(self, output: Tensor, deterministic: bool) -> tuple[Tensor, Tensor]:
        """Actions [B, choices] and their log-probability [B]."""
        distribution = self.distribution(output)
        actions = distribution.get_actions(deterministic=deterministic)
        return actions, distribution.log_prob(actions)

    def evaluate(self, output: Tensor, actions: Tensor, entropy: bool) -> tuple[Tensor, Tensor]:
        """Output [B, size], actions [B, choices]."""
        distribution = self.distribution(output)
        log_prob = distribution.log_prob(actions)
        spread = distribution.entropy()
        assert spread is not None
        return log_prob, spread if entropy else spread.detach()

    def distribution(self, output: Tensor) -> Distribution:
        """Stable-Baselines3's object."""
        return make_proba_distribution(self.space).proba_distribution(action_logits=output)


def action_head(space: spaces.Space[object]) -> ActionHead:
    """The head for an action space."""
    if isinstance(space, spaces.Discrete):
        return CategoricalHead(space)
    if isinstance(space, spaces.Box):
        return GaussianHead(space)
    if isinstance(space, spaces.MultiDiscrete | spaces.MultiBinary):
        return FactoredHead(space)
    raise TypeError(
        f"PPO has no action head for {type(space).__name__}; use Discrete, Box, MultiDiscrete or "
        "MultiBinary actions."
    )
