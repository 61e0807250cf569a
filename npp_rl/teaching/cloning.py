"""Behaviour cloning: cross-entropy on an expert's actions, the value on what the expert earned."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from frugal_rl.doing import doing
from frugal_rl.learn.update import ALONE
from frugal_rl.observation.decoder import to_tensors
from npp_rl.teaching.shares import Samples

if TYPE_CHECKING:
    from frugal_rl.learn.policy import FrugalPolicy
    from frugal_rl.learn.ranks import Ranks
    from npp_rl.teaching.config import Cloning
    from npp_rl.teaching.demonstrations import Demonstrations


@dataclass(frozen=True)
class Epoch:
    """What one pass gave: cross-entropy and accuracy on both parts."""

    loss: float
    accuracy: float
    validation_loss: float
    validation_accuracy: float


def split_levels(
    demos: Demonstrations | Samples, share: float, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Indices of samples to learn from and to judge by; a level is in one of them only."""
    levels = np.unique(demos.level)
    chosen = np.random.default_rng(seed).permutation(levels)[: int(len(levels) * share)]
    held = np.isin(demos.level, chosen)
    return np.flatnonzero(~held), np.flatnonzero(held)


def clone(
    policy: FrugalPolicy,
    demos: Demonstrations,
    config: Cloning,
    report: Callable[[int, Epoch], Any] = lambda number, epoch: None,
    ranks: Ranks = ALONE,
) -> list[Epoch]:
    """Teach `policy` the expert's actions; its tables must be those of `demos`.

    Several ranks, each with demonstrations of its own, learn what one would from all of them.
    """
    samples = Samples.of(demos, ranks)
    learn, judge = split_levels(samples, config.validation, config.seed)
    optimizer = torch.optim.AdamW(
        policy.parameters(), config.learning_rate, weight_decay=config.weight_decay
    )
    slower = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=2, factor=0.5)
    rng = np.random.default_rng(config.seed)
    best, best_loss, since, history = None, float("inf"), 0, []
    size = config.batch_size
    for number in range(config.epochs):
        policy.set_training_mode(True)
        order = rng.permutation(learn)
        losses = []
        words = f"imitating, pass {number + 1} of {config.epochs}"
        with doing(words, -(-len(order) // size), "minibatches") as work:
            for i in range(0, len(order), size):
                batch = order[i : i + size]
                losses.append(_learn(policy, demos, batch, config, samples, optimizer))
                work.done += 1
        loss, accuracy = samples.ranks.summed(np.mean(losses, axis=0))
        judged = float(loss), float(accuracy)
        if len(judge):
            judged = _judge(policy, demos, samples, judge)
        history.append(Epoch(float(loss), float(accuracy), *judged))
        report(number, history[-1])
        slower.step(judged[0])
        if judged[0] < best_loss:
            best, best_loss, since = copy.deepcopy(policy.state_dict()), judged[0], 0
        else:
            since += 1
            if since >= config.patience:
                break
    if best is not None:
        policy.load_state_dict(best)
    return history


def _learn(
    policy: FrugalPolicy,
    demos: Demonstrations,
    index: np.ndarray,
    config: Cloning,
    samples: Samples,
    optimizer: torch.optim.Optimizer,
) -> tuple[float, float]:
    """One step; what this rank's samples add to cross-entropy and accuracy of the minibatch."""
    optimizer.zero_grad()
    own = samples.here(index)
    told = (0.0, 0.0)
    if len(own):
        told = _differentiate(policy, demos, own, config, samples.scale, len(own) / len(index))
    samples.sum_gradients(list(policy.parameters()))
    torch.nn.utils.clip_grad_norm_(policy.parameters(), config.max_grad_norm)
    optimizer.step()
    return told


def _differentiate(
    policy: FrugalPolicy,
    demos: Demonstrations,
    index: np.ndarray,
    config: Cloning,
    scale: float,
    share: float,
) -> tuple[float, float]:
    """Gradients of `share` of a minibatch; its part of cross-entropy and accuracy."""
    out, actions = _output(policy, demos, index)
    error = F.cross_entropy(out.logits, actions)
    returns = torch.from_numpy(demos.returns[index]).to(actions.device) / scale
    total = error + config.value_coef * F.mse_loss(out.value.flatten(), returns)
    ((total + sum(out.losses.values())) * share).backward()
    right = (out.logits.argmax(1) == actions).float().mean()
    return float(error.detach()) * share, float(right) * share


@torch.no_grad()
def _judge(
    policy: FrugalPolicy, demos: Demonstrations, samples: Samples, index: np.ndarray
) -> tuple[float, float]:
    policy.set_training_mode(False)
    error, right, own = 0.0, 0.0, samples.here(index)
    for start in range(0, len(own), 4096):
        out, actions = _output(policy, demos, own[start : start + 4096])
        error += float(F.cross_entropy(out.logits, actions, reduction="sum"))
        right += float((out.logits.argmax(1) == actions).sum())
    error, right = samples.ranks.summed(np.array([error, right]))
    return float(error) / len(index), float(right) / len(index)


def _output(policy: FrugalPolicy, demos: Demonstrations, index: np.ndarray) -> tuple[Any, Tensor]:
    rows = {name: row[index] for name, row in demos.rows.items()}
    actions = torch.from_numpy(demos.actions[index].astype(np.int64)).to(policy.device)
    return policy.outputs(to_tensors(rows, policy.device)), actions
