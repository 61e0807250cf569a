"""How small rows were kept that nothing is declared of, for plans: in random play, and in runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from frugal_rl import remembered
from frugal_rl.memory.part import Kind, Part, Phase
from frugal_rl.memory.weight import weight_name
from frugal_rl.store.column_spec import FIRST_LOOK, FOUND, POOLS

if TYPE_CHECKING:
    from frugal_rl.observation.codecs.pooled import FoundCodec
    from frugal_rl.run.config import RunConfig
    from frugal_rl.store.column_spec import ColumnSpec

Shares = Mapping[str, float]
"""Of the size of its rows, what a column took, by name."""
OF_PLAY, OF_RUN = 2.0, 1.1
"""What is planned of a share: a policy sees more than random play, and other runs a little more."""
LEAST_STEPS = 64
"""Rollouts that are shorter hold more whole rows than others."""


def is_found(column: ColumnSpec) -> bool:
    """Whether a column finds out by itself how its rows are kept smallest."""
    codec = column.codec
    return codec is not None and codec.pool == FOUND and cast("FoundCodec", codec).form is None


def keep_play(run: RunConfig, shares: Shares) -> None:
    """Remember what random play took."""
    remembered.write(_name(run, "play"), dict(shares))


def keep_rollout(run: RunConfig, shares: Shares) -> None:
    """Remember what a run's rollouts took that are long enough to tell."""
    if shares and run.algo.n_steps >= LEAST_STEPS:
        remembered.write(_name(run, type(run.algo).__name__), dict(shares))


def planned_columns(run: RunConfig, columns: list[ColumnSpec]) -> list[ColumnSpec]:
    """Columns with what is expected of their rows; as large as they are where nobody has looked.

    A rollout that ends before its rows are looked at keeps them as they are.
    """
    if run.algo.n_steps <= FIRST_LOOK or not any(map(is_found, columns)):
        return columns
    seen, factor = remembered.read(_name(run, type(run.algo).__name__)), OF_RUN
    if seen is None:
        seen, factor = remembered.read(_name(run, "play")) or {}, OF_PLAY
    return [_expected(c, factor * seen[c.name]) if c.name in seen else c for c in columns]


def _expected(column: ColumnSpec, share: float) -> ColumnSpec:
    codec = column.codec
    if codec is None or not is_found(column):
        return column
    few = min(codec.expected_share, share)
    return replace(column, codec=replace(codec, expected_share=few))


def waiting_parts(run: RunConfig, columns: list[ColumnSpec]) -> list[Part]:
    """The first rows of a first rollout, as they are until they are looked at."""
    steps, envs = min(FIRST_LOOK, run.algo.n_steps), run.algo.num_envs
    parts = []
    for column in filter(is_found, columns):
        more = column.dense_bytes(steps, envs) - column.nbytes(run.algo.n_steps, envs)
        formula = f"the first {steps} x {envs} rows, until they are looked at"
        found = Part(f"rollout: {column.name}, waiting", formula, max(0, more), kind=Kind.learner)
        parts += [replace(found, phases=frozenset({Phase.rollout}), source=POOLS[FOUND])]
    return [part for part in parts if part.ram_bytes]


def _name(run: RunConfig, where: str) -> str:
    """What shares depend on: the environment, and the code that keeps its rows."""
    words = (weight_name(run.env), remembered.code_digest("frugal_rl.store"), where)
    return f"found_rows_{remembered.fingerprint(*words)}"
