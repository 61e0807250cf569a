"""What a learner holds, part by part, from what was found of its network."""

from __future__ import annotations

from typing import TYPE_CHECKING

from frugal_rl.memory.allocator import SETTLED_HOLES
from frugal_rl.memory.choices import Allocator
from frugal_rl.memory.part import ALL_PHASES, Kind, Phase

if TYPE_CHECKING:
    from frugal_rl.memory.probe import Probe
    from frugal_rl.run.config import RunConfig

UPDATE = frozenset({Phase.update})
ACTING = frozenset({Phase.rollout, Phase.evaluation})
FEW_UPDATES = 2
"""Until the first has ended large blocks are mapped (`frugal_rl.memory.allocator`): so few leave no
holes that show."""
Row = tuple[str, str, int, Kind, frozenset[Phase]]
"""Name, formula, bytes, kind and phases of a part."""


def _holes(run: RunConfig, probe: Probe, at_once: int) -> int:
    """Bytes that lie free between blocks of the heap while a later update runs."""
    whole = int(probe.heap_bytes_per_sample * at_once)
    if run.memory.allocator is not Allocator.pinned:
        return whole
    updates = -(-run.algo.total_steps // (run.algo.n_steps * run.algo.num_envs * run.split))
    if updates <= FEW_UPDATES:
        return 0
    return int(whole * SETTLED_HOLES) if probe.traced else whole  # of others it is counted so


def learner_rows(run: RunConfig, probe: Probe, device: bool, first_update: bool) -> list[Row]:
    """What was found of the learner, for the sizes of this run."""
    batch = min(run.algo.batch_size, run.algo.n_steps * run.algo.num_envs)
    at_once, weights = min(run.memory.micro_batch or batch, batch), probe.parameter_bytes
    update = max(int(probe.bytes_per_sample * at_once), probe.step_bytes)
    act = int(probe.forward_bytes_per_sample * run.algo.num_envs)
    kept = getattr(run.algo, "kept_weights", lambda run: 0)(run)
    return [
        ("parameters", "all weights, float32", weights, Kind.parameters, ALL_PHASES),
        ("gradients", "one per weight", probe.gradient_bytes, Kind.gradients, ALL_PHASES),
        ("optimiser", "two moments per weight", probe.optimizer_bytes, Kind.optimiser, ALL_PHASES),
        (
            "workspace",
            "a first small update",
            probe.fixed_bytes if device else first_update * probe.first_bytes,
            Kind.learner,
            ALL_PHASES if device else UPDATE,
        ),
        (
            "activations",
            f"{at_once} samples x {probe.bytes_per_sample:,.0f} B",
            update,
            Kind.activations,
            UPDATE,
        ),
        (
            "holes in the heap",
            f"{at_once} samples x {probe.heap_bytes_per_sample:,.0f} B that came and went",
            0 if device else _holes(run, probe, at_once),
            Kind.activations,
            UPDATE,
        ),
        (
            "acting",
            f"{run.algo.num_envs} envs x {probe.forward_bytes_per_sample:,.0f} B",
            act,
            Kind.learner,
            ACTING,
        ),
        ("past selves", f"{kept} x all weights", kept * weights, Kind.learner, ALL_PHASES),
    ]
