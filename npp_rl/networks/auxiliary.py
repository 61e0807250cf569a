"""Auxiliary tasks: labels from the time-ordered rollout, heads on the actor's latent.

Labels are made once, when a rollout ends, while rows are still in order; they then travel with
their samples. Where the future lies beyond the rollout a label is missing, never guessed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from numba import njit
from torch import Tensor, nn
from torch.nn import functional as F

if TYPE_CHECKING:
    from npp_rl.config import AuxiliaryTasks

MISSING = -1
DEATH, STEPS, NEXT = "aux_death", "aux_milestone_steps", "aux_next_objective"
OBJECTIVES = 34


@dataclass(frozen=True)
class Labels:
    """Labels [T, N]; `MISSING` where the rollout ends before the answer is known.

    death            int8   1 if the episode ends in death within `death_steps`
    milestone_steps  int16  steps until the next milestone of the same episode
    next_objective   int8   which one it is, 0 to 33
    """

    death: np.ndarray
    milestone_steps: np.ndarray
    next_objective: np.ndarray

    def columns(self) -> dict[str, np.ndarray]:
        """By the names under which the network finds them."""
        return {DEATH: self.death, STEPS: self.milestone_steps, NEXT: self.next_objective}


def label_rollout(
    died: np.ndarray, done: np.ndarray, milestone: np.ndarray, death_steps: int = 10
) -> Labels:
    """Labels of a rollout in time order.

    Args:
        died: [T, N] bool, the step's outcome was death.
        done: [T, N] bool, the step ended the episode.
        milestone: [T, N] int8, objective (0 to 33) that the step reached, -1 for none.
        death_steps: How far ahead a death counts; the dying step itself is 1 step ahead.
    """
    shape = died.shape
    labels = Labels(np.empty(shape, np.int8), np.empty(shape, np.int16), np.empty(shape, np.int8))
    _label(
        died,
        done,
        milestone,
        death_steps,
        labels.death,
        labels.milestone_steps,
        labels.next_objective,
    )
    return labels


@njit(cache=True)
def _label(died, done, milestone, death_steps, death, steps, following):
    """One pass backwards in time per environment; see `label_rollout` and `Labels`."""
    T, N = died.shape
    for n in range(N):
        to_death, to_milestone, objective, to_end = -1, -1, MISSING, -1
        for t in range(T - 1, -1, -1):
            if done[t, n]:
                to_death, to_milestone, objective, to_end = -1, -1, MISSING, 0
            to_end = to_end + 1 if to_end >= 0 else -1
            to_death = 1 if died[t, n] else (to_death + 1 if to_death >= 0 else -1)
            to_milestone = to_milestone + 1 if to_milestone >= 0 else -1
            if milestone[t, n] >= 0:
                to_milestone, objective = 1, milestone[t, n]
            ahead = to_end if to_end >= 0 else T - t  # steps of this episode that are known
            soon = 0 < to_death <= death_steps
            known = soon or to_end >= 0 or ahead >= death_steps
            death[t, n] = (1 if soon else 0) if known else MISSING
            steps[t, n] = min(to_milestone, 32767) if to_milestone >= 0 else MISSING
            following[t, n] = objective


class AuxiliaryHeads(nn.Module):
    """Linear heads on the actor's latent [B, D], one per task with a weight."""

    def __init__(self, tasks: AuxiliaryTasks, latent: int) -> None:
        super().__init__()
        self.weights = {DEATH: tasks.death, STEPS: tasks.milestone, NEXT: tasks.objective}
        self.death_steps = tasks.death_steps
        sizes = {DEATH: 1, STEPS: 1, NEXT: OBJECTIVES}
        self.heads = nn.ModuleDict(
            {name: nn.Linear(latent, sizes[name]) for name, w in self.weights.items() if w > 0}
        )

    def labels(
        self, died: np.ndarray, done: np.ndarray, milestone: np.ndarray
    ) -> dict[str, np.ndarray]:
        """Labels [T, N] of the tasks that have a head; see `label_rollout`."""
        made = label_rollout(died, done, milestone, self.death_steps).columns()
        return {name: made[name] for name in self.heads}

    @classmethod
    def build(cls, tasks: AuxiliaryTasks, latent: int) -> AuxiliaryHeads | None:
        """None where every weight is 0."""
        heads = cls(tasks, latent)
        return heads if len(heads.heads) else None

    def losses(self, latent: Tensor, fields: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Weighted losses over the samples whose label is known; none before labels exist."""
        rows: Mapping[str, Tensor] = getattr(fields, "rows", fields)
        return {
            f"{name}_loss": self.weights[name] * _loss(name, head(latent), rows[name].reshape(-1))
            for name, head in self.heads.items()
            if name in rows
        }


def _loss(name: str, output: Tensor, label: Tensor) -> Tensor:
    known = label != MISSING
    if not bool(known.any()):
        return output.sum() * 0.0
    output, label = output[known].float(), label[known]
    if name == DEATH:
        return F.binary_cross_entropy_with_logits(output.squeeze(1), label.float())
    if name == STEPS:
        return F.smooth_l1_loss(output.squeeze(1), torch.log1p(label.float()))
    return F.cross_entropy(output, label.long())
