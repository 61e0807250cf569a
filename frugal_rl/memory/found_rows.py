"""The columns of a plan whose rows nothing is declared of: as they were kept before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from frugal_rl.memory.part import Kind, Part, Phase
from frugal_rl.store.column_spec import FIRST_LOOK, FOUND, POOLS

if TYPE_CHECKING:
    from frugal_rl.observation.codecs.pooled import FoundCodec
    from frugal_rl.run.config import RunConfig
    from frugal_rl.store.column_spec import ColumnSpec


def is_found(column: ColumnSpec) -> bool:
    """Whether a column finds out by itself how its rows are kept smallest."""
    codec = column.codec
    return codec is not None and codec.pool == FOUND and cast("FoundCodec", codec).form is None


def planned_columns(
    run: RunConfig, columns: list[ColumnSpec], shares: Mapping[str, float]
) -> list[ColumnSpec]:
    """Columns with the shares of their size that are expected; whole where nobody has looked.

    The first row of each environment is whole, whatever the share. A rollout that ends before its
    rows are looked at keeps them as they are.
    """
    steps = run.algo.n_steps
    if steps <= FIRST_LOOK:
        return columns
    known = [c.name in shares and is_found(c) for c in columns]
    return [
        _expected(c, shares[c.name] + 1 / steps) if k else c
        for c, k in zip(columns, known, strict=True)
    ]


def _expected(column: ColumnSpec, share: float) -> ColumnSpec:
    codec = cast("FoundCodec", column.codec)
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
