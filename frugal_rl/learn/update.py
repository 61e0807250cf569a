"""PPO's update, lean: the operations of Stable-Baselines3 in the same order, and nothing else.

No distribution objects, no argument checks, no number read back per minibatch; statistics are
computed once per epoch. In float32 the parameters are equal to those of `PPO.train` to the bit.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch
from stable_baselines3.common.type_aliases import DictRolloutBufferSamples as Minibatch
from torch import Tensor
from torch.nn import functional as F

from frugal_rl.doing import Work, doing
from frugal_rl.learn.ranks import Moments, Ranks

if TYPE_CHECKING:
    from frugal_rl.learn.networks import Output
    from frugal_rl.learn.on_policy_config import Terms
    from frugal_rl.learn.optimizer import FlatAdam
    from frugal_rl.learn.policy import FrugalPolicy

ALONE = Ranks()
WORTH_THREADS = 16_000_000
"""Weights times samples below which a second thread costs more than it brings."""


class Rollout(Protocol):
    """What the update needs of a rollout buffer."""

    values: np.ndarray
    returns: np.ndarray

    def order(self, batch_size: int) -> list[np.ndarray]:
        """The samples of each minibatch, in a fresh random order."""

    def advantages_at(self, indices: np.ndarray) -> Tensor:
        """Advantages [B] of some samples."""

    def samples(self, indices: np.ndarray) -> Any:
        """One minibatch."""


@dataclass(frozen=True)
class Losses:
    """The parts of one minibatch's loss; scalars, but for `log_ratio` [B]."""

    total: Tensor
    policy: Tensor
    value: Tensor
    entropy: Tensor
    log_ratio: Tensor
    metrics: dict[str, Tensor]


def normalised(
    advantages: Tensor, terms: Terms, ranks: Ranks = ALONE, moments: Moments | None = None
) -> Tensor:
    """Zero mean and unit deviation over the minibatch of all ranks; one sample stays as it is.

    Those of all ranks are asked for where they are not known yet (`moments`).
    """
    if not terms.normalize_advantage or len(advantages) * ranks.size < 2:
        return advantages
    mean, deviation = moments or ranks.moments([advantages])[0]
    return (advantages - mean) / (deviation + 1e-8)


def ppo_loss(policy: FrugalPolicy, batch: Minibatch, advantages: Tensor, terms: Terms) -> Losses:
    """Clipped surrogate, value and entropy losses (Schulman et al. 2017), as in SB3's `train`."""
    return loss_of(policy, policy.outputs(batch.observations), batch, advantages, terms)


def loss_of(
    policy: FrugalPolicy, out: Output, batch: Minibatch, advantages: Tensor, terms: Terms
) -> Losses:
    """`ppo_loss` of what the network gave already, `out.losses` added."""
    log_prob, entropy = policy.head.evaluate(out.logits, batch.actions, terms.ent_coef != 0)
    log_ratio = log_prob - batch.old_log_prob
    ratio = torch.exp(log_ratio)
    clip = terms.clip_range
    clipped = advantages * torch.clamp(ratio, 1 - clip, 1 + clip)
    policy_loss = -torch.min(advantages * ratio, clipped).mean()
    value_loss = F.mse_loss(batch.returns, _clipped_values(out.value.flatten(), batch, terms))
    entropy_loss = -torch.mean(entropy)
    total = policy_loss + terms.ent_coef * entropy_loss + terms.vf_coef * value_loss
    for extra in out.losses.values():
        total = total + extra
    metrics = {**out.losses, **out.metrics}
    return Losses(
        total,
        policy_loss.detach(),
        value_loss.detach(),
        entropy_loss.detach(),
        log_ratio.detach(),
        {k: v.detach() for k, v in metrics.items()},
    )


def _clipped_values(values: Tensor, batch: Minibatch, terms: Terms) -> Tensor:
    if terms.clip_range_vf is None:
        return values
    change = torch.clamp(values - batch.old_values, -terms.clip_range_vf, terms.clip_range_vf)
    return batch.old_values + change


