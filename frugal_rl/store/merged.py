"""Merged trajectories as a rollout: drawn by index, windows looked up inside each trajectory.

Imports torch: the merged items lie on the training device already.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from frugal_rl.observation.fields import EPISODE, Padding
from frugal_rl.store.kernels import advantages

if TYPE_CHECKING:
    from frugal_rl.observation.encoding import Encoding, RowSpec

_SIGNED = {torch.uint16: torch.int16, torch.uint32: torch.int32}
"""torch gathers no rows of these; their bits travel as signed."""


class MergedRollout:
    """Trajectories one behind the other, as the update draws them.

    Args:
        items: merged tensors [S, ...] by name: `action`, `reward`, `value`, `log_prob` and rows.
        lengths: steps of each trajectory, in their order; they sum to S.
        bootstrap: value behind each trajectory's last step, 0 where it terminated.
        encoding: how rows are stored.
        episode_steps: the most steps of an episode; sizes `EPISODE` windows.
    """

    def __init__(
        self,
        items: Mapping[str, Tensor],
        lengths: Sequence[int],
        bootstrap: np.ndarray,
        encoding: Encoding,
        episode_steps: int,
        gamma: float,
        gae_lambda: float,
    ) -> None:
        self.items, self.encoding, self.episode_steps = items, encoding, episode_steps
        self.device = items["reward"].device
        ends = np.cumsum(lengths)
        starts = np.zeros(int(ends[-1]), np.bool_)
        starts[np.concatenate([[0], ends[:-1]])] = True
        self.rewards = items["reward"].cpu().numpy().copy()
        self.rewards[ends - 1] += np.float32(gamma) * bootstrap
        self.values = items["value"].cpu().numpy()
        self.advantages = np.zeros_like(self.rewards)
        advantages(
            self.rewards[:, None],
            self.values[:, None],
            starts[:, None],
            np.zeros(1, np.float32),
            np.ones(1, np.bool_),
            np.float32(gamma),
            np.float32(gamma * gae_lambda),
            self.advantages[:, None],
        )
        self.returns = self.advantages + self.values
        first = np.maximum.accumulate(np.where(starts, np.arange(len(starts)), 0))
        self._age = (np.arange(len(starts)) - first).astype(np.int32)
        self._columns = {
            "old_values": items["value"],
            "old_log_prob": items["log_prob"],
            "advantages": torch.from_numpy(self.advantages).to(self.device),
            "returns": torch.from_numpy(self.returns).to(self.device),
        }
        self.age = torch.from_numpy(self._age).to(self.device)

    def __len__(self) -> int:
        return len(self.rewards)

    def order(self, batch_size: int) -> list[np.ndarray]:
        """Indices of each minibatch, in a random order drawn from NumPy's global state."""
        order = np.random.permutation(len(self))  # noqa: NPY002 - the stream that PPO draws from
        return [order[start : start + batch_size] for start in range(0, len(self), batch_size)]

    def advantages_at(self, indices: np.ndarray) -> Tensor:
        """Advantages [B] of samples, without all else."""
        return self._columns["advantages"][torch.from_numpy(indices).to(self.device)]

    def samples(self, indices: np.ndarray) -> Any:
        """SB3's sample tuple of some steps [B]."""
        from stable_baselines3.common.type_aliases import DictRolloutBufferSamples

        at = torch.from_numpy(indices).to(self.device)
        actions = self.items["action"][at].reshape(len(at), -1).float()
        columns = {name: values[at] for name, values in self._columns.items()}
        return DictRolloutBufferSamples(self.observations(at), actions, **columns)

    def observations(self, at: Tensor) -> dict[str, Tensor]:
        """Rows of steps at [B] in policy form."""
        shown = {r.name: self._shown(r, at) for r in self.encoding.rows}
        if self.encoding.windowed:
            shown["age"] = self.age[at].unsqueeze(1)
        return shown

    def _shown(self, row: RowSpec, at: Tensor) -> Tensor:
        values = self.items[row.name]
        if row.window == 1:
            return take(values, at)
        age = self.age[at].long().unsqueeze(1)
        if row.window == EPISODE:
            place = torch.arange(self.episode_steps + 1, device=self.device)
            known, step = place <= age, at.unsqueeze(1) - age + place
        else:
            back = torch.arange(row.window - 1, -1, -1, device=self.device)
            known, step = back <= age, at.unsqueeze(1) - torch.minimum(back, age)
        zeros = row.padding is Padding.zero or row.window == EPISODE
        return take(values, torch.minimum(step, at.unsqueeze(1)), ~known if zeros else None)


def take(values: Tensor, at: Tensor, blank: Tensor | None = None) -> Tensor:
    """Rows values[at], zero where `blank`; for every dtype that a row may have."""
    taken = values.view(_SIGNED.get(values.dtype, values.dtype))[at]
    if blank is not None:
        taken[blank] = 0
    return taken.view(values.dtype)
