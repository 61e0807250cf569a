"""What `scripts/profile_memory.py` does: an environment's memory over time, and what it costs.

Snapshots while it plays at random, the lines that allocate and those that grew, a leak verdict for
each component, the cost of one more environment by difference, and a profile of the time.
"""

from __future__ import annotations

import cProfile
import gc
import io
import pstats
import tracemalloc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from frugal_rl.errors import ConfigError
from frugal_rl.memory import usage
from frugal_rl.memory.meter import median_slope
from frugal_rl.memory.part import human
from frugal_rl.report.document import Document, TableBlock
from frugal_rl.report.files import write_text

if TYPE_CHECKING:
    from frugal_rl.run.config import RunConfig
    from frugal_rl.vec_env.interface import VectorEnv

LINES = 15
"""Lines that are named in each table."""
REPORT, STATS = "memory_profiling_report.txt", "profiling_stats.txt"
MIN_SNAPSHOTS = 5
"""Fewer than this, the first left out, say nothing about growth."""
COMPONENT_FLOOR, PROCESS_FLOOR = 32 << 10, 4 << 20
"""Growth over the run below which nothing is called a leak: traced lines, the whole process."""


@dataclass(frozen=True)
class SnapshotOptions:
    """The options of `scripts/profile_memory.py` beside those of a run."""

    frames: int = 1000
    """Steps of random play."""
    snapshot_every: int = 100
    """Steps between snapshots."""
    counts: tuple[int, ...] = (1, 10, 100)
    """Numbers of environments whose difference is the cost of one; none leaves it out."""
    out: str = "runs/profile_memory"
    """Folder of the two files."""
    trace: bool = True
    """Name the lines that allocate; about three times slower."""
    profile: bool = True
    """Play as long again under cProfile, without tracing."""

    def __post_init__(self) -> None:
        if self.frames < 1 or self.snapshot_every < 1:
            raise ConfigError("frames and snapshot_every must be 1 or more.")
        grow = sorted(set(self.counts)) == list(self.counts)
        if not self.counts or not grow or any(count < 1 for count in self.counts):
            raise ConfigError(f"counts={list(self.counts)} must grow, for example [1,10,100].")


@dataclass
class Snapshot:
    """What is held after some steps: the process, its parts, traced bytes by component."""

    step: int
    held_bytes: int
    parts: dict[str, int]
    traced: dict[str, int]


@dataclass(frozen=True)
class Cost:
    """What so many environments hold: resident bytes, and bytes of arrays that they know of."""

    envs: int
    resident_bytes: int
    array_bytes: int


@dataclass
class Seen:
    """All that was measured."""

    snapshots: list[Snapshot] = field(default_factory=list)
    largest: list[tuple[str, int, int]] = field(default_factory=list)
    grown: list[tuple[str, int, int]] = field(default_factory=list)
    costs: list[Cost] = field(default_factory=list)
    stats: str = ""


def profile_memory(run: RunConfig, options: SnapshotOptions) -> Seen:
    """Measure costs, then snapshots, then time."""
    seen = Seen(costs=measure_costs(run, options.counts))
    if options.trace:
        tracemalloc.start(1)
    with _made(run, run.algo.num_envs) as env:
        _watch(env, options, seen)
        if options.profile:
            profiler = cProfile.Profile()
            profiler.enable()
            _play(env, options.frames)
            profiler.disable()
            text = io.StringIO()
            pstats.Stats(profiler, stream=text).sort_stats("tottime").print_stats(40)
            seen.stats = text.getvalue()
    return seen


