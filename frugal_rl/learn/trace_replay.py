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
        sizes = _sizes(run.env.action_space(), readers[0].width, heads, config.quantiles)
        bodies = [_head(agent, *size) for size in sizes]
    learning = nn.ModuleList([*readers, *bodies])
    followed = [*readers[:target_embeddings], *bodies[heads - target_heads :]]
    for p in learning.parameters():
        p.grad = torch.empty_like(p)  # counted with the weights
    pinned = run.memory.allocator is Allocator.pinned
    held = Held(mapped_from=MMAP_THRESHOLD_BYTES if pinned else DYNAMIC_MOST_BYTES)
    with held:
        _learn(readers, bodies, run, config.batch_size)
    return ReplayNetworks(
        learning=_count(learning),
        targets=_count(nn.ModuleList(followed)),
        bytes_per_sample=held.peak / config.batch_size,
        heap_bytes_per_sample=held.heap_peak / config.batch_size,
    )


def _learn(readers: list[Any], bodies: list[nn.Sequential], run: RunConfig, batch: int) -> None:
    """Forward of all networks and backward; the last embedding serves the heads that are left."""
    shown = Shown(run, batch, META)
    features = [read(shown, lambda block, x: block(x)) for read in readers]
    outputs = []
    for i, body in enumerate(bodies):
        x = features[min(i, len(features) - 1)]
        first: Any = next(m for m in body.modules() if isinstance(m, nn.Linear))
        actions = torch.zeros(batch, first.in_features - x.shape[1], device=META)
        outputs.append(body(torch.cat([x, actions], dim=1) if actions.shape[1] else x))
    torch.stack([out.sum() for out in outputs]).sum().backward()  # type: ignore[no-untyped-call]


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
