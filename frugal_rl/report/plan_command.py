"""What `scripts/plan.py` does: plan, compare, advise, check; as tables or as JSON."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any

from frugal_rl.errors import ConfigError, MemoryBudgetError
from frugal_rl.memory.advice import Way, advise, command_of
from frugal_rl.memory.auto import choose
from frugal_rl.memory.checks import check_run, errors
from frugal_rl.memory.choices import AUTO
from frugal_rl.memory.finding import Finding, Severity
from frugal_rl.memory.plan import NOTHING_SAVED, Plan, draw_up
from frugal_rl.observation.choices import Label
from frugal_rl.report.files import plain
from frugal_rl.report.plan_table import comparison_table, plan_view, show_checks
from frugal_rl.report.plan_why import why_view
from frugal_rl.report.terminal import say, show
from frugal_rl.run.compose import folder
from frugal_rl.run.outcome import Outcome
from frugal_rl.run.tools import own_findings

if TYPE_CHECKING:
    from frugal_rl.memory.probe import ProbeUpdate
    from frugal_rl.run.config import RunConfig

RESERVE = 1.1
"""A cluster kills a job at its reservation: it is asked for this much of the planned peak."""
TIME_RESERVE, STARTING_MINUTES = 1.5, 10
"""Of the planned hours, perhaps of another machine; a fresh installation compiles first."""
DOES_NOT_FIT = 3
"""Exit code of a run that does not fit, or of which a check says that it cannot work."""


class Format(Enum):
    """How the plan is printed."""

    table = "table"
    json = "json"
    launcher = "launcher"


@dataclass(frozen=True)
class PlanOptions:
    """The options of `scripts/plan.py` beside those of a run."""

    compare: bool = False
    """All profiles side by side."""
    format: Format = Format.table
    """Tables for people, JSON for programs, or the words that ask a cluster for what is planned."""
    why: str = ""
    """Name of one part: its formula, where it is allocated, what each switch makes of it."""


def show_plan(run: RunConfig, options: PlanOptions, probe: ProbeUpdate | None) -> Outcome:
    """Print what was asked for; the same as values, and the exit status."""
    if options.compare:
        return _show_comparison(run, options, probe)
    chosen: tuple[str, ...] = ()
    if run.memory.profile == AUTO:
        try:
            choice = choose(run, probe)
        except MemoryBudgetError as error:
            print(error)
            return Outcome({"refused": str(error)}, status=DOES_NOT_FIT)
        run, plan, chosen = choice.run, choice.plan, choice.overrides
    else:
        plan = draw_up(run)
        works = plan.fits and not errors(check_run(run, plan))
        plan = draw_up(run, probe) if works and probe else plan
    if options.why:
        show(why_view(run, plan, options.why))
        return Outcome(plan.as_dict(), status=0 if plan.fits else DOES_NOT_FIT)
    ways = [] if plan.fits else advise(run, plan, probe=probe)
    findings = check_run(run, plan, own_findings(run))
    mends = tuple(f.override for f in errors(findings) if f.override)
    words = chosen or (ways[0].overrides if ways else mends)
    command = command_of(run, (*words, *run.resolved.get("typed_folders", ())))
    if not (plan.fits or ways):
        command = ""  # one that is refused is no advice
    values = {**as_json(plan, ways, findings, command), "notes": run.notes}
    if options.format is Format.launcher:
        print(" ".join(launcher_words(run, plan)))
    elif options.format is Format.json:
        print(json.dumps(values, indent=2))
    else:
        shown = [f for f in findings if f.severity is not Severity.ok]
        for note in run.notes:
            say(note)
        show(plan_view(plan, ways))
        show_checks(shown)
        say(f"{len(findings) - len(shown)} more checks pass.")
        say(command or "Nothing that is known makes it fit: raise the limit, or make it smaller.")
    return Outcome(values, status=DOES_NOT_FIT if errors(findings) or not plan.fits else 0)


def launcher_words(run: RunConfig, plan: Plan) -> list[str]:
    """Overrides of Hydra's Slurm launcher that reserve what the plan needs, and a tenth more.

    Time is asked for where a run of the kind was timed, half as much again.

    A plan is of one process; a job holds all those of its machine.
    """
    processes = run.launch.processes
    gib = math.ceil(RESERVE * plan.ram_bytes * processes / 2**30)
    words = [
        "hydra/launcher=submitit_slurm",
        f"hydra.launcher.mem_gb={gib}",
        f"hydra.launcher.cpus_per_task={plan.limit.cores}",
        f"hydra.launcher.gpus_per_node={processes * (plan.vram_bytes > 0)}",
    ]
    if plan.duration is not None and plan.duration.timed:
        minutes = math.ceil(STARTING_MINUTES + TIME_RESERVE * 60 * plan.duration.hours)
        words.append(f"hydra.launcher.timeout_min={minutes}")
    return words


def as_json(plan: Plan, ways: list[Way], findings: list[Finding], command: str) -> dict[str, Any]:
    """The same as plain values."""
    advice = [
        {
            "overrides": list(w.overrides),
            "label": w.label.value,
            "cost": w.cost,
            "ram_bytes": w.plan.ram_bytes,
        }
        for w in ways
    ]
    checks = [{**vars(f), "severity": f.severity.value} for f in findings]
    values: dict[str, Any] = plain(
        {**plan.as_dict(), "advice": advice, "checks": checks, "command": command}
    )
    return values


def profiles() -> list[str]:
    """Names of all memory profiles."""
    return sorted(p.stem for p in (folder("conf") / "memory").glob("*.yaml"))


def compared(run: RunConfig, probe: ProbeUpdate | None = None) -> list[tuple[str, Plan | str]]:
    """The plan of each profile, all parts in it, or why it is impossible for this run."""
    plans: list[tuple[str, Plan | str]] = []
    for name in profiles():
        if name == AUTO:
            continue
        try:
            varied = run.variant([f"memory={name}"])
            budget = replace(varied.memory, budget_gib=run.memory.budget_gib)
            varied = replace(varied, memory=budget)
            plan = draw_up(varied)
            plans.append((name, draw_up(varied, probe) if plan.fits and probe else plan))
        except ConfigError as error:
            plans.append((name, str(error)))
    order = {NOTHING_SAVED: 0, "lossless": 0, "precision": 1, "capacity": 2}
    return sorted(plans, key=lambda p: 3 if isinstance(p[1], str) else order[p[1].label])


def recommended(plans: list[tuple[str, Plan | str]]) -> str:
    """The smallest profile that fits: lossless before rounding before a smaller problem."""
    fitting = [(n, p) for n, p in plans if isinstance(p, Plan) and p.fits]
    for label in Label:
        alike = [(n, p) for n, p in fitting if p.label == label.value]
        if alike:
            return min(alike, key=lambda c: (c[1].ram_bytes, c[1].vram_bytes))[0]
    return ""


def _show_comparison(run: RunConfig, options: PlanOptions, probe: ProbeUpdate | None) -> Outcome:
    plans = compared(run, probe)
    name = recommended(plans)
    each = [
        {"memory": n, **(p.as_dict() if isinstance(p, Plan) else {"refused": p})} for n, p in plans
    ]
    values = {"profiles": each, "recommended": name}
    if options.format is Format.json:
        print(json.dumps(plain(values), indent=2))
    else:
        show(comparison_table(plans))
        if name:
            say(f"memory={name} fits:")
            say(command_of(run, [f"memory={name}", *run.resolved.get("typed_folders", ())]))
        else:
            say("No profile fits. What would is told by")
            say(command_of(run, ["memory=lossless"], "plan"))
    return Outcome(values, status=0 if name else DOES_NOT_FIT)
