"""What an update holds, by arithmetic: its operations run on torch's device without memory.

Activations kept for the backward pass, gradients on their way, temporaries: `frugal_rl.learn.held`
counts what is alive. Nothing is computed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from stable_baselines3.common.type_aliases import DictRolloutBufferSamples as Minibatch
from torch import Tensor

from frugal_rl.learn.actions import action_head, mask_logits
from frugal_rl.learn.held import Held
from frugal_rl.learn.networks import Output
from frugal_rl.learn.on_policy_config import Engine, OnPolicyConfig
from frugal_rl.learn.optimizer import padded
from frugal_rl.learn.update import ppo_loss
from frugal_rl.memory.allocator import DYNAMIC_MOST_BYTES, MMAP_THRESHOLD_BYTES
from frugal_rl.memory.choices import Allocator, Precision
from frugal_rl.memory.probe import Probe
from frugal_rl.observation.content import Content
from frugal_rl.observation.decoder import torch_dtype
from frugal_rl.observation.mirror import RaggedRows
from frugal_rl.observation.spec import ObservationSpec, Static
from frugal_rl.observation.tables import Tables
from frugal_rl.store.layout import action_layout

if TYPE_CHECKING:
    from frugal_rl.run.config import RunConfig

META, CPU = torch.device("meta"), torch.device("cpu")
NOTHING = Content()
ADAM_COPIES = 2
"""Tensors of all weights' size that a step of Adam makes."""
CONVOLUTIONAL = (torch.nn.Conv1d, torch.nn.Conv2d, torch.nn.Conv3d)
FEW_ROWS = (1, 4)
"""Between so many static rows the cost of one more is counted or measured."""
SHOWN_SAMPLES = 61
"""The most of an update that is run to count what lies in the heap; no layer is as wide, so that
blocks of samples are told from those of weights."""
MEASURED_BELOW_BYTES = 8 * 2**30
"""Kernels of convolutions hold something else than a trace shows: by a tenth less on pictures, by a
quarter less on pits. Below this, updates of growing size are measured (`frugal_rl.learn.blank`)."""


class Table:
    """A static table whose rows have a shape, and those of varying length a typical one."""

    def __init__(
        self, spec: ObservationSpec, device: torch.device, ragged: Mapping[str, np.ndarray]
    ) -> None:
        self.spec, self.device, self._ragged = spec, device, ragged

    def rows(self, name: str, ids: Tensor) -> Tensor:
        """Ids [...] -> [..., *shape]."""
        field: Any = self.spec.by_name[name]
        shape = (*ids.shape, *field.shape)
        return torch.zeros(shape, dtype=torch_dtype(field.dtype), device=self.device)

    def ragged(self, name: str, ids: Tensor) -> RaggedRows:
        """Ids [B] -> as many typical rows.

        Refused where nobody tells one: how many items there are depends on what is seen.
        """
        if name not in self._ragged:
            raise NotImplementedError(f"the rows of '{name}' differ in length")
        row = torch.from_numpy(self._ragged[name]).to(self.device)
        items = row.repeat(len(ids), *[1] * (row.ndim - 1))
        return RaggedRows(items, torch.full_like(ids, len(row)))


