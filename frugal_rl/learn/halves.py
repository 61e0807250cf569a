"""Actor and critic learn side by side: two threads, and the numbers of one.

Torch shares out each operation among its threads: products of matrices that small end before a
second thread has woken, and sums over a minibatch are rounded otherwise than on one thread. Actor
and critic need nothing of each other but their features, so here each of them runs forward and
backward on a thread of its own, and what both give back to the features is added up.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from stable_baselines3.common.type_aliases import DictRolloutBufferSamples as Minibatch
from torch import Tensor

from frugal_rl.learn.update import Losses, Record, Update, policy_terms, split, value_term

if TYPE_CHECKING:
    from frugal_rl.learn.networks import Halves
    from frugal_rl.learn.on_policy_config import OnPolicyConfig, Terms
    from frugal_rl.learn.optimizer import FlatAdam
    from frugal_rl.learn.policy import FrugalPolicy


def halves_of(policy: FrugalPolicy, config: OnPolicyConfig) -> Halves | None:
    """Both halves, where they may run side by side; None where something ties them to one thread.

    Autocast and recomputed activations keep what they need per process, not per thread.
    """
    tied = policy.bf16 or policy.network.recompute or config.compile
    return None if tied or policy.device.type != "cpu" else policy.network.halves()


@dataclass(frozen=True)
class Shared:
    """What both halves read: features, and leaves of them that gather each half's gradient."""

    features: Tensor
    of_actor: Tensor
    of_critic: Tensor

    @classmethod
    def of(cls, features: Tensor) -> Shared:
        """Leaves need a gradient where the features do."""
        needed = features.requires_grad
        leaves = (features.detach().requires_grad_(needed) for _ in range(2))
        return cls(features, *leaves)

    def backward(self) -> None:
        """Both gradients on into what made the features; a sum of two has no order."""
        if self.features.requires_grad:
            assert self.of_actor.grad is not None
            assert self.of_critic.grad is not None
            self.features.backward(self.of_actor.grad + self.of_critic.grad)  # type: ignore[no-untyped-call]


class HalvesUpdate(Update):
    """PPO's update with the critic on a second thread; parameters equal `Update`'s to the bit.

    Args:
        policy: the policy.
        optimizer: steps its parameters.
        micro_batch: as in `Update`.
        halves: the network's.
        threads: of torch, for both halves together.
    """

    def __init__(
        self,
        policy: FrugalPolicy,
        optimizer: FlatAdam,
        micro_batch: int,
        halves: Halves,
        threads: int,
    ) -> None:
        super().__init__(policy, optimizer, micro_batch)
        self.halves, self.threads = halves, threads
        self.each = max(1, threads // 2)
        self.second = ThreadPoolExecutor(1, "critic", torch.set_num_threads, (self.each,))

    def whole(self) -> HalvesUpdate:
        """The same without micro-batches."""
        return HalvesUpdate(self.policy, self.optimizer, 0, self.halves, self.threads)

    def learn(self, batch: Minibatch, terms: Terms, record: Record) -> bool:
        """One minibatch; False where `target_kl` stops the update before its step."""
        torch.set_num_threads(self.each)
        return super().learn(batch, terms, record)

    def differentiate(
        self, batch: Minibatch, advantages: Tensor, terms: Terms, record: Record
    ) -> None:
        """The gradient of one minibatch's loss into the optimiser's."""
        self.optimizer.zero_grad()
        for piece, piece_advantages in split(batch, advantages, self.micro_batch):
            share = len(piece_advantages) / len(advantages)
            record.add(self._side_by_side(piece, piece_advantages, terms, share), share)

    def _side_by_side(
        self, batch: Minibatch, advantages: Tensor, terms: Terms, share: float
    ) -> Losses:
        """Losses of a piece of the minibatch, whose gradients have been added by then."""
        fields = self.policy.extract_features(batch.observations)
        shared = Shared.of(self.halves.features(fields))
        mask = self.policy.mask_of(fields)

        def critic() -> Tensor:
            value = self.halves.value(shared.of_critic).float()
            loss = value_term(value.flatten(), batch, terms)
            scaled(terms.vf_coef * loss, share).backward()  # type: ignore[no-untyped-call]
            return loss.detach()

        later = self.second.submit(critic)
        try:
            logits = self.policy.masked(self.halves.logits(shared.of_actor), mask)
            policy, entropy, log_ratio = policy_terms(self.policy, logits, batch, advantages, terms)
            acting = policy + terms.ent_coef * entropy
            scaled(acting, share).backward()  # type: ignore[no-untyped-call]
        finally:
            wait([later])  # nobody writes gradients that the caller takes for whole
        value = later.result()
        shared.backward()
        total = acting.detach() + terms.vf_coef * value
        return Losses(total, policy.detach(), value, entropy.detach(), log_ratio.detach(), {})


def scaled(loss: Tensor, share: float) -> Tensor:
    """A piece's share of its minibatch's loss."""
    return loss if share == 1.0 else loss * share
