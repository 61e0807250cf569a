"""What a run of stock Stable-Baselines3 will hold, with and without our rollout, before it starts.

Arithmetic on the spaces, on the network's parameters, and on the operations of an update, which are
run on torch's device without memory. The process as it is (interpreter, libraries, environments,
what torch loads for a first small update) is measured.
"""

from __future__ import annotations

import contextlib
import copy
import inspect
import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.preprocessing import is_image_space
from torch.distributions import Distribution

from frugal_rl.errors import ConfigError, MemoryBudgetError
from frugal_rl.learn.held import Held
from frugal_rl.memory.allocator import DYNAMIC_MOST_BYTES, kept_free_bytes
from frugal_rl.memory.usage import resident_bytes
from frugal_rl.observation.found_spec import FoundSpec
from frugal_rl.sb3.rollout import as_bytes, check_env_given
from frugal_rl.store.found.trial import load_kernels
from frugal_rl.store.layout import columns_of_space, scalar_bytes

COUNTED_BYTES = 16 << 20
"""Observations in float32 that are learned from to count an update that cannot be traced."""
SCALAR_BYTES = 6 * 4
"""SB3 keeps six float32 per transition beside observation and action."""
NATURE_SIDE = 36
"""Pixels of the smallest picture that the convolutions of `CnnPolicy` take."""
PROBED = 2
"""Samples of the first small update."""


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
    kept_free: int

    @property
    def stock(self) -> int:
        """Peak of the stock run: the rollout is copied while it is flattened."""
        copied = max(self.stock_flattening, self.update)
        return self.process + self.stock_rollout + self.parameters + copied + self.kept_free

    @property
    def compact(self) -> int:
        """Peak of the run with `**compact(env)`."""
        learning = self.parameters + self.update + self.kept_free
        return self.process + self.kernels + self.compact_rollout + learning

    def __str__(self) -> str:
        rows = [
            ("the process as it is", self.process, self.process),
            ("our compiled code", 0, self.kernels),
            ("rollout", self.stock_rollout, self.compact_rollout),
            ("its copy while it is flattened", self.stock_flattening, 0),
            ("parameters, gradients, optimiser", self.parameters, self.parameters),
            ("a minibatch and its activations", self.update, self.update),
            ("freed, and kept by the allocator", self.kept_free, self.kept_free),
            ("peak", self.stock, self.compact),
        ]
        lines = [f"{'MiB':34}{'stock':>10}{'compact':>10}"]
        lines += [f"{name:34}{a / 2**20:10,.1f}{b / 2**20:10,.1f}" for name, a, b in rows]
        if self.compact - self.compact_rollout >= self.stock:
            lines.append("So small a rollout does not pay for our code: leave compact() out.")
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
        algorithm: PPO or A2C of Stable-Baselines3, MaskablePPO or RecurrentPPO of sb3-contrib.
        policy: its policy, as the model is given it.
        env: the environment; reset it before where that loads something (a renderer), which is
            then part of the process as it is.
        n_steps: steps per rollout and environment.
        batch_size: samples per minibatch; A2C takes the whole rollout.
        studied: what `study` found of this environment; without it rows count as they are.
        budget: the most that the process may hold.
        keywords: whatever else the model is given.

    Raises:
        ConfigError: an algorithm whose updates or buffers are none of these.
        MemoryBudgetError: the run with our rollout does not fit `budget`; names an n_steps that
            does.
    """
    _check_algorithm(algorithm)
    with warnings.catch_warnings():  # a rollout of two steps is no whole minibatch
        warnings.simplefilter("ignore", UserWarning)
        model = algorithm(policy, env, **keywords | {"n_steps": PROBED, "device": "cpu"})
    space, num_envs = model.observation_space, model.n_envs
    columns, shares = columns_of_space(space), studied or FoundSpec({})
    leaf_bytes = {c.name: c.nbytes(n_steps, num_envs) for c in columns}
    arrays = [count * n_steps // PROBED for count in array_bytes(model.rollout_buffer)]
    action = model.rollout_buffer.actions[0, 0].nbytes
    scalars = n_steps * num_envs * (SCALAR_BYTES + action)
    beside = sum(arrays) - sum(leaf_bytes.values()) - scalars  # masks, states of recurrent networks
    found = sum(
        math.ceil(b * shares.share("observation" if name == "obs" else name))
        for name, b in leaf_bytes.items()
    )
    samples = n_steps * num_envs
    samples = min(batch_size, samples) if hasattr(model, "batch_size") else samples
    update, sizes = update_bytes(model, samples)
    small_update(model)
    learned = [t.nbytes for t in learned_tensors(model.policy)]
    before = resident_bytes()  # of a probe, small blocks stay in the heap, large ones go back
    process = before - sum(b for b in learned if b >= DYNAMIC_MOST_BYTES)
    load_kernels()
    plan = StockPlan(
        process=process,
        kernels=max(0, resident_bytes() - before),
        stock_rollout=sum(arrays),
        stock_flattening=max(arrays),
        compact_rollout=found + beside + scalar_bytes(n_steps, num_envs, model.action_space),
        parameters=sum(learned),
        update=update,
        kept_free=kept_free_bytes(sizes),
    )
    _check(plan, as_bytes(budget), n_steps)
    return plan


def plan_class(algorithm: Any, *given: Any, **keywords: Any) -> StockPlan:
    """`plan_stock` with whatever is left out as the algorithm has it by itself.

    Args:
        algorithm: as for `plan_stock`.
        given: the environment; before it the policy, where it is not the usual one for pictures,
            for dictionaries or for numbers. Both may be keywords.
        keywords: what the model is given, `studied` and `budget`.

    Raises:
        ConfigError: no environment or the name of one, and as `plan_stock` does.
        MemoryBudgetError: as `plan_stock` does.
    """
    _check_algorithm(algorithm)
    known = inspect.signature(algorithm).parameters
    sizes = {n: known[n].default for n in ("n_steps", "batch_size") if n in known}
    *before, env = given or (keywords.pop("env", None),)
    policy = before[0] if before else keywords.pop("policy", None)
    if env is None:
        name = algorithm.__name__
        raise ConfigError(f"plan({name}) looks at an environment: plan({name}, env, n_steps=...).")
    policy = policy or policy_for(algorithm, check_env_given(env).observation_space)
    return plan_stock(algorithm, policy, env, **sizes | keywords)


def policy_for(algorithm: Any, space: spaces.Space[Any]) -> str:
    """The name of the algorithm's policy that reads such observations."""
    sides = sorted(space.shape or ())
    picture = is_image_space(space) and sides[1] >= NATURE_SIDE
    kind = "Cnn" if picture else "MultiInput" if isinstance(space, spaces.Dict) else "Mlp"
    name: str = next(name for name in algorithm.policy_aliases if name.startswith(kind))
    return name


