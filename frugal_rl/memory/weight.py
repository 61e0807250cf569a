"""What one environment holds whose simulator says nothing of its size, as it was measured once.

`frugal_rl.run.weigh` measures it; a plan reads it here.
"""

from __future__ import annotations

import sys
from importlib import metadata
from typing import Any

from frugal_rl import remembered


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
