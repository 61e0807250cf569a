"""What networks that learn from a replay hold, by arithmetic on their operations.

As `frugal_rl.learn.trace` for rollouts: an update runs on torch's device without memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from gymnasium import spaces
from torch import nn

from frugal_rl.learn.held import Held
from frugal_rl.learn.networks import perceptron
from frugal_rl.learn.trace import META, Shown
from frugal_rl.memory.allocator import DYNAMIC_MOST_BYTES, MMAP_THRESHOLD_BYTES
from frugal_rl.memory.choices import Allocator
from frugal_rl.memory.replay import ReplayNetworks

if TYPE_CHECKING:
    from frugal_rl.learn.agents import MlpAgent
    from frugal_rl.learn.off_policy_config import OffPolicyConfig
    from frugal_rl.run.config import RunConfig

_found: dict[str, ReplayNetworks] = {}
"""A plan asks several times for the same networks."""


def replay_networks(run: RunConfig, config: OffPolicyConfig, agent: MlpAgent) -> ReplayNetworks:
    """Weights of the networks of SB3's algorithm, and what an update of all of them holds."""
    algo = (type(config), config.batch_size, run.memory.allocator)
    key = repr((run.env, run.env.action_space(), agent, *algo))
    if key not in _found:
        _found[key] = _traced(run, config, agent)
    return _found[key]


def _traced(run: RunConfig, config: OffPolicyConfig, agent: MlpAgent) -> ReplayNetworks:
    (heads, target_heads), (embeddings, target_embeddings) = config.networks, config.embeddings
    with META:
        readers = [agent.embedding(run.encoding()) for _ in range(embeddings)]
        actions, outputs = sizes_of(run.env.action_space(), config.quantiles)
        bodies = [_head(agent, readers[0].width + actions, outputs) for _ in range(heads)]
    body, reader = (_count([module]) for module in (bodies[0], readers[0]))
    pinned = run.memory.allocator is Allocator.pinned
    held = Held(mapped_from=MMAP_THRESHOLD_BYTES if pinned else DYNAMIC_MOST_BYTES)
    for p in nn.ModuleList([*readers, *bodies]).parameters():
        p.grad = torch.empty_like(p)  # counted with the weights
    with held:
        _learn(readers, bodies, run, config.batch_size, actions)
    return ReplayNetworks(
        learning=embeddings * reader + heads * body,
        targets=target_embeddings * reader + target_heads * body,
        bytes_per_sample=held.peak / config.batch_size,
        heap_bytes_per_sample=held.heap_peak / config.batch_size,
    )


def _learn(readers: list[Any], bodies: list[Any], run: RunConfig, batch: int, actions: int) -> None:
    """Forward of all networks and backward; the last embedding serves the heads that are left."""
    shown = Shown(run, batch, META)
    features = [read(shown, lambda block, x: block(x)) for read in readers]
    chosen = torch.zeros(batch, actions, device=META)
    told = [torch.cat([x, chosen], dim=1) if actions else x for x in features]
    outputs = [body(told[min(i, len(told) - 1)]) for i, body in enumerate(bodies)]
    torch.stack([out.sum() for out in outputs]).sum().backward()  # type: ignore[no-untyped-call]


def sizes_of(space: spaces.Space[Any], quantiles: int) -> tuple[int, int]:
    """Numbers of an action that a critic reads, and numbers that the widest head gives."""
    if isinstance(space, spaces.Discrete):
        return 0, int(space.n) * quantiles
    width = spaces.flatdim(space)
    return width, max(2 * width, quantiles)


def _head(agent: MlpAgent, width: int, outputs: int) -> nn.Sequential:
    last = agent.actor[-1] if agent.actor else width
    return nn.Sequential(perceptron(width, agent.actor, agent.activation), nn.Linear(last, outputs))


def _count(modules: list[Any]) -> int:
    return sum(p.numel() for module in modules for p in module.parameters())
