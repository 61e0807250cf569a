"""Packages whose code a configuration may name: ours, those the user named, those that declare it.

Configurations arrive with checkpoints, so a name in them is followed only into packages that are
trusted. A package of the user's own is, when it stands in `plugins=[...]`, or when it is installed
with an entry point of the group `frugal_rl.plugins`:

    [project.entry-points."frugal_rl.plugins"]
    my_env = "my_env"
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from frugal_rl.late import Late

OURS = ("frugal_rl", "nclone", "npp_rl", "mine_rl_npv", "fighting")
"""The packages of this project."""
_METADATA = Late("importlib.metadata")
GROUP = "frugal_rl.plugins"
"""Entry points of installed plug-ins; each names its package."""


@cache
def declared() -> tuple[str, ...]:
    """Installed packages that declare themselves a plug-in, in order of their names."""
    modules = (point.value.partition(":")[0] for point in _METADATA.entry_points(group=GROUP))
    return tuple(sorted({module.partition(".")[0] for module in modules}))


def trusted(named: Iterable[str] = ()) -> tuple[str, ...]:
    """All packages that may be named: ours, those declared, and those that the user `named`."""
    return tuple(dict.fromkeys((*OURS, *declared(), *named)))
