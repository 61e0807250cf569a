"""What a command found and wrote, beside what it printed for people: `--json` and `--quiet`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from frugal_rl.report.files import plain
from frugal_rl.report.speech import Mode


@dataclass(frozen=True)
class Outcome:
    """The end of one job.

    values   by name, as `--json` prints them
    files    what was written: all that `--quiet` prints
    status   exit status
    """

    values: Mapping[str, Any] = field(default_factory=dict)
    files: Sequence[str | Path] = ()
    status: int = 0

    @property
    def interrupted(self) -> bool:
        """Whether somebody asked the job to stop."""
        return bool(self.values.get("interrupted"))

    def as_dict(self) -> dict[str, Any]:
        """As plain values."""
        values = dict(self.values)
        if self.files:
            values["files"] = [str(f) for f in self.files]
        made: dict[str, Any] = plain(values)
        return made


def concluded(mode: Mode, outcomes: Sequence[Outcome], sweep: bool) -> str:
    """What is printed at the very end in a mode; for people everything was said already."""
    if mode is Mode.json:
        each = [outcome.as_dict() for outcome in outcomes]
        found: Any = {"jobs": each} if sweep else next(iter(each), {})
        return json.dumps(found, indent=2, default=str, allow_nan=False) + "\n"
    if mode is Mode.quiet:
        return "".join(f"{file}\n" for outcome in outcomes for file in outcome.files)
    return ""


def failed(kind: str, message: str) -> str:
    """The JSON object of a command that was refused."""
    return json.dumps({"error": kind, "message": message}, indent=2) + "\n"
