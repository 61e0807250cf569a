"""Whether all processes of a run have the same code and the same settings.

Otherwise they would wait for different messages, or learn different things and average them.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import torch

from frugal_rl.errors import ConfigError
from frugal_rl.remembered import code_digest
from frugal_rl.run.identity import flatten
from frugal_rl.untrusted.printing import printable

if TYPE_CHECKING:
    from frugal_rl.learn.ranks import Ranks
    from frugal_rl.run.config import RunConfig

OWN = ("launch.address", "launch.meet", "hardware.", "tracking.", "sweep.")
"""Beginnings of settings that a machine may have for itself."""


def check_alike(run: RunConfig, ranks: Ranks) -> None:
    """Refuse processes of other code or settings, in all of them.

    Raises:
        ConfigError: naming the first difference, and whose it is.
    """
    told = ranks.gathered(traits(run))
    first = told[0]
    for rank, theirs in enumerate(told):
        if not isinstance(theirs, Mapping) or not isinstance(first, Mapping):
            raise ConfigError(_words(rank, "another version of the project", "", ""))
        for name in sorted(first.keys() | theirs.keys()):
            if first.get(name) != theirs.get(name):
                raise ConfigError(_words(rank, name, theirs.get(name), first.get(name)))


def traits(run: RunConfig) -> dict[str, str]:
    """What must be equal, by name."""
    found = {name: str(value) for name, value in flatten(run.resolved) if not name.startswith(OWN)}
    found |= {"Python": platform.python_version(), "torch": torch.__version__}
    found |= {"NumPy": np.__version__}
    parts = (run, run.env, run.agent, run.algo)
    for package in sorted({type(part).__module__.partition(".")[0] for part in parts}):
        found[f"code of {package}"] = code_digest(package)
    return found


def _words(rank: int, name: str, theirs: object, ours: object) -> str:
    values = f" ({printable(str(theirs))}, not {printable(str(ours))})" if theirs or ours else ""
    return (
        f"Process {rank} has not what the first one has: {printable(name)}{values}. Start the same "
        "command with the same version of the project and its libraries on each machine."
    )
