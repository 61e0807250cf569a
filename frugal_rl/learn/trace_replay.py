"""What networks that learn from a replay hold, by arithmetic on their operations.

As `frugal_rl.learn.trace` for rollouts: an update runs on torch's device without memory.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from gymnasium import spaces
from torch import nn

from frugal_rl.errors import ConfigError
from frugal_rl.learn.gauge import Gauge
from frugal_rl.learn.held import Held
from frugal_rl.learn.networks import perceptron
from frugal_rl.learn.trace import CONVOLUTIONAL, MEASURED_BELOW_BYTES, META, Shown
from frugal_rl.memory.allocator import DYNAMIC_MOST_BYTES, MMAP_THRESHOLD_BYTES
from frugal_rl.memory.base import TINY
from frugal_rl.memory.child import ask_child
from frugal_rl.memory.choices import Allocator
from frugal_rl.memory.replay import ReplayNetworks

if TYPE_CHECKING:
    from frugal_rl.learn.agents import MlpAgent
    from frugal_rl.learn.off_policy_config import OffPolicyConfig
    from frugal_rl.run.config import RunConfig

MEASURING = "frugal_rl.run.replay_process"
STEP_COPIES = 2
"""Tensors of the largest weight's size that a step of torch's Adam makes, weight by weight."""
_found: dict[str, ReplayNetworks] = {}
"""A plan asks several times for the same networks."""


def replay_networks(run: RunConfig, config: OffPolicyConfig, agent: MlpAgent) -> ReplayNetworks:
    """Weights of the networks of SB3's algorithm, and what an update of all of them holds."""
    algo = (type(config), config.batch_size, run.memory.allocator)
    key = repr((run.env, run.env.action_space(), agent, *algo))
    if key not in _found:
        _found[key] = _looked(run, config, agent)
    return _found[key]


def _looked(run: RunConfig, config: OffPolicyConfig, agent: MlpAgent) -> ReplayNetworks:
    """Traced; where they convolve, what a sample adds to a tiny update is measured.

    That happens in a process of its own. An environment that only the calling script knows is not
    known there: then the trace counts.
    """
    networks, batch = Networks(run, config, agent), config.batch_size
    found = networks.traced()
    whole = batch * found.bytes_per_sample
    if networks.convolves and batch > TINY["batch_size"] and whole < MEASURED_BELOW_BYTES:
        with suppress(ConfigError):
            measured = ask_child(MEASURING, run, "Measuring an update") or {}
            return replace(found, **measured)
    return found


class Networks:
    """All networks of a learner, on `META` without memory: those that learn, and their targets."""

    def __init__(
        self, run: RunConfig, config: OffPolicyConfig, agent: MlpAgent, device: torch.device = META
    ) -> None:
        (heads, target_heads), (embeddings, target_embeddings) = config.networks, config.embeddings
        self.run, self.batch_size, self.device = run, config.batch_size, device
        with device:
            self.readers: list[Any] = [agent.embedding(run.encoding()) for _ in range(embeddings)]
            width = self.readers[0].width
            sizes = _sizes(run.env.action_space(), width, heads, config.quantiles)
            self.bodies = [_head(agent, *size) for size in sizes]
        self.learning = nn.ModuleList([*self.readers, *self.bodies])
        followed = [*self.readers[:target_embeddings], *self.bodies[heads - target_heads :]]
        self.targets = nn.ModuleList(followed)

    @property
    def convolves(self) -> bool:
        """Whether a trace shows something else than its kernels hold."""
        return any(isinstance(m, CONVOLUTIONAL) for m in self.learning.modules())

    def traced(self) -> ReplayNetworks:
        """Their weights and what an update holds, by arithmetic."""
        pinned = self.run.memory.allocator is Allocator.pinned
        held = Held(mapped_from=MMAP_THRESHOLD_BYTES if pinned else DYNAMIC_MOST_BYTES)
        with held:
            self.learn(self.batch_size)
        sizes = [p.nbytes for p in self.learning.parameters()]
        return ReplayNetworks(
            learning=_count(self.learning),
            targets=_count(self.targets),
            bytes_per_sample=max(0, held.peak - sum(sizes)) / self.batch_size,
            heap_bytes_per_sample=held.heap_peak / self.batch_size,
            step_bytes=STEP_COPIES * max(sizes),
        )

    def learn(self, batch: int) -> None:
        """Forward and backward of B samples; the last embedding serves the heads that are left.

        Gradients are made anew, as by SB3: a plan counts them with the weights.
        """
        self.learning.zero_grad()
        shown = Shown(self.run, batch, self.device)
        features = [read(shown, lambda block, x: block(x)) for read in self.readers]
        outputs = []
        for i, body in enumerate(self.bodies):
            x = features[min(i, len(features) - 1)]
            first: Any = next(m for m in body.modules() if isinstance(m, nn.Linear))
            actions = torch.zeros(batch, first.in_features - x.shape[1], device=self.device)
            outputs.append(body(torch.cat([x, actions], dim=1) if actions.shape[1] else x))
        torch.stack([out.sum() for out in outputs]).sum().backward()  # type: ignore[no-untyped-call]

    def measured_bytes_per_sample(self) -> float:
        """What an update of the run's size holds beyond a tiny one, in this process, by sample."""
        gauge, few = Gauge(self.device), min(TINY["batch_size"], self.batch_size)
        return gauge.line(self._update, few, self.batch_size).per_sample

    def _update(self, batch: int) -> Callable[[], None]:
        self.learning.zero_grad()
        return lambda: self.learn(batch)


def _sizes(
    space: spaces.Space[Any], width: int, heads: int, quantiles: int
) -> list[tuple[int, int]]:
    """What each head reads and gives: values of all actions; or an actor, and critics of an action.

    An actor gives means and deviations.
    """
    if isinstance(space, spaces.Discrete):
        return [(width, int(space.n) * quantiles)] * heads
    size = spaces.flatdim(space)
    return [(width, 2 * size), *[(width + size, quantiles)] * (heads - 1)]


def _head(agent: MlpAgent, width: int, outputs: int) -> nn.Sequential:
    last = agent.actor[-1] if agent.actor else width
    return nn.Sequential(perceptron(width, agent.actor, agent.activation), nn.Linear(last, outputs))


def _count(module: nn.Module) -> int:
    return sum(p.numel() for p in module.parameters())
