"""What `scripts/profile_memory.py` does: snapshots of an environment's memory while it plays.

What N environments hold, which line allocated it, and whether it grows.
"""

from __future__ import annotations

import tracemalloc
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from frugal_rl.memory.meter import Growth, MemoryMeter
from frugal_rl.memory.part import Phase, human
from frugal_rl.report.document import Document, TableBlock
from frugal_rl.run import RunConfig

LINES = 15
"""Allocating lines that are named."""


@dataclass(frozen=True)
class SnapshotOptions:
    """The options of `scripts/profile_memory.py` beside those of a run."""

    steps: int = 1000
    """Steps of random play."""
    every: int = 100
    """Steps between snapshots."""
    out: str = "runs/profile_memory"
    trace: bool = True
    """Name the lines that allocate; about three times slower."""


@dataclass(frozen=True)
class Snapshots:
    """What was seen: steps and bytes held, the trend, parts, and the largest allocating lines."""

    steps: list[int]
    held_bytes: list[int]
    growth: Growth
    peak_bytes: int
    parts: dict[str, int]
    lines: list[tuple[str, int, int]]


def take_snapshots(run: RunConfig, options: SnapshotOptions) -> Snapshots:
    """Play `algo.num_envs` environments with random actions and look every so often."""
    if options.trace:
        tracemalloc.start(4)
    count = run.algo.num_envs
    steps, held = [], []
    with MemoryMeter() as meter:
        env = run.env.make_vec(count, run.encoding(), run.memory, run.vec, "train")
        env.action_space.seed(run.seed)
        env.reset(run.seed)
        for at in range(0, options.steps, options.every):
            with meter.phase(Phase.rollout):
                for _ in range(options.every):
                    env.step(np.stack([env.action_space.sample() for _ in range(count)]))
            steps.append(at + options.every)
            held.append(meter.held_bytes())
        parts = env.parts()
        lines = _allocating_lines() if options.trace else []
        env.close()
    return Snapshots(steps, held, meter.growth, meter.peak_bytes, parts, lines)


def _allocating_lines() -> list[tuple[str, int, int]]:
    """File and line, bytes and blocks, of the largest allocations that are alive."""
    snapshot = tracemalloc.take_snapshot()
    tracemalloc.stop()
    own = snapshot.filter_traces([tracemalloc.Filter(False, tracemalloc.__file__)])
    found = []
    for statistic in own.statistics("lineno")[:LINES]:
        frame = statistic.traceback[0]
        place = "/".join(Path(frame.filename).parts[-3:])
        found.append((f"{place}:{frame.lineno}", statistic.size, statistic.count))
    return found


def snapshot_document(run: RunConfig, seen: Snapshots) -> Document:
    """The report: snapshots, parts, lines, verdict."""
    document = Document(f"Memory of {run.algo.num_envs} x {run.env.name}, {run.memory.profile}")
    document.add(f"Peak {human(seen.peak_bytes)}; {seen.growth.verdict}.")
    rows = [
        (f"{step:,}", human(held), human(held - seen.held_bytes[0]))
        for step, held in zip(seen.steps, seen.held_bytes, strict=True)
    ]
    document.add(TableBlock(("steps", "held", "since the first"), rows))
    parts = sorted(seen.parts.items(), key=lambda p: -p[1])
    document.add(TableBlock(("part", "bytes"), [(n, human(b)) for n, b in parts]))
    if seen.lines:
        lines = [(place, human(size), f"{count:,}") for place, size, count in seen.lines]
        document.add(TableBlock(("allocated at", "bytes", "blocks"), lines))
    return document
