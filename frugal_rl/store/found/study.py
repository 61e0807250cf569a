"""What repeats in an environment's observations, field by field: found by playing at random."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from frugal_rl.errors import ConfigError
from frugal_rl.observation.found_spec import FoundField, FoundSpec
from frugal_rl.store.column_spec import ColumnSpec
from frugal_rl.store.found.column import FoundColumn
from frugal_rl.store.found.handled import StackedColumn
from frugal_rl.store.found.stacks import OTHER
from frugal_rl.vec_env.leaves import Leaf, LeavesEnv


@dataclass
class FieldStudy:
    """One field while it is watched."""

    leaf: Leaf
    column: FoundColumn
    before: bytes = b""
    repeated: int = 0
    changed_bytes: int = 0
    distinct: set[int] = field(default_factory=set)
    nanoseconds: list[int] = field(default_factory=list)

    def watch(self, t: int, value: np.ndarray) -> None:
        """Step t: count what repeats, then keep it."""
        raw = value.tobytes()
        if t:
            pair = np.frombuffer(raw, np.uint8), np.frombuffer(self.before, np.uint8)
            self.changed_bytes += int(np.count_nonzero(pair[0] != pair[1]))
            self.repeated += raw == self.before
        self.distinct.add(hash(raw))
        self.before = raw
        begin = time.perf_counter_ns()
        self.column.write(t, value[None], None)
        self.nanoseconds.append(time.perf_counter_ns() - begin)

    def evidence(self, steps: int) -> str:
        """What was counted, in words."""
        pairs, size = max(1, steps - 1), max(1, self.column.spec.row_bytes)
        words = [
            f"{self.repeated / pairs:.0%} equal to the row before",
            f"{self.changed_bytes / pairs / size:.1%} of bytes change",
            f"{len(self.distinct)} of {steps} distinct",
        ]
        for segment in self.column.segments:
            if isinstance(segment.column, StackedColumn):
                broken = int((segment.column.past == OTHER).sum())
                words.append(f"{broken} broke the stack")
        return ", ".join(words)


@dataclass(frozen=True)
class FieldResult:
    """What was found of one field."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    form: str
    dense_bytes: float
    found_bytes: float
    add_us: float
    evidence: str


@dataclass(frozen=True)
class Study:
    """What was found of an environment; `spec` goes into a file for `env.spec`."""

    steps: int
    fields: tuple[FieldResult, ...]

    @property
    def spec(self) -> FoundSpec:
        """Forms and bytes by field."""
        fields = self.fields
        return FoundSpec(
            {
                f.name: FoundField(
                    f.form.rpartition(" then ")[2],
                    f.dense_bytes,
                    round(f.found_bytes, 1),
                    f.shape,
                    f.dtype,
                )
                for f in fields
            }
        )

    def write(self, path: Path) -> None:
        """The spec as YAML."""
        path.write_text(self.spec.text())

    def __str__(self) -> str:
        lines = [f"{'field':20}{'bytes':>10}{'found':>10}{'us/add':>8}  form; evidence"]
        for f in self.fields:
            lines.append(
                f"{f.name:20}{f.dense_bytes:10,.0f}{f.found_bytes:10,.1f}{f.add_us:8.1f}  "
                f"{f.form}; {f.evidence}"
            )
        dense, found = (sum(getattr(f, b) for f in self.fields) for b in BYTES)
        lines.append(f"{'all':20}{dense:10,.0f}{found:10,.1f}  1/{dense / max(found, 0.1):.1f}")
        return "\n".join(lines)


BYTES = ("dense_bytes", "found_bytes")


def study(env: gym.Env[Any, Any], steps: int = 2000, seed: int = 0) -> Study:
    """Play `steps` random steps and tell, field by field, what repeats and what it takes.

    Raises:
        ConfigError: fewer than two steps, or no single environment.

    Example:
        >>> import gymnasium
        >>> study(gymnasium.make("CartPole-v1"), steps=64).fields[0].dense_bytes
        16
    """
    if steps < 2:
        raise ConfigError(f"steps={steps} shows no change; play at least 2.")
    if not isinstance(env, gym.Env):
        what = f"'{env}'" if isinstance(env, str) else f"a {type(env).__name__}"
        raise ConfigError(
            f"study plays one environment, not {what}. Make one, gymnasium.make(...), with the "
            "wrappers that your vector environment puts around each."
        )
    played = env if isinstance(env, LeavesEnv) else LeavesEnv(env)
    leaves = played.leaves
    specs = {leaf.name: ColumnSpec(leaf.name, leaf.shape, leaf.dtype) for leaf in leaves}
    fields = {f.name: FieldStudy(f, FoundColumn(specs[f.name], steps, 1)) for f in leaves}
    played.action_space.seed(seed)
    observation, _ = played.reset(seed=seed)
    for t in range(steps):
        for name, watched in fields.items():
            watched.watch(t, observation[name])
        observation, _, terminated, truncated, _ = played.step(played.action_space.sample())
        if terminated or truncated:
            observation, _ = played.reset()
    return Study(steps, tuple(_result(f, steps) for f in fields.values()))


def _result(watched: FieldStudy, steps: int) -> FieldResult:
    column, leaf = watched.column, watched.leaf
    return FieldResult(
        leaf.name,
        leaf.shape,
        str(leaf.dtype),
        " then ".join(segment.form.name for segment in column.segments),
        column.spec.row_bytes,
        column.nbytes / steps,
        float(np.median(watched.nanoseconds)) / 1000,
        watched.evidence(steps),
    )
