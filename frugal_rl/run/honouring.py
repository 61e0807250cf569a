"""What honours a switch of the memory profile, among all that `conf/` offers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from frugal_rl.errors import ConfigError
from frugal_rl.memory.honour import honoured
from frugal_rl.run.building import find_class

if TYPE_CHECKING:
    from frugal_rl.memory.savings import Reader

TARGET = re.compile(r"^_target_: *(\S+)", re.MULTILINE)


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
        target = TARGET.search(path.read_text())
        try:
            if target:
                yield path.stem, find_class(target[1])
        except (ConfigError, ImportError):
            continue