def _check_algorithm(algorithm: Any) -> None:
    """Only updates that this arithmetic knows."""
    names = [kind.__name__ for kind in getattr(algorithm, "__mro__", ())]
    if "OffPolicyAlgorithm" in names:
        raise ConfigError(
            f"plan_stock knows rollouts; {algorithm.__name__} keeps a replay. Give it compact(env, "
            f"algorithm={algorithm.__name__}), whose replay tells its size: docs/replay.md."
        )
    if "OnPolicyAlgorithm" not in names or "TRPO" in names:
        what = getattr(algorithm, "__name__", repr(algorithm))
        raise ConfigError(
            f"plan_stock knows the updates of PPO, A2C, MaskablePPO and RecurrentPPO, not {what}'s."
        )


def array_bytes(buffer: Any) -> list[int]:
    """Bytes of each array of a stock rollout."""
    shown = buffer.observations
    arrays = [*vars(buffer).values(), *(shown.values() if isinstance(shown, dict) else ())]
    return [a.nbytes for a in arrays if isinstance(a, np.ndarray)]


def update_bytes(model: Any, samples: int) -> tuple[int, set[int]]:
    """The most that an update of so many samples holds at once, and the sizes of what it makes.

    Operations whose results depend on values cannot be traced: then some samples are counted where
    they really are learned from, and twice as many; the rest is a straight line.
    """
    try:
        with _unvalidated():
            policy = copy.deepcopy(model.policy).to("meta")
            held = _learned(model, policy, lambda space: _shapes(space, samples))
        return held.peak, held.sizes
    except (NotImplementedError, RuntimeError, TypeError):
        few = max(PROBED, min(samples // 2, COUNTED_BYTES // _sample_bytes(model)))
        counts = few, 2 * few
        less, more = (_learned(model, model.policy, partial(_samples, n)).peak for n in counts)
        return math.ceil(less + (more - less) / few * (samples - few)), set()


def _sample_bytes(model: Any) -> int:
    """Bytes of one observation in float32."""
    return 4 * spaces.flatdim(model.observation_space)


@contextlib.contextmanager
def _unvalidated() -> Iterator[None]:
    """Distributions that do not look at their values, of which there are none."""
    before = Distribution._validate_args
    Distribution.set_default_validate_args(False)
    try:
        yield
    finally:
        Distribution.set_default_validate_args(before)


def small_update(model: Any) -> None:
    """Learn from a few samples, so that torch has loaded what an update runs."""
    _learned(model, model.policy, partial(_samples, PROBED))
    model.policy.optimizer.step()


def _learned(model: Any, policy: Any, drawn: Callable[[Any], torch.Tensor]) -> Held:
    """Forward and backward of samples that are drawn from spaces; gradients are counted apart."""
    for p in policy.parameters():
        p.grad = torch.zeros_like(p)
    space = model.observation_space
    held = Held()
    held.leave_out(learned_tensors(policy))
    with held:
        seen = (
            {name: drawn(inner) for name, inner in space.spaces.items()}
            if isinstance(space, spaces.Dict)
            else drawn(space)
        )
        actions = drawn(model.action_space)
        further = _recurrent(policy, len(actions), actions.device)
        values, likelihoods, entropies = policy.evaluate_actions(seen, actions, *further)
        terms = [t.mean() for t in (values, likelihoods, entropies) if t is not None]
        torch.stack(terms).sum().backward()  # type: ignore[no-untyped-call]
    return held


def learned_tensors(policy: Any) -> list[torch.Tensor]:
    """Parameters, their gradients and what the optimiser keeps of them."""
    parameters = list(policy.parameters())
    gradients = [p.grad for p in parameters if p.grad is not None]
    states = [v for kept in policy.optimizer.state.values() for v in kept.values()]
    return [*parameters, *gradients, *(s for s in states if isinstance(s, torch.Tensor))]


def _recurrent(policy: Any, samples: int, device: torch.device) -> tuple[Any, ...]:
    """What a recurrent policy is given beside: states before one sequence, and where it begins."""
    if not hasattr(policy, "lstm_hidden_state_shape"):
        return ()
    layers, _, features = policy.lstm_hidden_state_shape[-3:]
    state = torch.zeros(layers, 1, features, device=device)
    begins = torch.zeros(samples, device=device)
    begins[0] = 1  # sequences are read step by step where one of them begins
    kind = import_module("sb3_contrib.common.recurrent.type_aliases").RNNStates  # optional
    return kind((state, state), (state, state)), begins


def _samples(count: int, space: spaces.Space[Any]) -> torch.Tensor:
    return torch.as_tensor(np.stack([space.sample() for _ in range(count)]))


def _shapes(space: spaces.Space[Any], samples: int) -> torch.Tensor:
    one = torch.as_tensor(np.asarray(space.sample()))
    return torch.zeros((samples, *one.shape), dtype=one.dtype, device="meta")


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