def split(batch: Minibatch, advantages: Tensor, size: int) -> Iterator[tuple[Minibatch, Tensor]]:
    """Pieces of `size` samples as views, and their advantages; size 0 keeps the minibatch whole."""
    if size <= 0 or size >= len(advantages):
        yield batch, advantages
        return
    for start in range(0, len(advantages), size):
        s = slice(start, start + size)
        observations = {k: v[s] for k, v in batch.observations.items()}
        yield Minibatch(observations, *(column[s] for column in batch[1:])), advantages[s]


class Update:
    """All epochs of one update; gradients are accumulated over micro-batches where asked for."""

    def __init__(self, policy: FrugalPolicy, optimizer: FlatAdam, micro_batch: int = 0) -> None:
        self.policy = policy
        self.optimizer = optimizer
        self.micro_batch = micro_batch
        self.ranks = ALONE

    def whole(self) -> Update:
        """The same without micro-batches."""
        return Update(self.policy, self.optimizer)

    def run(
        self, rollout: Rollout, batch_size: int, n_epochs: int, terms: Terms
    ) -> dict[str, float]:
        """Learn from a rollout; returns the metrics that Stable-Baselines3 logs."""
        self.policy.set_training_mode(True)
        record = Record()
        count = n_epochs * -(-np.size(rollout.returns) // batch_size)
        with doing("updating", count, "minibatches") as work:
            for _ in range(n_epochs):
                record.new_epoch()
                if not self.epoch(rollout, rollout.order(batch_size), terms, record, work):
                    break
        return record.summary(rollout, terms)

    def epoch(
        self,
        rollout: Rollout,
        order: list[np.ndarray],
        terms: Terms,
        record: Record,
        work: Work,
    ) -> bool:
        """Learn from each sample once; False where `target_kl` ends the update."""
        moments = iter(self.moments(rollout, order, terms))
        for batch in self.minibatches(rollout, order):
            goes_on = self.learn(batch, terms, record, next(moments))
            del batch  # else the next one would be drawn beside it
            work.done += 1
            if not goes_on:
                return False
        return True

    def minibatches(self, rollout: Rollout, order: list[np.ndarray]) -> Iterator[Any]:
        """Those of one epoch, each drawn when the one before has been learned from."""
        return map(rollout.samples, order)

    def moments(
        self, rollout: Rollout, order: Sequence[np.ndarray], terms: Terms
    ) -> Sequence[Moments | None]:
        """Those of an epoch's advantages, by minibatch, in one message; alone each has its own."""
        if self.ranks.size == 1 or not terms.normalize_advantage:
            return [None] * len(order)
        return self.ranks.moments([rollout.advantages_at(indices) for indices in order])

    def learn(
        self, batch: Minibatch, terms: Terms, record: Record, moments: Moments | None = None
    ) -> bool:
        """One minibatch; False where `target_kl` stops the update before its step."""
        self.differentiate(batch, terms, record, moments)
        if terms.target_kl is not None and self.mean_kl(record) > 1.5 * terms.target_kl:
            return False
        self.ranks.average(self.optimizer.gradient)
        self.optimizer.step(terms.max_grad_norm)
        return True

    def differentiate(
        self, batch: Minibatch, terms: Terms, record: Record, moments: Moments | None
    ) -> None:
        """The gradient of one minibatch's loss into the optimiser's."""
        advantages = normalised(batch.advantages, terms, self.ranks, moments)
        self.optimizer.zero_grad()
        pieces = list(split(batch, advantages, self.micro_batch))
        for piece, piece_advantages in pieces:
            losses = self.loss(piece, piece_advantages, terms)
            share = len(piece_advantages) / len(advantages)
            (losses.total if len(pieces) == 1 else losses.total * share).backward()  # type: ignore[no-untyped-call]
            record.add(losses, share)
            del losses  # else what it was made of would lie beside the next piece

    def loss(self, batch: Minibatch, advantages: Tensor, terms: Terms) -> Losses:
        """What is minimised; a learner that learns from more than rewards adds to it."""
        return ppo_loss(self.policy, batch, advantages, terms)

    def parts(self) -> dict[str, int]:
        """Bytes held between updates, by name."""
        return {}

    def mean_kl(self, record: Record) -> float:
        """Divergence of the last minibatch, over all ranks: they stop together."""
        kl = torch.tensor(record.last_kl(), dtype=torch.float64)
        self.ranks.average(kl)
        return float(kl)


class Record:
    """Losses of one update, kept as they come, tensors or arrays, and read once at its end."""

    def __init__(self) -> None:
        self.losses: list[Tensor | np.ndarray] = []
        self.weights: list[float] = []
        self.log_ratios: list[Tensor | np.ndarray] = []
        self.metrics: dict[str, list[Tensor]] = {}

    def new_epoch(self) -> None:
        """Ratios are looked at for the last epoch only."""
        self.log_ratios.clear()

    def add(self, losses: Losses, share: float) -> None:
        """One minibatch, or `share` of one."""
        parts = (losses.policy, losses.value, losses.entropy, losses.total.detach())
        self.keep(torch.stack(parts), losses.log_ratio, share)
        for name, value in losses.metrics.items():
            self.metrics.setdefault(name, []).append(value)

    def keep(
        self, parts: Tensor | np.ndarray, log_ratio: Tensor | np.ndarray, share: float
    ) -> None:
        """The same as the losses [4] of policy, value, entropy and in total."""
        self.losses.append(parts)
        self.weights.append(share)
        self.log_ratios.append(log_ratio)

    def last_kl(self) -> float:
        """Approximate KL divergence of the last minibatch (http://joschu.net/blog/kl-approx.html)."""
        share, count = 0.0, 0
        while share < 0.9999 and count < len(self.weights):
            count += 1
            share += self.weights[-count]
        return approximate_kl(torch.cat(_tensors(self.log_ratios[-count:])))

    def summary(self, rollout: Rollout, terms: Terms) -> dict[str, float]:
        """Means over minibatches; ratios over the last epoch."""
        losses, log_ratio = torch.stack(_tensors(self.losses)), torch.cat(_tensors(self.log_ratios))
        weights = torch.tensor(self.weights).to(losses.device)
        means = (losses * weights[:, None]).sum(0) / weights.sum()
        policy, value, entropy, total = means.tolist()
        far = (torch.exp(log_ratio) - 1).abs() > terms.clip_range
        metrics = {
            "train/policy_loss": policy,
            "train/value_loss": value,
            "train/entropy": -entropy,
            "train/loss": total,
            "train/clip_fraction": far.float().mean().item(),
            "train/approx_kl": approximate_kl(log_ratio),
            "train/explained_variance": explained_variance(rollout.values, rollout.returns),
        }
        for name, values in self.metrics.items():
            metrics[f"train/{name}"] = torch.stack(values).mean().item()
        return metrics


def _tensors(kept: Sequence[Tensor | np.ndarray]) -> list[Tensor]:
    """Arrays as tensors of the same memory."""
    return [torch.as_tensor(each) for each in kept]


def approximate_kl(log_ratio: Tensor) -> float:
    """KL divergence of old from new policy, by its non-negative estimator."""
    return ((torch.exp(log_ratio) - 1) - log_ratio).mean().item()


def explained_variance(values: np.ndarray, returns: np.ndarray) -> float:
    """1 - Var[returns - values] / Var[returns]; NaN where returns do not vary."""
    spread = float(np.var(returns))
    return float("nan") if spread == 0 else 1 - float(np.var(returns - values)) / spread


def update_threads(wanted: int, policy: torch.nn.Module, samples: int, processes: int = 1) -> int:
    """Torch threads while updating: as many as wanted; for 0 all cores, or one for little work.

    Several processes of a run on this machine share its cores. The rule looks at sizes only, so
    that equal runs stay equal to the bit on one machine.
    """
    weights = sum(p.numel() for p in policy.parameters())
    if wanted or weights * samples < WORTH_THREADS:
        return wanted or 1
    known = hasattr(os, "sched_getaffinity")
    cores = len(os.sched_getaffinity(0)) if known else os.cpu_count() or 1
    return max(1, cores // processes)
