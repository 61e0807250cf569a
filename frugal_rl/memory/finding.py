"""What a check says: how bad it is, in words, and the override that mends it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from frugal_rl.memory.facts import Facts


class Severity(Enum):
    """How bad a finding is; a passing check is `ok`, never a headline.

    An `error` says that the run cannot work: it is stopped before anything is allocated.
    """

    ok = "ok"
    info = "info"
    warning = "warning"
    error = "error"


@dataclass(frozen=True)
class Finding:
    """What one check found."""

    id: str
    name: str
    severity: Severity
    value: str
    message: str = ""
    override: str = ""
    command: str = ""
    """What helps, where that is a whole command and no override."""


Rule = Callable[["Facts"], Finding | None]
"""A check; None where it has nothing to look at."""


def grade(value: float, warn: float, error: float | None = None) -> Severity:
    """`warning` above `warn`, `error` above `error`."""
    if error is not None and value > error:
        return Severity.error
    return Severity.warning if value > warn else Severity.ok


def worst(findings: list[Finding]) -> Severity:
    """The highest severity among findings."""
    order = list(Severity)
    return max((f.severity for f in findings), key=order.index, default=Severity.ok)
