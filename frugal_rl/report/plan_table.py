"""The plan as a person reads it: parts, peaks, verdict, advice and the command that follows it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Group
from rich.table import Table
from rich.text import Text

from frugal_rl.memory.finding import Finding, Severity
from frugal_rl.memory.part import Part, Phase, human
from frugal_rl.report.terminal import say, show

if TYPE_CHECKING:
    from frugal_rl.memory.advice import Way
    from frugal_rl.memory.plan import Plan

SMALL_SHARE = 0.002
"""Parts below this share of the peak are shown in one line."""
STYLES = {"fits": "green", "tight": "yellow", "does not fit": "red"}
SEVERITY_STYLES = {
    Severity.ok: "green",
    Severity.info: "cyan",
    Severity.warning: "yellow",
    Severity.error: "red",
}


def plan_view(plan: Plan, ways: Sequence[Way]) -> Group:
    """Parts, peaks, verdict, and ways to fit where it does not."""
    return Group(parts_table(plan), peaks_table(plan), verdict_line(plan), *_advice(ways))


def parts_table(plan: Plan) -> Table:
    """Part | formula with numbers | RAM | VRAM | shared? | confidence."""
    table = Table(title=f"memory={plan.profile} ({plan.label})", title_justify="left")
    for name in ("part", "formula"):
        table.add_column(name, overflow="fold")
    for name in ("RAM", "VRAM"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("shared")
    table.add_column("confidence")
    small = SMALL_SHARE * max(plan.ram_bytes, plan.vram_bytes)
    shown = [p for p in plan.parts if max(p.ram_bytes, p.vram_bytes) >= small]
    rest = [p for p in plan.parts if p not in shown]
    for part in shown:
        table.add_row(*_cells(part))
    if rest:
        total = Part(
            f"{len(rest)} smaller parts",
            "",
            sum(p.ram_bytes for p in rest),
            sum(p.vram_bytes for p in rest),
        )
        table.add_row(*_cells(total))
    return table


def _cells(part: Part) -> list[str]:
    return [
        part.name,
        part.formula,
        human(part.ram_bytes) if part.ram_bytes else "-",
        human(part.vram_bytes) if part.vram_bytes else "-",
        "yes" if part.shared else "",
        part.confidence.value,
    ]


def peaks_table(plan: Plan) -> Table:
    """The peak of each phase; the highest is marked."""
    table = Table(title="peaks", title_justify="left")
    for name in ("phase", "RAM", "VRAM"):
        table.add_column(name, justify="left" if name == "phase" else "right")
    for phase in Phase:
        peak = plan.peak(phase)
        mark = " (highest)" if phase is plan.peak_phase else ""
        vram = human(peak.vram_bytes) if peak.vram_bytes else "-"
        table.add_row(phase.value + mark, human(peak.ram_bytes), vram)
    return table


def verdict_line(plan: Plan) -> Text:
    """Peak, limit, headroom, and whether activations are in it."""
    limit = plan.limit
    words = (
        f"{plan.verdict}: {human(plan.ram_bytes)} of {human(limit.ram_bytes)} ({limit.ram_source})"
    )
    if plan.vram_bytes:
        words += (
            f", {human(plan.vram_bytes)} of {human(limit.vram_bytes)} VRAM ({limit.vram_source})"
        )
    if not plan.probed:
        words += "; arithmetic only, without the network's activations"
    if plan.fits and plan.ram_bytes > limit.free_ram_bytes:
        words += f"; only {human(limit.free_ram_bytes)} is free right now"
    if plan.duration is not None:
        words += f"\n{plan.duration.words}"
    return Text(words, style=STYLES[plan.verdict])


def _advice(ways: Sequence[Way]) -> list[Table]:
    if not ways:
        return []
    table = Table(title="ways to fit, the cheapest first", title_justify="left")
    for name in ("overrides", "label", "cost", "peak"):
        table.add_column(name, overflow="fold")
    for way in ways:
        table.add_row(" ".join(way.overrides), way.label.value, way.cost, human(way.plan.ram_bytes))
    return [table]


def comparison_table(plans: Sequence[tuple[str, Plan | str]]) -> Table:
    """All profiles side by side; a refused one with the reason."""
    table = Table(title="profiles", title_justify="left")
    table.add_column("memory=")
    table.add_column("label")
    for name in ("bytes per transition", "rollout", "peak RAM", "peak VRAM"):
        table.add_column(name, justify="right")
    table.add_column("verdict", overflow="fold")
    for name, plan in plans:
        if isinstance(plan, str):
            table.add_row(name, "-", "-", "-", "-", "-", plan)
            continue
        vram = human(plan.vram_bytes) if plan.vram_bytes else "-"
        table.add_row(
            name,
            plan.label,
            f"{plan.bytes_per_transition:,.0f}",
            human(plan.rollout_bytes),
            human(plan.ram_bytes),
            vram,
            Text(plan.verdict, style=STYLES[plan.verdict]),
        )
    return table


def show_checks(findings: Sequence[Finding]) -> None:
    """Print the findings, and each whole command in a line of its own: a cell would break it."""
    show(checks_table(findings))
    for finding in findings:
        if finding.command:
            say(f"{finding.id}: {finding.command}")


def checks_table(findings: Sequence[Finding]) -> Table:
    """Check | severity | value | message | override."""
    table = Table(title="checks", title_justify="left")
    for name in ("check", "severity", "value", "message", "override"):
        table.add_column(name, overflow="fold")
    for finding in findings:
        severity = Text(finding.severity.value, style=SEVERITY_STYLES[finding.severity])
        table.add_row(finding.id, severity, finding.value, finding.message, finding.override)
    return table
