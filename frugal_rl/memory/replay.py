"""The arithmetic of a replay: bytes per transition, and the size that fits a budget."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from frugal_rl.errors import MemoryBudgetError
from frugal_rl.memory.base import TYPICAL_BYTES
from frugal_rl.memory.choices import RolloutLocation
from frugal_rl.memory.machine import find_limit
from frugal_rl.memory.part import REPLAY, Confidence, Part, human
from frugal_rl.memory.replay_data import CHAIN_SHARE, RowSeen, rows_seen
from frugal_rl.memory.sizes import environment_parts
from frugal_rl.observation.fields import EPISODE
from frugal_rl.store.layout import action_layout

if TYPE_CHECKING:
    from frugal_rl.run.config import RunConfig

CHAIN_FROM_BYTES = 256
"""Rows from this size on are kept as chains of differences."""
KEY_EVERY = 32
"""Steps of a chain; links and anchors are kept for each."""
PAIR_COPIES = 6
"""Tensors of all pairs of quantiles that a loss over them and its backward pass hold at once."""
CHAIN_TABLES = 6
"""Bytes beside each chained row: its start, and its share of links and anchors."""
MIRROR_TABLES = 8
"""Bytes in memory beside each chained row that lies on the device as well: where it lies there."""
ENTRY_SHARE = 1.7
"""Bytes on the device per byte of differences, room to grow included: 1.4 to 2.0 of five games."""
USED_SHARE = 0.8
"""Of what is left of the budget, `auto` gives this share to the replay."""


@dataclass(frozen=True)
class ReplayNetworks:
    """What a learner's networks hold."""

    learning: int
    """Weights that learn: each with a gradient and two moments."""
    targets: int
    """Weights beside them that follow."""
    bytes_per_sample: float
    """Of an update: what is kept for the backward pass, and gradients on their way."""
    heap_bytes_per_sample: float
    """What of it lies in the heap, and leaves holes there."""
    step_bytes: int = 0
    """What a step of Adam makes on its way, once the update's own are gone."""


def replay_parts(run: RunConfig, size: int, networks: ReplayNetworks) -> list[Part]:
    """Replay, networks, gradients, optimiser and minibatch."""
    seen, source = rows_seen(run)
    parts = [
        _row_part(name, nbytes, frames, size)
        if name not in seen or nbytes < CHAIN_FROM_BYTES
        else _seen_part(name, nbytes, frames, size, seen[name], source)
        for name, nbytes, frames in rows_of(run)
    ]
    if run.memory.rollout_location is RolloutLocation.device:
        chained = [(n, b) for n, b, _ in rows_of(run) if b >= CHAIN_FROM_BYTES]
        parts += [p for n, b in chained for p in _mirror_parts(n, b, size, seen.get(n))]
    each = _scalar_bytes(run)
    parts.append(Part(f"{REPLAY}scalars", f"{size:,} x {each} B", size * each))
    if getattr(run.algo, "prioritised", False):
        tree = 16 << max(size - 1, 1).bit_length()
        parts.append(Part(f"{REPLAY}priorities", f"{tree // 8:,} nodes x 8 B", tree))
    if getattr(run.algo, "her", False):
        parts.append(Part(f"{REPLAY}episodes", f"{size:,} x 8 B", size * 8))
    return [*parts, *_learner_parts(run, networks), *_pair_parts(run)]


def _learner_parts(run: RunConfig, networks: ReplayNetworks) -> list[Part]:
    """Networks, a minibatch before and after a step, and what an update on it holds."""
    batch, rows = run.algo.batch_size, sum(nbytes for _, nbytes, _ in rows_of(run))
    learning, targets = networks.learning, networks.targets
    found = {
        "networks": (
            f"{learning:,} weights x (weight, gradient, 2 moments) + {targets:,} targets, float32",
            4 * (4 * learning + targets),
        ),
        "minibatch": (f"{batch} x 2 x {rows} B", batch * 2 * rows),
        "activations": (
            f"{batch} samples x {networks.bytes_per_sample:,.0f} B",
            max(int(batch * networks.bytes_per_sample), networks.step_bytes),
        ),
        "holes in the heap": (
            f"{batch} samples x {networks.heap_bytes_per_sample:,.0f} B that came and went",
            int(batch * networks.heap_bytes_per_sample),
        ),
    }
    return [
        Part(name, formula, count, confidence=Confidence.calibrated)
        for name, (formula, count) in found.items()
    ]