class Shown(Mapping[str, Tensor]):
    """Decoded fields [B, ...] without content, each made when it is first read.

    What `content` tells of is like that; of static rows there are as many as `distinct`.
    """

    def __init__(
        self,
        run: RunConfig,
        samples: int,
        device: torch.device,
        content: Content = NOTHING,
        distinct: int | None = None,
    ) -> None:
        self.spec, self.samples, self.device = run.env.spec(), samples, device
        self._made: dict[str, Tensor] = {}
        self._content = content
        self.distinct = distinct_rows(run) if distinct is None else distinct
        tables = {f.table for f in self.spec.fields if isinstance(f, Static)}
        self.tables = {name: Table(self.spec, device, content.ragged) for name in tables}
        self.rows = {f"{name}_id": name for name in tables}

    def __getitem__(self, name: str) -> Tensor:
        if name in self.rows:
            return torch.arange(self.samples, device=self.device) % self.distinct
        if name not in self._made:
            self._made[name] = self._make(name)
        return self._made[name]

    def _make(self, name: str) -> Tensor:
        field: Any = self.spec.by_name[name]
        shape = getattr(field, "observed_shape", field.shape)
        dtype = torch_dtype(field.dtype)
        if name in self._content.fields:
            values = self._content.fields[name]
            moments = np.arange(self.samples) % len(values)
            return torch.from_numpy(values[moments]).to(self.device, dtype)
        if name in self._content.ragged:
            ids = self[f"{field.table}_id"]
            return self.tables[field.table].ragged(name, ids).padded(shape[0]).to(dtype)
        made = torch.zeros((self.samples, *shape), dtype=dtype, device=self.device)
        if isinstance(field, Static):  # rows of different content, which networks tell apart
            made += self[f"{field.table}_id"].to(dtype).view(-1, *[1] * len(shape))
        return made

    def __iter__(self) -> Iterator[str]:
        return iter(self.spec.by_name)

    def __len__(self) -> int:
        return len(self.spec.by_name)


def content_of(run: RunConfig) -> Content:
    """What the environment tells of a rollout's rows; nothing where it tells nothing."""
    told = getattr(run.env, "content", None)
    sizes: Any = run.algo
    found: Content = NOTHING if told is None else told(sizes.num_envs, sizes.n_steps)
    return found


def distinct_rows(run: RunConfig) -> int:
    """Rows of a static table that a minibatch shows: at most one per environment."""
    num_envs: int = run.algo.num_envs
    most: int = getattr(run.env, "static_rows", num_envs)
    return min(num_envs, most)


class Traced:
    """The run's network and action head as a policy; on `META` without memory."""

    def __init__(self, run: RunConfig, device: torch.device = META) -> None:
        space = run.env.action_space()
        self.run, self.device, self.content = run, device, content_of(run)
        self.distinct: int | None = None
        with device:
            self.network = run.agent.build(run.encoding(), Tables(), space)
            self.head = action_head(space)
        self.network.recompute = run.memory.gradient_checkpointing
        self.mask_name = run.env.spec().action_mask
        self.bf16 = run.memory.precision is Precision.bf16

    def shown(self, samples: int) -> Shown:
        """Fields of so many samples, of as many static rows as the run shows or `distinct`."""
        return Shown(self.run, samples, self.device, self.content, self.distinct)

    def parameters(self) -> list[torch.nn.Parameter]:
        """All weights."""
        return [*self.network.parameters(), *self.head.parameters()]

    @property
    def weight_bytes(self) -> int:
        """What the weights that are learned take in the optimiser's flat tensor."""
        return sum(padded(p) * p.itemsize for p in self.parameters() if p.requires_grad)

    @property
    def convolves(self) -> bool:
        """Whether a trace shows less than its kernels hold."""
        return any(isinstance(m, CONVOLUTIONAL) for m in self.network.modules())

    def outputs(self, fields: Shown) -> Output:
        """As `FrugalPolicy.outputs`, from decoded fields."""
        with torch.autocast("cpu", torch.bfloat16, enabled=self.bf16):
            out = self.network(fields)
        mask = fields[self.mask_name] if self.mask_name else None
        logits = mask_logits(out.logits.float(), mask)
        return Output(logits, out.value.float(), out.losses, out.metrics)


def trace(run: RunConfig) -> Probe | None:
    """What the run's update and its acting hold beyond rollout, minibatch and weights.

    None where it depends on what the network sees (torch says so of its operations), and for
    convolutions that are small enough to be measured.
    """
    try:
        return _trace(run)
    except (NotImplementedError, RuntimeError):
        return None


