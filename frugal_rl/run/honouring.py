"""What honours a switch of the memory profile, among all that `conf/` offers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import yaml

from frugal_rl.errors import ConfigError
from frugal_rl.memory.honour import honoured
from frugal_rl.memory.savings import Reader
from frugal_rl.run.building import find_class


def honouring(conf: Path, switch: str, role: Reader) -> list[str]:
    """`env=nclone` and the like: the choices of a group whose class declares the switch."""
    return [
        f"{role.value}={name}"
        for name, cls in _classes(conf, role)
        if switch in honoured(cls, role)
    ]


def _classes(conf: Path, role: Reader) -> Iterator[tuple[str, type]]:
    """The classes that a group's files name themselves; those that cannot be imported are none."""
    for path in sorted((conf / role.value).glob("*.yaml")):
        target = (yaml.safe_load(path.read_text()) or {}).get("_target_")
        try:
            if target:
                yield path.stem, find_class(str(target))
        except (ConfigError, ImportError):
            continue
