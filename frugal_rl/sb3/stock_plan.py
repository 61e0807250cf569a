"""What a run of stock Stable-Baselines3 will hold, with and without our rollout, before it starts.

Arithmetic on the spaces and on the network's parameters; the activations of two samples are
counted and scaled. The process as it is (interpreter, libraries, environments) is measured.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from gymnasium import spaces

from frugal_rl.errors import MemoryBudgetError
from frugal_rl.memory.usage import resident_bytes
from frugal_rl.observation.found_spec import FoundSpec
from frugal_rl.sb3.rollout import as_bytes
from frugal_rl.store.found.trial import load_kernels
from frugal_rl.store.layout import columns_of_space, scalar_bytes

SCALAR_BYTES = 6 * 4
"""SB3 keeps six float32 per transition beside observation and action."""
PROBED = 2
"""Samples whose activations are counted."""


@dataclass(frozen=True)
class StockPlan:
    """Bytes by part; `stock` and `compact` are the peaks of the two runs."""

    process: int
    kernels: int
    stock_rollout: int
    stock_flattening: int
    compact_rollout: int
    parameters: int
    update: int

    @property
    def stock(self) -> int:
        """Peak of the stock run: the rollout is copied while it is flattened."""
        copied = max(self.stock_flattening, self.update)
        return self.process + self.stock_rollout + self.parameters + copied

    @property
    def compact(self) -> int:
        """Peak of the run with `**compact(env)`."""
        return self.process + self.kernels + self.compact_rollout + self.parameters + self.update

    def __str__(self) -> str:
        rows = [
            ("the process as it is", self.process, self.process),
            ("our compiled code", 0, self.kernels),
            ("rollout", self.stock_rollout, self.compact_rollout),
            ("its copy while it is flattened", self.stock_flattening, 0),
            ("parameters, gradients, optimiser", self.parameters, self.parameters),
            ("a minibatch and its activations", self.update, self.update),
            ("peak", self.stock, self.compact),
        ]
        lines = [f"{'MiB':34}{'stock':>10}{'compact':>10}"]
        lines += [f"{name:34}{a / 2**20:10,.1f}{b / 2**20:10,.1f}" for name, a, b in rows]
        return "\n".join(lines)


def plan_stock(
    algorithm: Any,
    policy: Any,
    env: Any,
    *,
    n_steps: int,
    batch_size: int = 64,
    studied: FoundSpec | None = None,
    budget: str | int | None = None,
    **keywords: Any,
) -> StockPlan:
    """The peak of `algorithm(policy, env, n_steps=..., ...)` by part; nothing of it is allocated.

    Args:
        algorithm: PPO or A2C of Stable-Baselines3.
        policy: its policy, as the model is given it.
        env: the environment.
        n_steps: steps per rollout and environment.
        batch_size: samples per minibatch; A2C takes the whole rollout.
        studied: what `study` found of this environment; without it rows count as they are.
        budget: the most that the process may hold.
        keywords: whatever else the model is given.

    Raises:
        MemoryBudgetError: the run with our rollout does not fit `budget`; names an n_steps that
            does.
    """
    with warnings.catch_warnings():  # a rollout of two steps is no whole minibatch
        warnings.simplefilter("ignore", UserWarning)
        model = algorithm(policy, env, **keywords | {"n_steps": PROBED, "device": "cpu"})
    space, num_envs = model.observation_space, model.n_envs
    columns, shares = columns_of_space(space), studied or FoundSpec({})
    leaf_bytes = {c.name: c.nbytes(n_steps, num_envs) for c in columns}
    action = model.rollout_buffer.actions[0, 0].nbytes
    found = sum(
        math.ceil(b * shares.share("observation" if name == "obs" else name))
        for name, b in leaf_bytes.items()
    )
    samples = batch_size if hasattr(model, "batch_size") else n_steps * num_envs
    update = math.ceil(sample_bytes(model) * samples)
    process = resident_bytes()
    load_kernels()
    plan = StockPlan(
        process=process,
        kernels=max(0, resident_bytes() - process),
        stock_rollout=sum(leaf_bytes.values()) + n_steps * num_envs * (SCALAR_BYTES + action),
        stock_flattening=max(leaf_bytes.values()),
        compact_rollout=found + scalar_bytes(n_steps, num_envs, model.action_space),
        parameters=3 * sum(p.nbytes for p in model.policy.parameters()),
        update=update,
    )
    _check(plan, as_bytes(budget), n_steps)
    return plan


def sample_bytes(model: Any) -> float:
    """Bytes of one sample in an update: as drawn, as float32, and what the backward pass keeps."""
    space = model.observation_space
    entries = space.spaces if isinstance(space, spaces.Dict) else {"": space}
    drawn = {name: _samples(inner) for name, inner in entries.items()}
    kept: dict[int, int] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    actions = _samples(model.action_space)
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        observations = drawn if isinstance(space, spaces.Dict) else drawn[""]
        model.policy.evaluate_actions(observations, actions)
    parameters = {p.untyped_storage().data_ptr() for p in model.policy.parameters()}
    activations = sum(size for place, size in kept.items() if place not in parameters)
    given = sum(t.nbytes for t in drawn.values())
    return (activations + given) / PROBED


def _samples(space: spaces.Space[Any]) -> torch.Tensor:
    return torch.as_tensor(np.stack([space.sample() for _ in range(PROBED)]))


def _check(plan: StockPlan, budget: int | None, n_steps: int) -> None:
    if budget is None or plan.compact <= budget:
        return
    room = budget - (plan.compact - plan.compact_rollout)
    fits = int(n_steps * max(0, room) / plan.compact_rollout)
    advice = f"n_steps={fits} fits" if fits else "no n_steps fits; raise it or shrink the policy"
    raise MemoryBudgetError(
        f"The run is planned at {plan.compact / 2**20:,.1f} MiB ({plan.stock / 2**20:,.1f} without "
        f"compact), above the budget of {budget / 2**20:,.1f} MiB: {advice}."
    )