def _trace(run: RunConfig) -> Probe | None:
    config = run.algo
    assert isinstance(config, OnPolicyConfig)
    policy = Traced(run)
    at_once, weights = samples_at_once(run), policy.weight_bytes
    held = _learning(policy, run, at_once)
    learning = held.peak
    if learning < MEASURED_BELOW_BYTES and policy.convolves:
        return None
    policy.network.eval()
    looking = Held(held.distinct)
    with looking:
        act(policy, run, policy.shown(config.num_envs))
    return Probe(
        fixed_bytes=0,
        traced=True,
        bytes_per_sample=learning / at_once,
        heap_bytes_per_sample=held.heap_peak / at_once,
        parameter_bytes=weights,
        gradient_bytes=weights,
        optimizer_bytes=2 * weights,
        forward_bytes_per_sample=looking.peak / config.num_envs,
        step_bytes=ADAM_COPIES * weights,
    )


def heap_bytes_of(run: RunConfig) -> float | None:
    """What of an update lies in the heap, also where its peak is measured.

    None where no trace shows it, because it depends on what the network sees. A measured update
    begins with an empty heap, those of a run find the holes of the ones before.
    """
    at_once = samples_at_once(run)
    try:
        return _learning(Traced(run), run, at_once).heap_peak / at_once
    except (NotImplementedError, RuntimeError):
        return None


def heap_bytes_shown(run: RunConfig) -> float:
    """The same of a network that is shown what the environment tells, by small real updates.

    Blocks of samples are as much smaller than those of the run's own update as its samples are
    fewer; those of static rows are as large, and counted apart. Weights' own are left out.
    """
    policy, at_once = Traced(run, CPU), samples_at_once(run)
    samples = min(at_once, SHOWN_SAMPLES)

    def heap(rows: int, count: int, share: float) -> int:
        policy.distinct = rows
        return _learning(policy, run, count, share).heap_peak

    few, more = FEW_ROWS
    row = max(0, heap(more, more, 1.0) - heap(few, more, 1.0)) / (more - few)
    of_samples = max(0.0, heap(few, samples, samples / at_once) - row * few) / samples
    return of_samples + row * policy.content.distinct(at_once) / at_once


def samples_at_once(run: RunConfig) -> int:
    """Samples of one backward pass."""
    sizes: Any = run.algo
    total: int = sizes.n_steps * sizes.num_envs
    size: int = min(run.memory.micro_batch or sizes.batch_size, sizes.batch_size, total)
    return size


def _learning(policy: Traced, run: RunConfig, samples: int, share: float = 1.0) -> Held:
    """What learning from so many samples, a share of all, holds forward and backward."""
    for p in policy.parameters():
        p.grad = torch.empty_like(p)
    policy.network.train()
    pinned = run.memory.allocator is Allocator.pinned
    mapped_from = MMAP_THRESHOLD_BYTES if pinned else DYNAMIC_MOST_BYTES
    weights = frozenset(p.nbytes for p in policy.parameters())
    apart = weights if policy.device == CPU else frozenset()
    held = Held(distinct_rows(run), int(mapped_from * share), apart)
    with held:
        learn(policy, run, samples)
    if getattr(run.algo, "engine", None) is Engine.compiled:
        held.heap_peak = 0  # what it needs stays from one minibatch to the next
    return held


def learn(policy: Traced, run: RunConfig, samples: int) -> None:
    """Forward and backward of one minibatch."""
    config: Any = run.algo
    column = torch.zeros(samples, device=policy.device)
    shown, actions = policy.shown(samples), _actions(run, samples, policy.device)
    batch = Minibatch(shown, actions, *[column] * 4)  # type: ignore[arg-type]
    same: Any = policy  # what the loss asks of a policy, it answers
    loss = ppo_loss(same, batch, column, config.terms(0.0)).total
    loss.backward()  # type: ignore[no-untyped-call]


def act(policy: Traced, run: RunConfig, shown: Shown) -> None:
    """Forward of one step of all environments."""
    with torch.no_grad():
        out = policy.outputs(shown)
        policy.head.evaluate(out.logits, _actions(run, shown.samples, policy.device), False)


def _actions(run: RunConfig, samples: int, device: torch.device) -> Tensor:
    """Actions [B] or [B, A], as the rollout keeps them."""
    size, dtype = action_layout(run.env.action_space())
    shape = (samples, size) if size > 1 else (samples,)
    return torch.zeros(shape, dtype=torch_dtype(dtype), device=device)
