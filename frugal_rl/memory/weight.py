"""What environments and workers hold that say nothing of their size, as it was measured once.

`frugal_rl.run.weigh`, `frugal_rl.run.weigh_workers` and `frugal_rl.run.play_rollout` measure it; a
plan reads it here.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import metadata
from typing import TYPE_CHECKING, Any

from frugal_rl import remembered

if TYPE_CHECKING:
    from frugal_rl.run.config import RunConfig

Shares = Mapping[str, float]
"""Of the size of its rows, what a column took that nothing is declared of, by name."""
OF_PLAY, OF_RUN = 2.0, 1.1
"""What is planned of a share: a policy sees more than random play, and other runs a little more."""
LEAST_STEPS = 64
"""Rollouts that are shorter hold more whole rows than others."""


def kept_bytes(env: Any) -> int | None:
    """Bytes of one environment of a configuration; None where nobody has measured it."""
    kept = remembered.read(weight_name(env))
    return None if kept is None else int(kept["bytes"])


def weight_name(env: Any) -> str:
    """What its size depends on: how it is made, and the code that it is made by."""
    packages = {module.split(".")[0] for module in getattr(env, "modules", ())}
    code = [remembered.code_digest(package) for package in sorted(packages)]
    versions = (sys.version, metadata.version("gymnasium"), sys.prefix)
    return f"weight_{remembered.fingerprint(repr(env), *code, *versions)}"


def kept_workers(run: RunConfig) -> dict[str, int] | None:
    """Bytes of `each` worker and, `once`, of what starts them; None where nobody has measured."""
    kept: dict[str, int] | None = remembered.read(workers_name(run))
    return kept


def workers_name(run: RunConfig) -> str:
    """What a worker's size depends on: its environment, how it starts, the library it imports."""
    versions = [metadata.version(name) for name in ("torch", "stable-baselines3")]
    own = type(run.env).__module__.split(".")[0]
    code = remembered.code_digest(own), remembered.code_digest("frugal_rl.sb3")
    words = (weight_name(run.env), repr(run.vec.stepping()), *code, *versions)
    return f"workers_{remembered.fingerprint(*words)}"


def keep_rollout(run: RunConfig, shares: Shares) -> None:
    """Remember what the rows of a run's rollouts took that are long enough to tell."""
    if shares and run.algo.n_steps >= LEAST_STEPS:
        remembered.write(rows_name(run, type(run.algo).__name__), dict(shares))


def expected_shares(run: RunConfig) -> dict[str, float]:
    """What rows are expected to take; empty where nobody has looked."""
    seen, factor = remembered.read(rows_name(run, type(run.algo).__name__)), OF_RUN
    if seen is None:
        seen, factor = remembered.read(rows_name(run)), OF_PLAY
    return {name: factor * share for name, share in (seen or {}).items()}


def rows_name(run: RunConfig, where: str = "play") -> str:
    """What shares depend on: the environment, and the code that keeps its rows."""
    words = (weight_name(run.env), remembered.code_digest("frugal_rl.store"), where)
    return f"found_rows_{remembered.fingerprint(*words)}"
