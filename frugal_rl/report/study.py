"""The command `study`: its options, and what it prints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from frugal_rl.report.terminal import say

if TYPE_CHECKING:
    from frugal_rl.store.found.study import Study


@dataclass(frozen=True)
class StudyOptions:
    """How long to play, and where the finding goes."""

    steps: int = 2000
    write: str | None = None
    """A YAML file for `env.spec`."""


def show_study(found: Study) -> None:
    """One line per field."""
    for line in str(found).splitlines():
        say(line)