def _pair_parts(run: RunConfig) -> list[Part]:
    """What a loss over pairs of quantiles holds: 200 x 200 of each sample of QR-DQN."""
    pairs, batch = getattr(type(run.algo), "quantile_pairs", 0), run.algo.batch_size
    formula = f"{batch} x {pairs:,} pairs x 4 B x {PAIR_COPIES} at once"
    count = int(batch * pairs * 4 * PAIR_COPIES)
    part = Part("pairs of quantiles", formula, count, confidence=Confidence.calibrated)
    return [part] if pairs else []


def replay_size(run: RunConfig, most: int, networks: ReplayNetworks) -> int:
    """The most transitions that fit the budget beside everything else, `most` at most.

    Raises:
        MemoryBudgetError: not even a minibatch fits.
    """
    memory, hardware = run.memory, run.hardware
    limit = find_limit(
        memory.budget_gib, hardware.ram_gib, hardware.vram_gib, hardware.cores, hardware.device
    )
    beside = sum(p.ram_bytes for p in environment_parts(run, run.encoding()))
    beside += sum(p.ram_bytes for p in replay_parts(run, 0, networks)) + TYPICAL_BYTES
    per_step = sum(p.ram_bytes for p in replay_parts(run, 1000, networks))
    per_step -= sum(p.ram_bytes for p in replay_parts(run, 0, networks))
    fits = int(USED_SHARE * (limit.ram_bytes - beside) / (per_step / 1000))
    if fits < run.algo.batch_size:
        raise MemoryBudgetError(
            f"algo.buffer_size=auto finds no room: {human(beside)} of {human(limit.ram_bytes)} are "
            "needed beside the replay. Raise memory.budget_gib, or lower algo.num_envs."
        )
    return min(most, fits)


def rows_of(run: RunConfig) -> list[tuple[str, int, int]]:
    """Name, bytes of one new row, and how many of them an observation stacks."""
    encoding = run.encoding()
    steps = run.env.episode_steps + 1
    rows = [
        (r.name, r.nbytes * steps, 1)
        if r.window == EPISODE
        else (r.name, r.nbytes, max(1, r.window))
        for r in encoding.rows
    ]
    return [*rows, ("age", 4, 1)] if encoding.windowed else rows


def _row_part(name: str, nbytes: int, frames: int, size: int) -> Part:
    """Small rows as they are; larger ones by the share that is expected of their differences.

    How the frames of a stack follow from those before is a code of a byte.
    """
    code = int(frames > 1)
    if nbytes < CHAIN_FROM_BYTES:
        each = nbytes + 1 + code
        return Part(f"{REPLAY}{name}", f"{size:,} x ({nbytes} + {1 + code} B)", size * each)
    each = math.ceil(CHAIN_SHARE * nbytes) + CHAIN_TABLES + code
    bound = human(size * (nbytes + CHAIN_TABLES + code))
    formula = f"{size:,} x {each} B of {nbytes}; at most {bound} where nothing repeats"
    return Part(f"{REPLAY}{name}", formula, size * each, confidence=Confidence.calibrated)


def _seen_part(name: str, nbytes: int, frames: int, size: int, seen: RowSeen, source: str) -> Part:
    """Large rows by what their differences and shared whole rows took where they were seen."""
    shared = seen.anchors * nbytes / KEY_EVERY
    each = math.ceil(seen.record_bytes + shared) + CHAIN_TABLES + int(frames > 1)
    bound = human(size * (nbytes + CHAIN_TABLES + int(frames > 1)))
    formula = f"{size:,} x {each} B of {nbytes}, {source}; at most {bound} where nothing repeats"
    return Part(f"{REPLAY}{name}", formula, size * each, confidence=Confidence.probed)


def _mirror_parts(name: str, nbytes: int, size: int, seen: RowSeen | None) -> list[Part]:
    """The same rows on the device as units of two bytes that changed, four bytes for each."""
    differs = seen.record_bytes if seen else CHAIN_SHARE * nbytes
    shared = seen.anchors * nbytes / KEY_EVERY if seen else 0.0
    each = math.ceil(ENTRY_SHARE * differs + shared)
    formula, place = f"{size:,} x {each} B of {nbytes}", f"{REPLAY}{name} on the device"
    tables = f"{size:,} x {MIRROR_TABLES} B"
    return [
        Part(place, formula, 0, size * each, confidence=Confidence.calibrated),
        Part(f"{REPLAY}{name}, places there", tables, size * MIRROR_TABLES),
    ]


def _scalar_bytes(run: RunConfig) -> int:
    """Action, reward, end and time limit of one transition."""
    count, dtype = action_layout(run.env.action_space())
    return count * int(dtype.itemsize) + 4 + 2