def measure_costs(run: RunConfig, counts: Sequence[int]) -> list[Cost]:
    """What different numbers of environments hold; all stay alive, so that nothing is reused."""
    costs: list[Cost] = []
    alive: list[VectorEnv] = []
    for count in (*counts[:2], *counts):  # first a rehearsal: libraries, kernels, caches
        gc.collect()
        before = _held()
        env = run.env.make_vec(count, run.encoding(), run.memory, run.vec, "train")
        env.action_space.seed(run.seed)
        env.reset(run.seed)
        _play(env, 2)
        alive.append(env)
        gc.collect()
        costs.append(Cost(count, _held() - before, sum(env.parts().values())))
    for env in alive:
        env.close()
    return costs[len(counts[:2]) :]


def _held() -> int:
    """Bytes of this process and its workers."""
    return usage.held_bytes(usage.of_tree())


@contextmanager
def _made(run: RunConfig, count: int) -> Iterator[VectorEnv]:
    env = run.env.make_vec(count, run.encoding(), run.memory, run.vec, "train")
    env.action_space.seed(run.seed)
    env.reset(run.seed)
    try:
        yield env
    finally:
        env.close()


def _play(env: VectorEnv, steps: int) -> None:
    for _ in range(steps):
        env.step(np.stack([env.action_space.sample() for _ in range(env.num_envs)]))


def _watch(env: VectorEnv, options: SnapshotOptions, seen: Seen) -> None:
    """Snapshots over time; with tracing, also who allocated. Ends the tracing."""
    _play(env, 2)
    first: tracemalloc.Snapshot | None = None
    done = 0
    while done < options.frames:
        steps = min(options.snapshot_every, options.frames - done)
        _play(env, steps)
        done += steps
        gc.collect()
        traced: dict[str, int] = {}
        if options.trace:
            last = _own_lines(tracemalloc.take_snapshot())
            first = first or last
            traced = _by_component(last)
        seen.snapshots.append(Snapshot(done, _held(), dict(env.parts()), traced))
    if first is not None:
        tracemalloc.stop()
        seen.largest = [(_place(s), s.size, s.count) for s in last.statistics("lineno")[:LINES]]
        grown = [s for s in last.compare_to(first, "lineno") if s.size_diff > 0][:LINES]
        seen.grown = [(_place(s), s.size_diff, s.count_diff) for s in grown]


def _own_lines(snapshot: tracemalloc.Snapshot) -> tracemalloc.Snapshot:
    """Without what the measurement itself holds."""
    ours = (tracemalloc.__file__, __file__, usage.__file__, "*/psutil/*")
    return snapshot.filter_traces([tracemalloc.Filter(False, name) for name in ours])


def _place(statistic: tracemalloc.Statistic | tracemalloc.StatisticDiff) -> str:
    frame = statistic.traceback[0]
    return f"{'/'.join(Path(frame.filename).parts[-3:])}:{frame.lineno}"


def _by_component(snapshot: tracemalloc.Snapshot) -> dict[str, int]:
    """Traced bytes by package and room: `nclone/graph`, `numpy`, ..."""
    sizes: dict[str, int] = {}
    for statistic in snapshot.statistics("filename"):
        name = component(statistic.traceback[0].filename)
        sizes[name] = sizes.get(name, 0) + statistic.size
    return sizes


def component(filename: str) -> str:
    """The package of a file, with the room in it if it is one of this repository."""
    parts = Path(filename).parts
    if "site-packages" in parts:
        return parts[parts.index("site-packages") + 1].removesuffix(".py")
    here = Path(__file__).resolve().parents[2].parts
    if parts[: len(here)] == here:
        return "/".join(parts[len(here) : -1][:2]) or parts[-1]
    return "python"


@dataclass(frozen=True)
class Verdict:
    """Whether a component grows."""

    name: str
    first: int
    last: int
    bytes_per_step: float
    words: str

    @property
    def leaks(self) -> bool:
        """Whether it grew steadily, and by more than noise."""
        return self.words == "leak"


