"""Acting by the engine; what is sampled comes from the same random numbers as the exact one's."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch import Tensor

from frugal_rl.learn.actions import GaussianHead
from frugal_rl.learn.compiled.kernels import choose

if TYPE_CHECKING:
    from frugal_rl.learn.compiled.engine import CompiledPerceptron
    from frugal_rl.learn.networks import Network

Rows = Mapping[str, Tensor]


class CompiledActor:
    """A policy as collectors call it."""

    def __init__(self, engine: CompiledPerceptron) -> None:
        self.engine, self.policy, self.head = engine, engine.policy, engine.policy.head
        self.sizes: list[int] = np.diff(engine.net.groups).tolist()

    @property
    def device(self) -> torch.device:
        """The CPU."""
        return self.policy.device

    @property
    def network(self) -> Network:
        """The policy's."""
        return self.policy.network

    def set_training_mode(self, mode: bool) -> None:
        """Collectors say so before they act: the parameters are taken as they are then."""
        self.policy.set_training_mode(mode)
        self.engine.stale = True

    def __call__(self, obs: Rows, deterministic: bool = False) -> tuple[Tensor, Tensor, Tensor]:
        """Actions [B, ...], values [B, 1], log-probabilities [B]."""
        out, mask = self.engine.outputs_of(obs)
        if isinstance(self.head, GaussianHead):
            outputs = torch.from_numpy(out)
            actions, log_prob = self.head.act(outputs[:, :-1], deterministic)
            values = outputs[:, -1:]
        else:
            actions, values, log_prob = self._chosen(out, mask, deterministic)
        shape = cast(Any, self.policy.action_space.shape)
        return actions.reshape((-1, *shape)), values, log_prob

    def _chosen(
        self, out: np.ndarray, mask: np.ndarray, deterministic: bool
    ) -> tuple[Tensor, Tensor, Tensor]:
        """One action for each choice, by random numbers that the exact engine would draw too."""
        groups, sizes, count = self.engine.net.groups, self.sizes, len(out)
        actions = np.empty((count, len(groups) - 1), np.int64)
        values, log_prob = np.empty((2, count), np.float32)
        if deterministic:
            noise = [torch.ones(count, n) for n in sizes]
        else:
            noise = [torch.empty(count, n).exponential_() for n in sizes]
        drawn = noise[0] if len(noise) == 1 else torch.cat(noise, dim=1)
        choose(out, mask, groups, drawn.numpy(), actions, log_prob, values)
        given = (torch.from_numpy(array) for array in (actions, values[:, None], log_prob))
        return cast(tuple[Tensor, Tensor, Tensor], tuple(given))

    def predict_values(self, obs: Rows) -> Tensor:
        """Values [B, 1]."""
        return torch.from_numpy(self.engine.outputs_of(obs)[0])[:, -1:]


class FrozenActor(CompiledActor):
    """Acts by the parameters as they were at `freeze`, whatever another thread makes of them."""

    def __init__(self, engine: CompiledPerceptron) -> None:
        super().__init__(engine)
        self.head = copy.deepcopy(engine.policy.head)

    def freeze(self) -> None:
        """Take the parameters as they are now; nobody may change them meanwhile."""
        self.engine.refresh()
        self.head.load_state_dict(self.policy.head.state_dict())

    def set_training_mode(self, mode: bool) -> None:
        """The other thread's matter."""
