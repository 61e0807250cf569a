"""Training checks: each a formula with a computed severity, a message and an override.

The rules are those of the fighting guide's review, made general for all environments; their
numbers are kept. Those that speak of emulators only come with the fighting environment.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from frugal_rl.memory.facts import Facts, facts_of
from frugal_rl.memory.plan import Plan, own_parts
from frugal_rl.run.config import RunConfig


class Severity(Enum):
    """How bad a finding is; a passing check is `ok`, never a headline."""

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


OF_ROLLOUTS = frozenset({"F09", "F10", "F11", "F12", "F13", "F35"})
"""Checks that say nothing of a learner that keeps no rollout."""
Rule = Callable[[Facts], Finding | None]
"""A check; None where it does not apply."""


def grade(value: float, warn: float, error: float | None = None) -> Severity:
    """`warning` above `warn`, `error` above `error`."""
    if error is not None and value > error:
        return Severity.error
    return Severity.warning if value > warn else Severity.ok


def check_run(run: RunConfig, plan: Plan, own: Sequence[Finding] = ()) -> list[Finding]:
    """All findings of a run, by id, together with those of its environment (its tool `checks`)."""
    findings = check(facts_of(run, plan))
    if own_parts(run) is not None:
        findings = [f for f in findings if f.id not in OF_ROLLOUTS]
    return sorted([*findings, *own], key=lambda f: f.id)


def check(facts: Facts) -> list[Finding]:
    """All findings of one configuration, by id."""
    from frugal_rl.memory import rules_bytes, rules_training  # they need Finding

    rules: list[Rule] = [*rules_bytes.RULES, *rules_training.RULES]
    found = [finding for rule in rules if (finding := rule(facts)) is not None]
    return sorted(found, key=lambda f: f.id)


def worst(findings: list[Finding]) -> Severity:
    """The highest severity among findings."""
    order = list(Severity)
    return max((f.severity for f in findings), key=order.index, default=Severity.ok)
