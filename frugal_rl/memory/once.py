"""What a process of its own finds out once, for plans that can go without it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from frugal_rl import remembered
from frugal_rl.errors import ConfigError
from frugal_rl.memory.child import ask_child

if TYPE_CHECKING:
    from frugal_rl.run.config import RunConfig

failed: set[str] = set()
"""Names under which nothing could be found; in this process nobody tries again."""


def find_once(name: str, module: str, run: RunConfig, doing: str, most_seconds: float) -> None:
    """Have `python -m module` look at a run, and remember its answer under a name.

    Where that fails, or the answer is null, a plan goes without it: whoever makes the environment
    in this process will say better why.
    """
    if name in failed or remembered.read(name) is not None:
        return
    try:
        found = ask_child(module, run, doing, most_seconds)
    except ConfigError as error:
        print(f"Warning: {error} The plan goes without it.", file=sys.stderr)
        found = None
    if found is None:
        failed.add(name)
    else:
        remembered.write(name, found)
