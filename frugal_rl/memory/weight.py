"""What environments and workers hold that say nothing of their size, as it was measured once.

`frugal_rl.run.weigh` and `frugal_rl.run.weigh_workers` measure it; a plan reads it here.
"""

from __future__ import annotations

import sys
from importlib import metadata
from typing import TYPE_CHECKING, Any

from frugal_rl import remembered

if TYPE_CHECKING:
    from frugal_rl.run.config import RunConfig


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
