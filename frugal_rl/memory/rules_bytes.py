"""Checks of bytes: observation, rollout, environments, total, minibatch, disk.

Most of the memory is a warning; an error is what does not fit into it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from frugal_rl.invocation import command_line, command_words
from frugal_rl.memory.finding import Finding, Rule, Severity, grade
from frugal_rl.memory.part import human
from frugal_rl.memory.savings import typed

if TYPE_CHECKING:
    from frugal_rl.memory.facts import Facts


def observation_size(f: Facts) -> Finding:
    """F01: one observation as the space declares it."""
    return Finding(
        "F01",
        "observation size",
        Severity.info,
        f"{f.observation_bytes:,} B",
        f"one observation is {human(f.observation_bytes)}",
    )


def rollout_bytes(f: Facts) -> Finding:
    """F02: the rollout's observations against memory: warn above a quarter."""
    held = f.rollout_bytes
    return Finding(
        "F02",
        "rollout",
        grade(held / f.ram_bytes, 0.25, 1.0),
        human(held),
        f"the rollout takes {held / f.ram_bytes:.0%} of {human(f.ram_bytes)}",
        typed("all lossless ones"),
    )


def rollout_peak(f: Facts) -> Finding:
    """F03: the same at the update's peak, where flattening copies once more: warn above 0.8."""
    peak = f.rollout_peak_bytes
    copied = "; flattening copies the observations once more" if f.flattened_bytes else ""
    severity = grade(peak / f.ram_bytes, 0.8, 1.0)
    return Finding(
        "F03",
        "rollout peak",
        severity,
        human(peak),
        f"the update peaks at {human(peak)} of observations{copied}",
        f"{typed('gather by index')} or algo.n_steps={max(1, f.n_steps // 2)}",
    )


def environments(f: Facts) -> Finding:
    """F06: simulators and worker processes, warn above a tenth of memory."""
    words = f"{f.num_envs} environments, {human(f.worker_bytes)} per worker process"
    return Finding(
        "F06",
        "environments",
        grade(f.env_bytes / f.ram_bytes, 0.1),
        human(f.env_bytes),
        words if f.worker_bytes else "",
        "vec=threads",
    )


def total(f: Facts) -> Finding:
    """F07: everything, the largest part named first: warn above 0.7."""
    share = f.total_bytes / f.ram_bytes
    return Finding(
        "F07",
        "total memory",
        grade(share, 0.7, 1.0),
        human(f.total_bytes),
        f"most of it is '{f.largest}'; {share:.0%} of {human(f.ram_bytes)}",
        command=command_line([*command_words("plan"), *f.words, "compare=true"]),
    )


def minibatch(f: Facts) -> Finding | None:
    """F08: minibatch, its float32 form, activations and weights on the accelerator."""
    if not f.vram_bytes:
        return None
    need = minibatch_need(f)
    return Finding(
        "F08",
        "minibatch on the device",
        grade(need / f.vram_bytes, 0.6, 1.0),
        human(need),
        f"{human(f.decoded_bytes)} float32 + {human(f.minibatch_bytes)} stored + "
        f"{human(f.activation_bytes)} activations + {human(f.weight_bytes)} weights",
        typed("micro-batches", max(1, f.batch_size // 2)),
    )


def minibatch_need(f: Facts) -> int:
    """Device bytes of one minibatch and the weights."""
    return f.decoded_bytes + f.minibatch_bytes + f.activation_bytes + f.weight_bytes


def accumulation(f: Facts) -> Finding | None:
    """F20: the same gradient in pieces, where a minibatch does not fit the accelerator."""
    if not f.vram_bytes or minibatch_need(f) <= 0.6 * f.vram_bytes or f.batch_size < 2:
        return None
    budget = max(1.0, 0.6 * f.vram_bytes - f.weight_bytes)
    pieces = min(f.batch_size, -(-int(minibatch_need(f) - f.weight_bytes) // int(budget)))
    while pieces < f.batch_size and f.batch_size % pieces:
        pieces += 1
    saved = (minibatch_need(f) - f.weight_bytes) * (1 - 1 / pieces)
    size = f.batch_size // pieces
    return Finding(
        "F20",
        "accumulated gradient",
        Severity.info,
        f"{pieces} pieces",
        f"the same gradient from {pieces} micro-batches of {size}: {human(saved)} less",
        typed("micro-batches", size),
    )


def checkpoints_on_disk(f: Facts) -> Finding | None:
    """F24: all checkpoints that stay, with a replay; warn above a twentieth of the free disk."""
    if not f.free_disk_bytes:
        return None
    stay = f.keep_checkpoints + 1 if f.keep_checkpoints else saves(f)
    count = max(1, min(saves(f), stay))
    need = count * f.checkpoint_bytes + f.replay_file_bytes
    most = f"at most {human(f.replay_file_most_bytes)} where nothing repeats"
    seen = f.replay_seen and f"{f.replay_seen}; "
    replay = f" and {human(f.replay_file_bytes)} of replay ({seen}{most})"
    replay = replay if f.replay_file_bytes else ""
    return Finding(
        "F24",
        "checkpoints on disk",
        grade(need / f.free_disk_bytes, 0.05),
        human(need),
        f"{count} x {human(f.checkpoint_bytes)}{replay} of {human(f.free_disk_bytes)} free",
        "checkpoint_every_steps=0",
    )


def saves(f: Facts) -> int:
    """How many checkpoints a run writes."""
    return f.total_steps // f.save_every_steps if f.save_every_steps else 0


RULES: tuple[Rule, ...] = (
    observation_size,
    rollout_bytes,
    rollout_peak,
    environments,
    total,
    minibatch,
    accumulation,
    checkpoints_on_disk,
)
