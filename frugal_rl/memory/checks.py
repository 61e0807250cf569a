"""Training checks: each a formula with a computed severity, a message and an override.

The rules are those of the fighting guide's review that our configuration can break, made general
for all environments; their numbers are kept, but that only a run which cannot work is an error.
Those that speak of emulators only come with the fighting environment.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from frugal_rl.memory import rules_bytes, rules_training
from frugal_rl.memory.facts import Facts, facts_of
from frugal_rl.memory.finding import Finding, Rule, Severity
from frugal_rl.memory.plan import Plan, own_parts

if TYPE_CHECKING:
    from frugal_rl.run.config import RunConfig

RULES: tuple[Rule, ...] = (*rules_bytes.RULES, *rules_training.RULES)
OF_ROLLOUTS = frozenset({"F09", "F10", "F11", "F12", "F13", "F35"})
"""Checks that say nothing of a learner that keeps no rollout."""


def check_run(run: RunConfig, plan: Plan, own: Sequence[Finding] = ()) -> list[Finding]:
    """All findings of a run, by id, together with those of its environment (its tool `checks`)."""
    findings = check(facts_of(run, plan))
    if own_parts(run) is not None:
        findings = [f for f in findings if f.id not in OF_ROLLOUTS]
    return sorted([*findings, *own], key=lambda f: f.id)


def check(facts: Facts) -> list[Finding]:
    """What each rule found that had something to look at, by id."""
    found = [finding for rule in RULES if (finding := rule(facts)) is not None]
    return sorted(found, key=lambda f: f.id)


def errors(findings: list[Finding]) -> list[Finding]:
    """The findings that stop a run."""
    return [f for f in findings if f.severity is Severity.error]