def judge(name: str, steps: Sequence[int], values: Sequence[int], floor: int) -> Verdict:
    """The trend of a component's bytes over the snapshots, the first left out.

    A leak grows by more than `floor` bytes and one hundredth over the run, and still does so in
    the last half; what is filled once (caches, tables of a bounded size) does not.
    """
    kept, width = list(values[1:]), (steps[-1] - steps[0]) / max(len(steps) - 1, 1)
    if len(kept) < MIN_SNAPSHOTS:
        words = f"not known after {len(values)} snapshots"
        return Verdict(name, values[0], values[-1], 0.0, words)
    slope = median_slope(kept)
    late = median_slope(kept[len(kept) // 2 :])
    total = slope * (len(kept) - 1)
    leak = total > max(floor, 0.01 * kept[-1]) and late > 0.25 * slope
    return Verdict(name, values[0], values[-1], slope / width, "leak" if leak else "steady")


def verdicts(snapshots: Sequence[Snapshot]) -> list[Verdict]:
    """The whole process first, then parts, then traced components by size."""
    steps = [s.step for s in snapshots]
    found = [judge("whole process", steps, [s.held_bytes for s in snapshots], PROCESS_FLOOR)]
    for kind in ("parts", "traced"):
        last = getattr(snapshots[-1], kind)
        for name in sorted(last, key=lambda n: -last[n]):
            values = [getattr(s, kind).get(name, 0) for s in snapshots]
            label = f"{'arrays' if kind == 'parts' else 'lines of'}: {name}"
            found.append(judge(label, steps, values, COMPONENT_FLOOR))
    return found


def report(run: RunConfig, seen: Seen) -> Document:
    """Verdict, snapshots, components, cost per environment, allocating lines."""
    document = Document(f"Memory of {run.algo.num_envs} x {run.env.name}, {run.memory.profile}")
    judged = verdicts(seen.snapshots)
    leaking = [v.name for v in judged if v.leaks]
    document.add(f"Verdict: {'LEAK in ' + ', '.join(leaking) if leaking else 'no leak found'}.")
    start = seen.snapshots[0].held_bytes
    rows = [
        (
            f"{s.step:,}",
            human(s.held_bytes),
            human(s.held_bytes - start),
            human(sum(s.parts.values())),
        )
        for s in seen.snapshots
    ]
    document.add("Snapshots", TableBlock(("steps", "held", "since the first", "arrays"), rows))
    lines = [
        (v.name, human(v.first), human(v.last), f"{v.bytes_per_step:+,.1f} B", v.words)
        for v in judged
        if v.last or v.first
    ]
    columns = ("component", "first", "last", "per step", "verdict")
    document.add("Growth between the first and the last snapshot", TableBlock(columns, lines))
    if seen.costs:
        document.add("Cost of an environment", _cost_table(seen.costs))
    for title, found in (("Top allocations", seen.largest), ("Top growth", seen.grown)):
        if found:
            table = [(place, human(size), f"{count:+,}") for place, size, count in found]
            document.add(title, TableBlock(("line", "bytes", "blocks"), table))
    return document


def _cost_table(costs: Sequence[Cost]) -> TableBlock:
    """Environments | held | arrays | per further environment, by difference to the row above."""
    rows = []
    for k, cost in enumerate(costs):
        each = arrays = ""
        if k:
            before, more = costs[k - 1], cost.envs - costs[k - 1].envs
            each = human((cost.resident_bytes - before.resident_bytes) / more)
            arrays = human((cost.array_bytes - before.array_bytes) / more)
        rows.append(
            (str(cost.envs), human(cost.resident_bytes), human(cost.array_bytes), each, arrays)
        )
    return TableBlock(("environments", "held", "arrays", "held per env", "arrays per env"), rows)


def write_profile(run: RunConfig, options: SnapshotOptions, seen: Seen) -> list[Path]:
    """Write the report, and the time profile where there is one; returns their paths."""
    folder = Path(options.out)
    paths = [folder / REPORT]
    write_text(paths[0], report(run, seen).markdown(folder))
    if seen.stats:
        paths.append(folder / STATS)
        write_text(paths[1], seen.stats)
    return paths
