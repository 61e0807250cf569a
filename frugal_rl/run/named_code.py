"""Code that a saved configuration names beside its dataclasses: imported only where it is trusted.

`env=gymnasium` imports the modules, wrappers and ids that its values name. Typed by the user they
are the user's own; in a checkpoint they are somebody else's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from frugal_rl.errors import ConfigError
from frugal_rl.plugins import declared
from frugal_rl.run.building import find_class
from frugal_rl.untrusted.printing import printable

Named = tuple[str, str]
"""A key of the configuration, and the dotted name that its value would have imported."""


def check_named_code(
    values: Mapping[str, Any], typed: Mapping[str, Any], plugins: Sequence[str]
) -> None:
    """Refuse a saved configuration that would import what nobody here trusts.

    Args:
        values: the saved configuration, with the words typed now put in.
        typed: the configuration of the command at hand, whose names the user chose.
        plugins: packages that the user named.

    Raises:
        ConfigError: naming the key, the package and the word that trusts it.
    """
    own = {name for _, name in named_code(typed, plugins)}
    for key, name in named_code(values, plugins):
        if name in own or _inside(name, (*declared(), *plugins)):
            continue
        package = printable(name.partition(".")[0])
        raise ConfigError(
            f"The saved run imports {printable(name)} by its {key}, which is code of somebody "
            f"else's. Add plugins=[{package}] to the command line if you trust it."
        )


def named_code(values: Mapping[str, Any], plugins: Sequence[str]) -> Iterator[Named]:
    """What the groups of a configuration import that their own classes do not vouch for."""
    for group, node in values.items():
        if not isinstance(node, Mapping) or "_target_" not in node:
            continue
        kind: Any = find_class(str(node["_target_"]), group, plugins)
        names = getattr(kind, "named_code", None)
        for key, name in names(node) if names else ():
            if not _inside(name, kind.vouched):
                yield f"{group}.{key}", name


def _inside(name: str, packages: Sequence[str]) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)
