"""What `scripts/verify_storage.py` does: each representation of each field against the dense form.

Two groups of environments play the same actions from the same seed. One hands out dense rows, the
other one field in another representation; both are decoded and compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import numpy as np
from rich.table import Table

from frugal_rl.observation.choices import FrameStack, Label, Storage
from frugal_rl.observation.encoder import decode
from frugal_rl.observation.encoding import Encoding, offered
from frugal_rl.observation.history import History
from frugal_rl.ranges import at_least

if TYPE_CHECKING:
    from frugal_rl.run.config import RunConfig
    from frugal_rl.vec_env.interface import VectorEnv


@dataclass(frozen=True)
class StorageOptions:
    """The options of `scripts/verify_storage.py` beside those of a run."""

    steps: Annotated[int, at_least(1)] = 200
    """Steps of random play."""
    envs: Annotated[int, at_least(1)] = 4


@dataclass(frozen=True)
class FieldCheck:
    """One representation of one field, over all steps."""

    field: str
    representation: str
    label: str
    dense_bytes: int
    stored_bytes: int
    largest_error: float
    error: str = ""

    @property
    def passed(self) -> bool:
        """Lossless ones are equal bit for bit; lossy ones say how far they are off."""
        return not self.error and (self.label != Label.lossless.value or self.largest_error == 0)


def verify_storage(run: RunConfig, options: StorageOptions) -> list[FieldCheck]:
    """All representations that the run's observation offers."""
    spec = run.env.spec()
    dense = encoded(run, {})
    reference = list(played(run, dense, options))
    observed = {f.name for f in spec.observed()}
    checks = []
    for f in spec.fields:
        if f.name not in observed:  # nobody reads it but fields that are checked themselves
            continue
        for name, codec in offered(f).items():
            if name == "dense":
                continue
            label = codec.label if codec is not None else Label.lossless
            other = encoded(run, {f.name: name})
            stored = other.row_bytes - (dense.row_bytes - dense_bytes(dense, f.name))
            try:
                error = largest_difference(reference, played(run, other, options), f.name)
                words = ""
            except Exception as problem:
                error, words = float("nan"), f"{type(problem).__name__}: {problem}"
            checks.append(
                FieldCheck(
                    f.name, name, label.value, dense_bytes(dense, f.name), stored, error, words
                )
            )
    return checks


def encoded(run: RunConfig, fields: dict[str, str]) -> Encoding:
    """All fields dense but those given."""
    return Encoding.choose(run.env.spec(), Storage.dense, FrameStack.once, False, fields)


def dense_bytes(encoding: Encoding, name: str) -> int:
    """Bytes of a field's row."""
    row = encoding.by_name.get(name)
    return row.nbytes if row is not None else 0


Observed = dict[str, np.ndarray]


def played(run: RunConfig, encoding: Encoding, options: StorageOptions) -> Iterator[Observed]:
    """Decoded observations of random play, the same for every encoding."""
    env: VectorEnv = run.env.make_vec(options.envs, encoding, run.memory, run.vec, "train")
    history = History(encoding, options.envs, run.env.episode_steps)
    env.action_space.seed(run.seed)
    try:
        rows = history.reset(env.reset(run.seed))
        for _ in range(options.steps):
            yield {n: v.copy() for n, v in decode(encoding, rows, env.tables).items()}
            step = env.step(np.stack([env.action_space.sample() for _ in range(options.envs)]))
            rows, _ = history.push(step.rows, step.done)
    finally:
        env.close()


def largest_difference(reference: list[Observed], others: Iterator[Observed], name: str) -> float:
    """The largest difference of a field over all steps; infinite where shapes differ."""
    worst = 0.0
    for expected, got in zip(reference, others, strict=True):
        a, b = expected[name], got[name]
        if a.shape != b.shape:
            return float("inf")
        if not np.array_equal(a, b):
            worst = max(worst, float(np.abs(a.astype(np.float64) - b.astype(np.float64)).max()))
    return worst


def storage_table(checks: list[FieldCheck]) -> Table:
    """Field, representation, label, dense and stored bytes, largest difference, verdict."""
    table = Table(title="representations", title_justify="left")
    for name in ("field", "representation", "label"):
        table.add_column(name)
    for name in ("dense bytes", "stored bytes", "largest difference"):
        table.add_column(name, justify="right")
    table.add_column("verdict", overflow="fold")
    for c in checks:
        verdict = c.error or ("exact" if c.largest_error == 0 else "rounded")
        table.add_row(
            c.field,
            c.representation,
            c.label,
            f"{c.dense_bytes:,}",
            f"{c.stored_bytes:,}",
            f"{c.largest_error:.3g}",
            verdict if c.passed else f"WRONG: {verdict}",
        )
    return table
